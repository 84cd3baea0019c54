package core

// Sends and receives (MPI-4.1 sections 3.2, 3.4 and 3.7). A message is a sequence of bytes
// for package mpi.

import (
	"github.com/muster-mpi/muster/mpi"
)

func pointToPoint() map[string]handler {
	return map[string]handler{
		"Send":  blockingSend(mpi.Send[byte]),
		"Ssend": blockingSend(mpi.Ssend[byte]),
		"Rsend": blockingSend(mpi.Rsend[byte]),
		"Recv":  (*Process).recv,

		"Isend":  startedSend(mpi.Isend[byte]),
		"Issend": startedSend(mpi.Issend[byte]),
		"Irsend": startedSend(mpi.Irsend[byte]),
		"Irecv":  (*Process).irecv,

		"Send_init":  persistentSend(mpi.Isend[byte]),
		"Ssend_init": persistentSend(mpi.Issend[byte]),
		"Rsend_init": persistentSend(mpi.Irsend[byte]),
		"Recv_init":  (*Process).recvInit,
		"Start":      (*Process).startOne,
		"Startall":   (*Process).startAll,

		"Sendrecv":          (*Process).sendrecv,
		"Sendrecv_replace":  (*Process).sendrecvReplace,
		"Isendrecv":         (*Process).isendrecv,
		"Isendrecv_replace": (*Process).isendrecvReplace,
	}
}

// message has the arguments of a send or receive.
type message struct {
	addr  uintptr
	count int
	typ   *datatype
	peer  int
	tag   int
	comm  *comm
}

// outgoing and incoming decode the arguments that sends and receives begin with: buffer,
// count, datatype, peer, tag, communicator.
func (a *args) outgoing() message { return a.messageTo(a.comm(5), 0, 3, 4) }
func (a *args) incoming() message { return a.messageFrom(a.comm(5), 0, 3, 4) }

// messageTo decodes a message to send: buffer, count and datatype from parameter buf on, and
// the destination and tag.
func (a *args) messageTo(c *comm, buf, peer, tag int) message {
	m := message{comm: c, peer: a.int(peer), tag: a.int(tag)}
	a.body(&m, buf)
	if c == nil {
		return m
	}
	if m.peer == procNull {
		m.peer = mpi.ProcNull
	} else if uint(m.peer) >= uint(c.peers()) {
		a.fail(errorf(errRank, "there is no rank %d: the communicator has %d", m.peer, c.peers()))
	}
	if m.tag < 0 || m.tag > mpi.MaxTag {
		a.fail(errorf(errTag, "tag %d is not in the range 0 to %d", m.tag, mpi.MaxTag))
	}
	return m
}

// messageFrom decodes a message to receive.
func (a *args) messageFrom(c *comm, buf, peer, tag int) message {
	m := message{comm: c}
	m.peer, m.tag = a.source(c, peer, tag)
	a.body(&m, buf)
	return m
}

// body decodes buffer, count and datatype. An empty message may have no datatype, as in
// MPICH.
func (a *args) body(m *message, buf int) {
	m.addr, m.count = a.addr(buf), a.count(buf+1)
	if m.count == 0 && a.handle(buf+2) == datatypeNull {
		a.v[buf+2] = uint64(byteType)
	}
	m.typ = a.datatype(buf + 2)
}

// byteType is MPI_BYTE.
const byteType handle = 0x4c00010d

// source decodes the source and tag of a receive or probe. The numbers of package mpi differ.
func (a *args) source(c *comm, peer, tag int) (from, label int) {
	from, label = a.int(peer), a.int(tag)
	if c == nil {
		return 0, 0
	}
	switch {
	case from == procNull:
		from = mpi.ProcNull
	case from == anySource:
		from = mpi.AnySource
	case uint(from) >= uint(c.peers()):
		a.fail(errorf(errRank, "there is no rank %d: the communicator has %d", from, c.peers()))
	}
	switch {
	case label == anyTag:
		label = mpi.AnyTag
	case label < 0 || label > mpi.MaxTag:
		a.fail(errorf(errTag, "tag %d is not in the range 0 to %d", label, mpi.MaxTag))
	}
	return from, label
}

// peers returns the number of possible destinations.
func (c *comm) peers() int {
	if c.IsInter() {
		return c.RemoteSize()
	}
	return c.Size()
}

// sendCall and isendCall are the sends of package mpi, one for each mode.
type (
	sendCall  func(c *mpi.Comm, b []byte, dst, tag int) error
	isendCall func(c *mpi.Comm, b []byte, dst, tag int) mpi.Request
)

func blockingSend(send sendCall) handler {
	return func(p *Process, a *args) error {
		m := a.outgoing()
		if a.err != nil {
			return a.err
		}
		b, used, err := m.typ.leaving(&p.base.scratch, m.addr, m.count)
		if err != nil {
			return err
		}
		if err = send(m.commFor(a), b, m.peer, m.tag); err == nil {
			p.base.scratch.put(used)
		}
		return err
	}
}

func startedSend(isend isendCall) handler {
	return func(p *Process, a *args) error {
		m := a.outgoing()
		if a.err != nil {
			return a.err
		}
		b, err := m.typ.outgoing(m.addr, m.count)
		if err != nil {
			return err
		}
		r := p.spare.get()
		r.Request, r.comm, r.send = isend(m.commFor(a), b, m.peer, m.tag), m.comm, true
		p.addRequest(a, 6, r)
		return nil
	}
}

func (p *Process) recv(a *args) error {
	m := a.incoming()
	if a.err != nil {
		return a.err
	}
	b, land, used, err := m.typ.arriving(&p.base.scratch, m.addr, m.count)
	if err != nil {
		return err
	}
	st, err := mpi.Recv(m.commFor(a), b, m.peer, m.tag)
	if err = land.receive(st.Bytes, err); err == nil {
		p.base.scratch.put(used)
	}
	a.setStatus(6, newStatus(st))
	return err
}

func (p *Process) irecv(a *args) error {
	m := a.incoming()
	if a.err != nil {
		return a.err
	}
	b, land, err := m.typ.incoming(m.addr, m.count)
	if err != nil {
		return err
	}
	r := p.spare.get()
	r.Request, r.comm, r.landing = mpi.Irecv(m.commFor(a), b, m.peer, m.tag), m.comm, land
	p.addRequest(a, 6, r)
	return nil
}

// persistentSend prepares a send (MPI-4.1 section 3.9). The buffer is packed at each start.
func persistentSend(isend isendCall) handler {
	return func(p *Process, a *args) error {
		m := a.outgoing()
		if a.err != nil {
			return a.err
		}
		if _, err := m.typ.view(m.addr, m.count); err != nil {
			return err
		}
		over := m.commFor(a)
		p.addRequest(a, 6, &request{comm: m.comm, send: true, start: func(r *request) error {
			b, err := m.typ.outgoing(m.addr, m.count)
			if err != nil {
				return err
			}
			r.Request = isend(over, b, m.peer, m.tag)
			return nil
		}})
		return nil
	}
}

func (p *Process) recvInit(a *args) error {
	m := a.incoming()
	if a.err != nil {
		return a.err
	}
	b, land, err := m.typ.incoming(m.addr, m.count)
	if err != nil {
		return err
	}
	over := m.commFor(a)
	p.addRequest(a, 6, &request{comm: m.comm, landing: land, start: func(r *request) error {
		r.Request = mpi.Irecv(over, b, m.peer, m.tag)
		return nil
	}})
	return nil
}

func (p *Process) startOne(a *args) error {
	_, r := a.request(0)
	if a.err != nil {
		return a.err
	}
	return r.begin(a)
}

func (p *Process) startAll(a *args) error {
	b := a.batch(0)
	if a.err != nil {
		return a.err
	}
	for i := range b.handles.n {
		r, _ := p.request(b.handles.at(i).get())
		if err := r.begin(a); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a persistent request.
func (r *request) begin(a *args) error {
	if r == nil || r.start == nil {
		return errorf(errRequest, "the request is not persistent")
	}
	r.own(a)
	if r.active {
		return errorf(errRequest, "the request is active already")
	}
	r.over, r.err = false, nil
	if err := r.start(r); err != nil {
		return err
	}
	r.active = true
	return nil
}
