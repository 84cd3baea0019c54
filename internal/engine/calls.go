package engine

// The calls of a rank, on bytes. Package mpi translates types, communicators and
// layouts into them.

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rankset"
)

// Comm is the engine's view of a communicator.
type Comm struct {
	Ctx  uint32
	Rank int32 // of this rank
	Name *Name // for the board
	// For collectives:
	Ranks *rankset.List // rank in the world of each rank; nil: they are equal
	Size  int
	Grant int  // bytes that a collective with unordered sends lets be under way to this rank over a network; 0: no limit
	Past  Past // this rank's collective calls; nil before the first one (broken.go)
}

// Name is the name of a communicator, which may change while it is in use.
type Name struct{ text atomic.Pointer[string] }

// NewName returns a Name with a text.
func NewName(text string) *Name {
	n := new(Name)
	n.Set(text)
	return n
}

// Set changes the text.
func (n *Name) Set(text string) { n.text.Store(&text) }

func (n *Name) String() string {
	if n == nil {
		return ""
	}
	return *n.text.Load()
}

// Status describes a received message. Package mpi exposes it to users.
type Status struct {
	Source    int // rank in the communicator
	Tag       int
	Bytes     int // length of the message
	Cancelled bool
}

// Op is a pending operation. The zero Op has completed.
type Op struct {
	x      *p2p.Xfer
	handle uint64
}

// Active reports whether there is something to wait for.
func (o Op) Active() bool { return o.x != nil }

// Handle returns the operation's handle, 0 for none.
func (o Op) Handle() uint64 { return o.handle }

// ErrStale reports that an operation was completed before.
var ErrStale = errors.New("this request has been completed already")

// ErrShared reports that an operation has a waiter already; it can have only one.
var ErrShared = errors.New("another goroutine is waiting for this request")

// Anyone is the world rank of a receive from any source.
const Anyone = -1

// Recv receives a message. from is the world rank or Anyone, src the rank in the
// communicator.
func (r *Engine) Recv(c *Comm, op string, from int, src, tag int32, buf []byte) (Status, error) {
	e := r.lock()
	x := e.post1(c.Ctx, from, src, tag, buf)
	if x.Done() {
		e.putOff()
	}
	e.waitOne(x, c, op)
	st, err := statusOf(x), x.Err
	e.m.Free(x)
	e.unlock()
	return st, err
}

// irecvPolls is the largest buffer for which Irecv does not poll. It is smaller than the
// messages that use a rendezvous on any device.
const irecvPolls = 4 << 10

// Irecv starts a receive.
func (r *Engine) Irecv(c *Comm, from int, src, tag int32, buf []byte) Op {
	e := r.lock()
	if l := e.links.last; l != nil && l.Rank == from && e.failed == nil && len(buf) <= irecvPolls {
		// post1, inlined
		x := e.m.New()
		x.Ctx, x.Source, x.Tag, x.Buf, x.Link = c.Ctx, src, tag, buf, l
		e.m.Recv(x)
		if len(e.m.Out.WR)|len(e.m.Out.Done) != 0 {
			e.settle()
		}
		op := Op{x, x.Handle()}
		if x.Done() {
			e.putOff()
		}
		e.unlock()
		return op
	}
	x := e.post1(c.Ctx, from, src, tag, buf)
	if len(buf) > irecvPolls && !x.Done() {
		// If the sender was first, this poll finds its RTS, and the rendezvous begins
		// inside this call (T1 4.2). It takes one packet: more would arrive before the
		// receives still to be posted and be kept as unexpected. A short message gains
		// nothing from an early poll. The receive is posted first, so that an eager
		// message goes straight into its buffer.
		if e.waits.driver == nil {
			d := e.laneOf(x)
			e.work(d, d.cq.Poll(e.comps[:1]))
		}
		// If the receiver is first, it sends an RTR with its buffer's address. This
		// follows the poll, so that no RTR is sent for a message that has arrived.
		e.m.Offer(x)
		if len(e.m.Out.WR) != 0 {
			e.settle()
		}
	}
	if x.Done() {
		e.putOff()
	}
	op := Op{x, x.Handle()}
	e.unlockStarted(x)
	return op
}

// post1 posts a receive.
func (e *Held) post1(ctx uint32, from int, src, tag int32, buf []byte) *p2p.Xfer {
	x := e.m.New()
	x.Ctx, x.Source, x.Tag, x.Buf = ctx, src, tag, buf
	if from != Anyone {
		if x.Link = e.links.last; x.Link == nil || x.Link.Rank != from {
			x.Link = e.link(from)
		}
	}
	if e.failed != nil {
		e.m.Refuse(x, e.failed)
		return x
	}
	if e.ft.dead != nil && from == Anyone && e.m.Look(ctx, src, tag) == nil {
		if err := e.unacknowledgedDeath(ctx); err != nil {
			e.m.Refuse(x, err)
			return x
		}
	}
	e.m.Recv(x)
	if len(e.m.Out.WR)|len(e.m.Out.Done) != 0 {
		e.settle()
	}
	return x
}

func statusOf(x *p2p.Xfer) Status {
	return Status{Source: int(x.Source), Tag: int(x.Tag), Bytes: x.Len, Cancelled: x.Cancelled}
}

// Failure is the error of an operation that a non-blocking call started, with a
// description of the operation.
type Failure struct {
	Send bool
	Peer int // rank in the world, or Anyone
	Tag  int
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// collect frees a completed operation and returns its result.
func (e *Held) collect(o Op) (Status, error) {
	st := statusOf(o.x)
	var err error
	if o.x.Err != nil {
		f := &Failure{Send: o.x.Send, Peer: Anyone, Tag: st.Tag, Err: o.x.Err}
		if o.x.Link != nil {
			f.Peer = o.x.Link.Rank
		}
		err = f
	}
	e.m.Free(o.x)
	return st, err
}

// stale reports whether the operation was completed before. Its Xfer may be in use for
// another one by now.
func (o Op) stale() bool { return o.x != nil && o.x.Handle() != o.handle }

// Wait waits for an operation.
func (r *Engine) Wait(ctx context.Context, c *Comm, op string, o Op) (Status, error) {
	if o.x == nil {
		return Status{Source: p2p.AnySource, Tag: p2p.AnyTag}, nil
	}
	e := r.lock()
	defer e.unlock()
	if ctx == nil {
		return e.Wait(c, op, o)
	}
	if err := o.check(); err != nil {
		return Status{}, err
	}
	if err := e.waitSlow(ctx, c, op, o.x); err != nil {
		return Status{}, err
	}
	if o.stale() {
		return Status{}, ErrStale
	}
	return e.collect(o)
}

// check returns an error if an operation cannot be waited for.
func (o Op) check() error {
	if o.stale() {
		return ErrStale
	}
	if o.x.Owner != nil {
		return ErrShared
	}
	return nil
}

// Wait waits for an operation, which is active.
func (e *Held) Wait(c *Comm, op string, o Op) (Status, error) {
	if x := o.x; x.Done() && x.Handle() == o.handle && x.Err == nil && x.Owner == nil {
		st := statusOf(x)
		e.m.Free(x)
		return st, nil
	}
	if err := o.check(); err != nil {
		return Status{}, err
	}
	if !o.x.Done() {
		e.waitOne(o.x, c, op)
		if o.stale() { // another goroutine has completed it by Test
			return Status{}, ErrStale
		}
	}
	return e.collect(o)
}

// Test reports whether an operation has ended, and completes it if so.
func (r *Engine) Test(o Op) (Status, bool, error) {
	if o.x == nil {
		return Status{Source: p2p.AnySource, Tag: p2p.AnyTag}, true, nil
	}
	e := r.lock()
	defer e.unlock()
	if o.stale() {
		return Status{}, true, ErrStale
	}
	if !o.x.Done() {
		e.look()
	}
	if o.stale() { // look may have released the lock
		return Status{}, true, ErrStale
	}
	if !o.x.Done() {
		return Status{}, false, nil
	}
	st, err := e.collect(o)
	return st, true, err
}

// Done reports whether an operation has ended. It does not complete it.
func (r *Engine) Done(o Op) bool {
	if o.x == nil {
		return true
	}
	e := r.lock()
	defer e.unlock()
	return o.stale() || o.x.Done()
}

// OpFailed reports whether an operation has ended with an error, or was completed before. It
// does not complete it.
func (r *Engine) OpFailed(o Op) bool {
	if o.x == nil {
		return false
	}
	e := r.lock()
	defer e.unlock()
	return o.stale() || o.x.Done() && o.x.Err != nil
}

// look polls for a caller that does not block. After several polls without result it
// yields, because the peer may need this core to produce the message. While the driver
// is parked in the device, no other goroutine may poll; an event wakes the driver, and
// it must get the lock then.
func (e *Held) look() {
	e.calls++
	found := !e.waits.parked && e.poll() > 0
	if t := e.thread; t != nil {
		t.polled = true
	}
	if len(e.links.connecting) > 0 {
		e.openAll()
	}
	if found {
		e.waits.idleLooks = 0
		return
	}
	if e.waits.idleLooks++; e.waits.idleLooks&15 == 0 || e.waits.parked {
		e.checkDeaths()
		looks, beside := e.waits.idleLooks, e.beside
		e.mu.unlock()
		pollBeside(beside)
		e.yieldCore(looks)
		e.mu.lock()
	}
}

// WaitSome waits until at least need of the operations have ended, and leaves them for
// Test to complete. Ended and stale operations count.
func (r *Engine) WaitSome(ctx context.Context, c *Comm, op string, ops []Op, need int) error {
	e := r.lock()
	defer e.unlock()
	w := e.waits.get()
	defer e.waits.put(w)
	e.waits.some = e.waits.some[:0]
	xs := e.waits.some
	e.waits.some = nil // a concurrent call allocates its own
	for _, o := range ops {
		switch {
		case o.x == nil || o.stale():
			need--
		case o.x.Owner != nil:
			e.waits.some = xs
			return ErrShared
		default:
			xs = append(xs, o.x)
		}
	}
	var err error
	if need > 0 {
		err = e.wait(ctx, c, op, w, xs, need)
	}
	clear(xs)
	e.waits.some = xs
	return err
}

// Cancel tries to cancel a receive. It returns true if the receive is cancelled, or will
// be when the sender has answered, unless the message was sent before; the Status
// reports which. The operation must still be waited for.
func (r *Engine) Cancel(o Op) bool {
	e := r.lock()
	defer e.unlock()
	if o.x == nil || o.stale() {
		return false
	}
	cancelled, pending := e.m.Cancel(o.x)
	e.settle()
	return cancelled || pending
}

// Probe looks for a message without receiving it. With take it also removes the message
// from matching, for Mrecv.
func (r *Engine) Probe(ctxID uint32, src, tag int32, take bool) (Status, *p2p.Msg, bool, error) {
	e := r.lock()
	defer e.unlock()
	if e.failed != nil {
		return Status{}, nil, false, e.failed
	}
	g := e.find(ctxID, src, tag, take)
	if g == nil {
		e.look()
		g = e.find(ctxID, src, tag, take)
	}
	if g == nil {
		err := e.failed
		if err == nil {
			err = e.lostSource(ctxID, src)
		}
		return Status{}, nil, false, err
	}
	return Status{Source: int(g.Source), Tag: int(g.Tag), Bytes: g.Total}, g, true, nil
}

func (e *Held) find(ctx uint32, src, tag int32, take bool) *p2p.Msg {
	if take {
		return e.m.Take(ctx, src, tag)
	}
	return e.m.Look(ctx, src, tag)
}

// AwaitProbe is Probe that waits for the message, from src, which is peer in the world.
func (r *Engine) AwaitProbe(ctx context.Context, c *Comm, op string, src, peer, tag int32, take bool) (Status, *p2p.Msg, error) {
	e := r.lock()
	defer e.unlock()
	w := e.waits.get()
	e.await(ctx, &awaited{w: w, c: c, op: op, probe: true, src: src, tag: tag, worldPeer: peer})
	e.waits.put(w)
	switch g := e.find(c.Ctx, src, tag, take); {
	case e.failed != nil:
		return Status{}, nil, e.failed
	case g == nil && e.lostSource(c.Ctx, src) != nil:
		return Status{}, nil, e.lostSource(c.Ctx, src)
	case g == nil:
		return Status{}, nil, GaveUp(ctx)
	default:
		return Status{Source: int(g.Source), Tag: int(g.Tag), Bytes: g.Total}, g, nil
	}
}

// Mrecv receives a message that Probe has taken.
func (r *Engine) Mrecv(c *Comm, g *p2p.Msg, buf []byte) Op {
	e := r.lock()
	x := e.m.New()
	x.Ctx, x.Source, x.Tag, x.Buf, x.Link = c.Ctx, g.Source, g.Tag, buf, g.Link
	if e.failed != nil {
		e.m.Refuse(x, e.failed)
	} else {
		e.m.Claim(x, g)
		e.settle()
	}
	op := Op{x, x.Handle()}
	e.unlockStarted(x)
	return op
}

// Progress polls once, for applications that compute for long without other calls.
func (r *Engine) Progress() {
	e := r.lock()
	e.look()
	e.unlock()
}
