package mpi

// Buffered sends (MPI-4.1 section 3.6). The library provides the buffer: it copies a
// message that cannot be sent at once, up to Config.BufferedLimit in all.

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Bsend sends buf in buffered mode: it returns at once, independently of the
// receiver. It returns an error of class ErrBuffer if the buffered messages would
// exceed Config.BufferedLimit.
func Bsend[T Elem](c *Comm, buf []T, dst, tag int) error {
	h := c.begin("Bsend", CallSend, dst, tag, len(buf)*sizeOf[T]())
	_, err := ibsend(c, "Bsend", buf, dst, tag).wait(engine.NoContext)
	return h.finish(err)
}

// Ibsend is [Bsend] with a request, which is complete when Ibsend returns.
func Ibsend[T Elem](c *Comm, buf []T, dst, tag int) Request {
	h := c.beginStart("Ibsend", CallSend, dst, tag, len(buf)*sizeOf[T]())
	return h.finishStart(ibsend(c, "Ibsend", buf, dst, tag))
}

func ibsend[T Elem](c *Comm, op string, buf []T, dst, tag int) Request {
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		return c.refusedRequest(c.refuse(ErrType, op, "%w", err))
	}
	return c.ibsend(op, outgoingChecked[T](c, op, b), dst, tag)
}

func (c *Comm) ibsend(op string, b []byte, dst, tag int) Request {
	if err := c.checkPeer(op, dst, tag); err != nil || dst == ProcNull {
		return c.refusedRequest(err)
	}
	limit := c.w.cfg.BufferedLimit
	n := int64(len(b))
	if c.w.cfg.Check {
		n -= checkBytes
	}
	if c.w.buffered.Add(n) > limit {
		c.w.buffered.Add(-n)
		return c.refusedRequest(c.refuse(ErrBuffer, op,
			"%d bytes to rank %d do not fit: the messages that wait may take %d bytes; raise Config.BufferedLimit (MUSTER_BUFFERED_LIMIT), or receive sooner",
			n, dst, limit))
	}
	r := c.isend(op, append([]byte(nil), b...), dst, tag, p2p.Standard)
	if !r.op.Active() {
		c.w.buffered.Add(-n)
		return r
	}
	c.w.background.Add(1)
	go func() {
		defer c.w.background.Done()
		_, _ = r.wait(engine.NoContext) // Bsend has already returned success; the next call reports a failed peer
		c.w.buffered.Add(-n)
	}()
	return Request{c: c}
}
