package core

// Probes (MPI-4.1 section 3.8). A message handle is the number of an object in its own
// table; the ABI gives messages and requests the same kind.

import "github.com/muster-mpi/muster/mpi"

func probes() map[string]handler {
	return map[string]handler{
		"Probe":   (*Process).probe,
		"Iprobe":  (*Process).iprobe,
		"Mprobe":  (*Process).mprobe,
		"Improbe": (*Process).improbe,
		"Mrecv":   (*Process).mrecv,
		"Imrecv":  (*Process).imrecv,
	}
}

// probed is a message that a matched probe has found.
type probed struct {
	*mpi.Message
	comm *comm
}

func (p *Process) probe(a *args) error {
	c := a.comm(2)
	src, tag := a.source(c, 0, 1)
	if a.err != nil {
		return a.err
	}
	st, err := c.Comm.Probe(src, tag)
	if err == nil {
		a.setStatus(3, newStatus(st))
	}
	return err
}

func (p *Process) iprobe(a *args) error {
	c := a.comm(2)
	src, tag := a.source(c, 0, 1)
	if a.err != nil {
		return a.err
	}
	st, found, err := c.Comm.Iprobe(src, tag)
	if err != nil {
		return err
	}
	a.setFlag(3, found)
	if found {
		a.setStatus(4, newStatus(st))
	}
	return nil
}

func (p *Process) mprobe(a *args) error {
	c := a.comm(2)
	src, tag := a.source(c, 0, 1)
	if a.err != nil {
		return a.err
	}
	m, st, err := c.Comm.Mprobe(src, tag)
	if err != nil {
		return err
	}
	a.setHandle(3, p.addMessage(m, c, src))
	a.setStatus(4, newStatus(st))
	return nil
}

func (p *Process) improbe(a *args) error {
	c := a.comm(2)
	src, tag := a.source(c, 0, 1)
	if a.err != nil {
		return a.err
	}
	m, st, found, err := c.Comm.Improbe(src, tag)
	if err != nil {
		return err
	}
	a.setFlag(3, found)
	if found {
		a.setHandle(4, p.addMessage(m, c, src))
		a.setStatus(5, newStatus(st))
	}
	return nil
}

// addMessage returns the handle of a message that a probe for src has found.
func (p *Process) addMessage(m *mpi.Message, c *comm, src int) handle {
	if src == mpi.ProcNull {
		return messageNoProc
	}
	return p.messages.add(&probed{m, c})
}

func (p *Process) mrecv(a *args) error {
	m, b, land, err := a.matchedMessage()
	if err != nil {
		return err
	}
	if m == nil { // MPI_MESSAGE_NO_PROC
		a.setStatus(4, procNullStatus)
		return nil
	}
	st, err := mpi.Mrecv(m.Message, b)
	err = land.receive(st.Bytes, err)
	a.setStatus(4, newStatus(st))
	return err
}

func (p *Process) imrecv(a *args) error {
	m, b, land, err := a.matchedMessage()
	if err != nil {
		return err
	}
	r := &request{landing: land}
	if m == nil {
		r.over, r.status = true, procNullStatus
	} else {
		r.Request, r.comm = mpi.Imrecv(m.Message, b), m.comm
	}
	p.addRequest(a, 4, r)
	return nil
}

// matchedMessage decodes the arguments of Mrecv: buffer, count, datatype and the address of the
// message, which becomes MPI_MESSAGE_NULL. The message is nil for MPI_MESSAGE_NO_PROC.
func (a *args) matchedMessage() (*probed, []byte, *landing, error) {
	if a.addr(3) == 0 {
		return nil, nil, nil, errorf(errArg, "the address of the message is NULL")
	}
	at := a.handleAt(3)
	m := a.p.messages.get(at.get())
	if m == nil && at.get() != messageNoProc {
		return nil, nil, nil, errorf(errRequest, "%#x is not a message", uint32(at.get()))
	}
	if m != nil {
		a.owner = m.comm
	}
	var body message
	a.body(&body, 0)
	if a.err != nil {
		return nil, nil, nil, a.err
	}
	b, land, err := body.typ.incoming(body.addr, body.count)
	if err != nil {
		return nil, nil, nil, err
	}
	a.p.messages.remove(at.get())
	at.setNoMessage()
	return m, b, land, nil
}
