package core

// Calls that send one message and receive another (MPI-4.1 section 3.11).

import (
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

// pairExchange is a message to send and one to receive.
type pairExchange struct {
	comm      *comm
	out, in   []byte
	dst, stag int
	src, rtag int
	landing   *landing
}

// pairExchange decodes the arguments of Sendrecv.
func (a *args) pairExchange() (x pairExchange, err error) {
	c := a.comm(10)
	s, r := a.messageTo(c, 0, 3, 4), a.messageFrom(c, 5, 8, 9)
	if a.err != nil {
		return x, a.err
	}
	x = pairExchange{comm: c, dst: s.peer, stag: s.tag, src: r.peer, rtag: r.tag}
	if x.out, err = s.typ.outgoing(s.addr, s.count); err != nil {
		return x, err
	}
	x.in, x.landing, err = r.typ.incoming(r.addr, r.count)
	return x, err
}

// replacement decodes the arguments of Sendrecv_replace: a copy of the buffer is sent.
func (a *args) replacement() (x pairExchange, err error) {
	c := a.comm(7)
	m := a.messageTo(c, 0, 3, 4)
	src, tag := a.source(c, 5, 6)
	if a.err != nil {
		return x, a.err
	}
	x = pairExchange{comm: c, dst: m.peer, stag: m.tag, src: src, rtag: tag}
	if x.out, err = m.typ.outgoing(m.addr, m.count); err != nil {
		return x, err
	}
	x.in, x.landing, err = m.typ.incoming(m.addr, m.count)
	if x.landing == nil { // else out is a packed copy
		x.out = slices.Clone(x.out)
	}
	return x, err
}

func (p *Process) sendrecv(a *args) error {
	x, err := a.pairExchange()
	if err != nil {
		return err
	}
	return x.run(a, 11)
}

func (p *Process) sendrecvReplace(a *args) error {
	x, err := a.replacement()
	if err != nil {
		return err
	}
	return x.run(a, 8)
}

func (x *pairExchange) run(a *args, statusAt int) error {
	st, err := mpi.Sendrecv(x.comm.Comm, x.out, x.dst, x.stag, x.in, x.src, x.rtag)
	err = x.landing.receive(st.Bytes, err)
	a.setStatus(statusAt, newStatus(st))
	return err
}

func (p *Process) isendrecv(a *args) error {
	x, err := a.pairExchange()
	if err != nil {
		return err
	}
	p.addRequest(a, 11, x.start())
	return nil
}

func (p *Process) isendrecvReplace(a *args) error {
	x, err := a.replacement()
	if err != nil {
		return err
	}
	p.addRequest(a, 8, x.start())
	return nil
}

func (x *pairExchange) start() *request {
	return &request{
		Request: mpi.Isendrecv(x.comm.Comm, x.out, x.dst, x.stag, x.in, x.src, x.rtag),
		comm:    x.comm, landing: x.landing,
	}
}
