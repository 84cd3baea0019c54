package mpi

// Blocking point-to-point calls (MPI-4.1 sections 3.2, 3.4, 3.10).

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Status describes a received or probed message.
type Status struct {
	// Source is the sender's rank in the communicator.
	Source int
	// Tag is the tag of the message.
	Tag int
	// Bytes is the length of the message. [Count] converts it to elements.
	Bytes int
	// Cancelled reports whether [Request.Cancel] has cancelled the receive; the
	// other fields are meaningless then.
	Cancelled bool
}

// Count returns the length of a received message in elements of T, and whether it
// is a whole number of them.
func Count[T Elem](s Status) (n int, whole bool) {
	size := sizeOf[T]()
	if size == 0 {
		return 0, s.Bytes == 0
	}
	return s.Bytes / size, s.Bytes%size == 0
}

var noStatus = Status{Source: ProcNull, Tag: AnyTag}

// Send sends buf to rank dst. It returns when buf may be changed again, possibly
// before the message is received.
func Send[T Elem](c *Comm, buf []T, dst, tag int) error {
	if !mayTravel[T](&c.w.types) {
		if err := admit[T](&c.w.types); err != nil {
			return c.refuse(ErrType, "Send", "%w", err)
		}
		if c.w.types.slow {
			return send(c, "Send", buf, dst, tag, p2p.Standard)
		}
	}
	if uint(dst) >= uint(c.size) || uint(tag) > MaxTag {
		return c.send("Send", rawBytes(buf), dst, tag, p2p.Standard)
	}
	if err := c.e.Send(&c.pt, "Send", c.world(dst), int32(tag), rawBytes(buf), p2p.Standard); err != nil {
		return c.failure(err, "Send", dst, tag, 0)
	}
	return nil
}

// Ssend sends buf in synchronous mode: it returns when the receive has started.
func Ssend[T Elem](c *Comm, buf []T, dst, tag int) error {
	return send(c, "Ssend", buf, dst, tag, p2p.Synchronous)
}

// Rsend sends buf in ready mode: the matching receive must have been posted.
func Rsend[T Elem](c *Comm, buf []T, dst, tag int) error {
	return send(c, "Rsend", buf, dst, tag, p2p.Ready)
}

// send is sendFor that hooks see.
func send[T Elem](c *Comm, op string, buf []T, dst, tag int, mode p2p.Mode) error {
	h := c.begin(op, CallSend, dst, tag, len(buf)*sizeOf[T]()).sends(rawBytes(buf))
	return h.finish(sendFor(c, op, buf, dst, tag, mode))
}

func sendFor[T Elem](c *Comm, op string, buf []T, dst, tag int, mode p2p.Mode) error {
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		return c.refuse(ErrType, op, "%w", err)
	}
	if c.w.cfg.Check {
		n := noteOf[T](c, op)
		return c.sendNamed(op, n.waitName(), n.stamp(b), dst, tag, mode)
	}
	return c.send(op, b, dst, tag, mode)
}

func (c *Comm) send(op string, b []byte, dst, tag int, mode p2p.Mode) error {
	return c.sendNamed(op, op, b, dst, tag, mode)
}

// sendNamed is send with the name of the call for the report of a stuck job.
func (c *Comm) sendNamed(op, name string, b []byte, dst, tag int, mode p2p.Mode) error {
	if uint(dst) >= uint(c.size) || uint(tag) > MaxTag {
		if err := c.checkPeer(op, dst, tag); err != nil || dst == ProcNull {
			return err
		}
	}
	if err := c.e.Send(&c.pt, name, c.world(dst), int32(tag), b, mode); err != nil {
		return c.failure(err, op, dst, tag, 0)
	}
	return nil
}

// Recv receives a message from rank src, or AnySource, with the given tag, or
// AnyTag. The message may be shorter than buf; the Status holds its length. A longer
// message is an error of class ErrTruncate, and buf holds its first part.
func Recv[T Elem](c *Comm, buf []T, src, tag int) (Status, error) {
	if !mayTravel[T](&c.w.types) {
		if err := admit[T](&c.w.types); err != nil {
			return Status{}, c.refuse(ErrType, "Recv", "%w", err)
		}
		if c.w.types.slow {
			return recvSlow(c, buf, src, tag)
		}
	}
	if uint(src) >= uint(c.size) || uint(tag) > MaxTag {
		return c.recv("Recv", rawBytes(buf), src, tag)
	}
	st, err := c.e.Recv(&c.pt, "Recv", c.world(src), int32(src), int32(tag), rawBytes(buf))
	if err != nil {
		return Status(st), c.failure(err, "Recv", src, tag, st.Bytes)
	}
	return Status(st), nil
}

// recvSlow is Recv in check mode or with hooks.
func recvSlow[T Elem](c *Comm, buf []T, src, tag int) (st Status, err error) {
	h := c.begin("Recv", CallRecv, src, tag, len(buf)*sizeOf[T]())
	if c.w.cfg.Check {
		st, err = irecvBytes[T](c, "Recv", rawBytes(buf), src, tag).wait(engine.NoContext)
	} else {
		st, err = c.recv("Recv", rawBytes(buf), src, tag)
	}
	h.end(st, err)
	return st, err
}

func (c *Comm) recv(op string, b []byte, src, tag int) (Status, error) {
	from, err := c.source(op, src, tag)
	if err != nil || src == ProcNull {
		return noStatus, err
	}
	st, err := c.e.Recv(&c.pt, op, from, int32(src), int32(tag), b)
	if err != nil {
		return Status(st), c.failure(err, op, src, tag, st.Bytes)
	}
	return Status(st), nil
}

// source checks the source and tag of a receive and returns the world rank of the
// source.
func (c *Comm) source(op string, src, tag int) (int, error) {
	if uint(src) < uint(c.size) && uint(tag) <= MaxTag {
		return c.world(src), nil
	}
	if tag == AnyTag {
		tag = 0
	}
	if src == AnySource {
		if err := c.checkPeer(op, 0, tag); err != nil {
			return 0, err
		}
		return engine.Anyone, nil
	}
	if err := c.checkPeer(op, src, tag); err != nil || src == ProcNull {
		return 0, err
	}
	return c.world(src), nil
}

// checkPeer returns an error if the rank or tag is invalid.
func (c *Comm) checkPeer(op string, peer, tag int) error {
	if err := c.usable(op); err != nil {
		return err
	}
	if peer != ProcNull && (peer < 0 || peer >= c.size) {
		return c.refuse(ErrRank, op, "there is no rank %d: %s has ranks 0 to %d", peer, c.Name(), c.size-1)
	}
	if tag < 0 || tag > MaxTag {
		return c.refuse(ErrTag, op, "tag %d is not in the range 0 to %d", tag, MaxTag)
	}
	return nil
}
