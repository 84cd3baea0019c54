package mpi

// Calls that send one message and receive another (MPI-4.1 section 3.10).

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Sendrecv sends one message and receives another. Ranks that exchange messages
// with it do not deadlock.
func Sendrecv[T, U Elem](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) (Status, error) {
	h := c.beginSendrecv("Sendrecv", dst, stag, len(sbuf)*sizeOf[T](), src, rtag, false).sends(rawBytes(sbuf))
	st, err := sendrecv(c, sbuf, dst, stag, rbuf, src, rtag)
	h.end(st, err)
	return st, err
}

func sendrecv[T, U Elem](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) (Status, error) {
	if err := checkSend[T](c, "Sendrecv", dst, stag); err != nil {
		return Status{}, err
	}
	r := irecvFor(c, "Sendrecv", rbuf, src, rtag)
	if err := r.refusal(); err != nil { // send nothing if the receive is refused
		return Status{}, err
	}
	if err := sendFor(c, "Sendrecv", sbuf, dst, stag, p2p.Standard); err != nil {
		r.Cancel()
		_, _ = r.wait(engine.NoContext)
		return Status{}, err
	}
	return r.wait(engine.NoContext)
}

// SendrecvReplace is [Sendrecv] with one buffer for both messages.
func SendrecvReplace[T Elem](c *Comm, buf []T, dst, stag, src, rtag int) (Status, error) {
	out := append([]T(nil), buf...)
	return Sendrecv(c, out, dst, stag, buf, src, rtag)
}

// Isendrecv starts a [Sendrecv]. The request is complete when both messages are; its
// Status is that of the received one. Until then sbuf must not be changed and rbuf must
// not be used. [Request.Cancel] applies to the receive.
func Isendrecv[T, U Elem](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) Request {
	h := c.beginSendrecv("Isendrecv", dst, stag, len(sbuf)*sizeOf[T](), src, rtag, true).sends(rawBytes(sbuf))
	return h.finishStart(isendrecv(c, sbuf, dst, stag, rbuf, src, rtag))
}

func isendrecv[T, U Elem](c *Comm, sbuf []T, dst, stag int, rbuf []U, src, rtag int) Request {
	const op = "Isendrecv"
	if err := checkSend[T](c, op, dst, stag); err != nil {
		return c.refusedRequest(err)
	}
	r := irecvFor(c, op, rbuf, src, rtag)
	if r.refusal() != nil {
		return r
	}
	s := isend(c, op, sbuf, dst, stag, p2p.Standard)
	switch {
	case !s.op.Active(): // a short message, or to ProcNull
		return r
	case !r.op.Active(): // from ProcNull
		return s.with(func(more *requestMore) { more.noStatus = true })
	}
	return r.with(func(more *requestMore) { more.send = &s })
}

// IsendrecvReplace is [Isendrecv] with one buffer for both messages: a copy of buf is
// sent.
func IsendrecvReplace[T Elem](c *Comm, buf []T, dst, stag, src, rtag int) Request {
	out := append([]T(nil), buf...)
	return Isendrecv(c, out, dst, stag, buf, src, rtag)
}

// checkSend returns an error if the send cannot be started. It precedes the receive, which
// may match a message at once and then cannot be cancelled.
func checkSend[T Elem](c *Comm, op string, dst, tag int) error {
	if !mayTravel[T](&c.w.types) {
		if err := admit[T](&c.w.types); err != nil {
			return c.refuse(ErrType, op, "%w", err)
		}
	}
	if uint(dst) >= uint(c.size) || uint(tag) > MaxTag {
		return c.checkPeer(op, dst, tag)
	}
	return nil
}
