package mpi

// Probes (MPI-4.1 section 3.8).

import (
	"context"
	"iter"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Probe waits for a message that Recv with the same arguments would receive, and
// returns its source, tag and length.
func (c *Comm) Probe(src, tag int) (Status, error) {
	h := c.begin("Probe", CallProbe, src, tag, 0)
	st, _, err := c.probe(engine.NoContext, "Probe", src, tag, false)
	h.end(st, err)
	return st, err
}

// Iprobe reports whether there is such a message.
func (c *Comm) Iprobe(src, tag int) (Status, bool, error) {
	h := c.begin("Iprobe", CallProbe, src, tag, 0)
	st, _, ok, err := c.look("Iprobe", src, tag, false)
	h.endProbe(ok, st, err)
	return st, ok, err
}

// Message is a message that a matched probe has removed from matching. Only Mrecv
// and Imrecv receive it, so that each of several goroutines that probe receives the
// message that it found.
type Message struct {
	c  *Comm
	g  *p2p.Msg
	st Status
}

// Mprobe waits for a message and removes it from matching.
func (c *Comm) Mprobe(src, tag int) (*Message, Status, error) {
	m, err := c.mprobe(engine.NoContext, src, tag)
	if err != nil {
		return nil, Status{}, err
	}
	return m, m.st, nil
}

func (c *Comm) mprobe(ctx context.Context, src, tag int) (*Message, error) {
	h := c.begin("Mprobe", CallMatch, src, tag, 0)
	m, err := c.match(ctx, "Mprobe", src, tag)
	if err != nil {
		h.end(Status{}, err)
		return nil, err
	}
	h.end(m.st, nil)
	return m, nil
}

// match waits for a message and removes it from matching, for the call op.
func (c *Comm) match(ctx context.Context, op string, src, tag int) (*Message, error) {
	st, g, err := c.probe(ctx, op, src, tag, true)
	if err != nil {
		return nil, err
	}
	return &Message{c, g, st}, nil
}

// Messages returns the messages that Recv with the same arguments would receive, as they
// arrive, each removed from matching like those of [Comm.Mprobe]: the body receives it with
// [Mrecv] or [Imrecv], or [Message.Status] decides how. The loop ends after a failure and
// when ctx ends, with an error.
func (c *Comm) Messages(ctx context.Context, src, tag int) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for {
			m, err := c.mprobe(ctx, src, tag)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Status returns the source, tag and length of the message.
func (m *Message) Status() Status { return m.st }

// Improbe reports whether there is a message, and removes it from matching if so.
func (c *Comm) Improbe(src, tag int) (*Message, Status, bool, error) {
	h := c.begin("Improbe", CallMatch, src, tag, 0)
	st, g, ok, err := c.look("Improbe", src, tag, true)
	h.endProbe(ok, st, err)
	if err != nil || !ok {
		return nil, st, false, err
	}
	return &Message{c, g, st}, st, true, nil
}

// Mrecv receives a matched message, once.
func Mrecv[T Elem](m *Message, buf []T) (Status, error) {
	h := m.c.begin("Mrecv", CallMrecv, m.st.Source, m.st.Tag, len(buf)*sizeOf[T]())
	st, err := imrecv(m, buf).wait(engine.NoContext)
	h.end(st, err)
	return st, err
}

// RecvSlice is [Recv] of a message of any length, into a slice that it allocates.
func RecvSlice[T Elem](c *Comm, src, tag int) ([]T, Status, error) {
	if err := admit[T](&c.w.types); err != nil {
		return nil, Status{}, c.refuse(ErrType, "RecvSlice", "%w", err)
	}
	h := c.begin("RecvSlice", CallRecv, src, tag, 0)
	m, err := c.match(engine.NoContext, "RecvSlice", src, tag)
	if err != nil {
		h.end(Status{}, err)
		return nil, Status{}, err
	}
	buf, st, err := mrecvSlice[T](m, "RecvSlice")
	h.end(st, err)
	return buf, st, err
}

// MrecvSlice is [RecvSlice] of a matched message.
func MrecvSlice[T Elem](m *Message) ([]T, Status, error) {
	h := m.c.begin("MrecvSlice", CallMrecv, m.st.Source, m.st.Tag, m.st.Bytes)
	buf, st, err := mrecvSlice[T](m, "MrecvSlice")
	h.end(st, err)
	return buf, st, err
}

func mrecvSlice[T Elem](m *Message, op string) ([]T, Status, error) {
	size := max(sizeOf[T](), 1)
	buf := make([]T, (m.st.Bytes+size-1)/size)
	st, err := imrecv(m, buf).wait(engine.NoContext)
	if err == nil && st.Bytes%size != 0 {
		err = m.c.refuse(ErrType, op, "the message has %d bytes, which are no whole number of elements of %d", st.Bytes, size)
	}
	return buf, st, err
}

// Imrecv starts to receive a matched message.
func Imrecv[T Elem](m *Message, buf []T) Request {
	h := m.c.beginStart("Imrecv", CallMrecv, m.st.Source, m.st.Tag, len(buf)*sizeOf[T]())
	return h.finishStart(imrecv(m, buf))
}

func imrecv[T Elem](m *Message, buf []T) Request {
	c := m.c
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		return c.refusedRequest(c.refuse(ErrType, "Mrecv", "%w", err))
	}
	if m.st.Source == ProcNull {
		return Request{c: c}
	}
	if m.g == nil {
		return c.refusedRequest(c.refuse(ErrRequest, "Mrecv", "the message has been received already"))
	}
	g := m.g
	m.g = nil
	if c.w.cfg.Check {
		return checkedIrecv(c, noteOf[T](c, "Mrecv"), b, m.st.Source, func(packed []byte) Request { return Request{c: c, op: c.e.Mrecv(&c.pt, g, packed)} })
	}
	return Request{c: c, op: c.e.Mrecv(&c.pt, g, b)}
}

func (c *Comm) probe(ctx context.Context, op string, src, tag int, take bool) (Status, *p2p.Msg, error) {
	st, g, ok, err := c.look(op, src, tag, take)
	if err != nil || ok {
		return st, g, err
	}
	peer := src
	if src >= 0 {
		peer = c.world(src)
	}
	found, g, err := c.e.AwaitProbe(ctx, &c.pt, op, int32(src), int32(peer), int32(tag), take)
	if err != nil {
		return Status{}, nil, c.failure(err, op, src, tag, 0)
	}
	return c.probeStatus(found), g, nil
}

func (c *Comm) look(op string, src, tag int, take bool) (Status, *p2p.Msg, bool, error) {
	if _, err := c.source(op, src, tag); err != nil {
		return Status{}, nil, false, err
	}
	if src == ProcNull {
		return noStatus, nil, true, nil
	}
	st, g, ok, err := c.e.Probe(c.ctx, int32(src), int32(tag), take)
	if err != nil {
		return Status{}, nil, false, c.failure(err, op, src, tag, 0)
	}
	return c.probeStatus(st), g, ok, nil
}

// probeStatus returns the status of a message without the header of check mode.
func (c *Comm) probeStatus(st engine.Status) Status {
	if c.w.cfg.Check && st.Bytes >= checkBytes {
		st.Bytes -= checkBytes
	}
	return Status(st)
}
