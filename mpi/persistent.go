package mpi

// Persistent requests (MPI-4.1 sections 3.9 and 6.13): the arguments are checked once,
// and the operation is started many times.

import "github.com/muster-mpi/muster/internal/p2p"

// Persistent is a send, receive or collective operation that can be started many
// times.
type Persistent struct {
	c         *Comm
	op        string
	buf       []byte
	peer, tag int
	mode      p2p.Mode
	recv      bool
	buffered  bool
	err       error
	note      *note         // of check mode
	coll      *preparedColl // of a collective; only c, op and err are used besides
}

// SendInit prepares a [Send].
func SendInit[T Elem](c *Comm, buf []T, dst, tag int) *Persistent {
	return persistent(c, "SendInit", buf, dst, tag, p2p.Standard)
}

// SsendInit prepares an [Ssend].
func SsendInit[T Elem](c *Comm, buf []T, dst, tag int) *Persistent {
	return persistent(c, "SsendInit", buf, dst, tag, p2p.Synchronous)
}

// RsendInit prepares an [Rsend].
func RsendInit[T Elem](c *Comm, buf []T, dst, tag int) *Persistent {
	return persistent(c, "RsendInit", buf, dst, tag, p2p.Ready)
}

// BsendInit prepares a [Bsend].
func BsendInit[T Elem](c *Comm, buf []T, dst, tag int) *Persistent {
	p := persistent(c, "BsendInit", buf, dst, tag, p2p.Standard)
	p.buffered = true
	return p
}

// RecvInit prepares a [Recv].
func RecvInit[T Elem](c *Comm, buf []T, src, tag int) *Persistent {
	h := c.begin("RecvInit", CallPrepare, src, tag, len(buf)*sizeOf[T]())
	p := prepare(c, "RecvInit", buf, 0, 0, p2p.Standard)
	p.recv, p.peer, p.tag = true, src, tag
	if p.err == nil {
		_, p.err = c.source("RecvInit", src, tag)
	}
	_ = h.finish(p.err)
	return p
}

// persistent is prepare that hooks see.
func persistent[T Elem](c *Comm, op string, buf []T, peer, tag int, mode p2p.Mode) *Persistent {
	h := c.begin(op, CallPrepare, peer, tag, len(buf)*sizeOf[T]())
	p := prepare(c, op, buf, peer, tag, mode)
	_ = h.finish(p.err)
	return p
}

func prepare[T Elem](c *Comm, op string, buf []T, peer, tag int, mode p2p.Mode) *Persistent {
	p := &Persistent{c: c, op: op, peer: peer, tag: tag, mode: mode}
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		p.err = c.refuse(ErrType, op, "%w", err)
		return p
	}
	p.buf = b
	if c.w.cfg.Check {
		n := noteOf[T](c, op)
		p.note = &n
	}
	p.err = c.checkPeer(op, peer, tag)
	return p
}

// Start starts the operation. Its request must be completed before the next Start.
func (p *Persistent) Start() Request {
	if !p.c.w.watch.on {
		return p.start()
	}
	kind, bytes := CallSend, len(p.buf)
	switch {
	case p.coll != nil:
		kind, bytes = CallCollective, p.coll.bytes
	case p.recv:
		kind = CallRecv
	}
	h := p.c.beginStart("Start", kind, p.peer, p.tag, bytes)
	if kind == CallSend {
		h.sends(p.buf)
	}
	return h.finishStart(p.start())
}

func (p *Persistent) start() Request {
	switch {
	case p.err != nil:
		return p.c.refusedRequest(p.err)
	case p.coll != nil:
		return p.startCollective()
	case p.note != nil:
		return p.startChecked()
	case p.recv:
		return p.c.irecv(p.op, p.buf, p.peer, p.tag)
	case p.buffered:
		return p.c.ibsend(p.op, p.buf, p.peer, p.tag)
	}
	return p.c.isend(p.op, p.buf, p.peer, p.tag, p.mode)
}

// startChecked is Start in check mode.
func (p *Persistent) startChecked() Request {
	if p.recv {
		return checkedIrecv(p.c, *p.note, p.buf, p.peer, func(packed []byte) Request { return p.c.irecv(p.op, packed, p.peer, p.tag) })
	}
	b := p.note.stamp(p.buf)
	if p.buffered {
		return p.c.ibsend(p.op, b, p.peer, p.tag)
	}
	return p.c.trackSend(p.c.isend(p.op, b, p.peer, p.tag, p.mode), p.op, p.peer)
}

// StartAll starts several operations, appends their requests to reqs and returns
// the result.
func StartAll(ps []*Persistent, reqs []Request) []Request {
	for _, p := range ps {
		reqs = append(reqs, p.Start())
	}
	return reqs
}
