package engine

// Collectives. A graph of package sched is run over the same machine and the same
// links as other messages, in the context of its communicator's collectives, with
// the lock held. From the start to the end:
//
//	begin      posts what waits for nothing (sched.Run.Start)
//	Post       a send or receive; a short send is over at once and leaves nothing
//	partEnded  one has ended; deliver calls it, whoever has polled: the run goes on
//	over       nothing is left; the scratch memory and the Collective are free again
//
// An operation without a message of its own stands for the whole. It ends in over,
// so a collective is waited for and tested like a send or receive, by the same
// code, and one that nobody waits for moves on whenever anybody polls.

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/sched"
)

// Nobody is the Source of an operation that has none.
const Nobody = -2

// Reducer combines elements: inout = in ∘ inout. It is called with the engine's
// lock held and must not call the engine (MPI-4.1 section 6.9.5 forbids it to
// users' functions). An error ends the collectives of the communicator on all ranks.
type Reducer interface {
	Reduce(inout, in []byte) error
}

// Collective runs a graph, again and again, one run at a time. The exported fields
// are set while it is not Active, with the lock held.
type Collective struct {
	Call    string  // what the user has called, for errors
	Comm    *Comm   // whose context and rank its messages bear
	Ranks   []int32 // rank in the world of each rank of the graph; nil: they are equal
	Tag     int32
	Streams int32  // stream n of the graph, but for the first, has the tag Streams+n
	Sign    uint32 // of its messages: those of another call have another
	Number  uint64 // and What: the call, for other ranks (Past)
	What    uint64
	Reducer Reducer
	Meter   Meter // hears of the next run, if not nil
	Timed   bool  // and when what happens in it

	e        *Engine
	run      sched.Run
	parts    []part
	waiter   p2p.Waiter // the owner of its messages
	whole    *p2p.Xfer  // stands for all of it; nil while it does not run
	bad      error      // what has gone wrong without stopping it
	index    int        // in Engine.active
	arrivals *arrivals  // who has arrived, if the graph asks; else nil
	pool     *CollectivePool
	next     *Collective // in pool
}

// part is what is kept for an operation of the graph.
type part struct {
	link *p2p.Link // found once
	x    *p2p.Xfer // while it is under way
}

// CollectivePool keeps the collectives of one graph that do not run. The zero pool
// is empty.
type CollectivePool struct{ free *Collective }

// Take gives one that does not run, or nil. The lock is held.
func (p *CollectivePool) Take() *Collective {
	co := p.free
	if co != nil {
		p.free, co.next = co.next, nil
	}
	return co
}

// NewCollective makes one for a graph. It goes to the pool, if there is one, each
// time that it has ended.
func (e *Engine) NewCollective(g *sched.Graph, c *Comm, ranks []int32, pool *CollectivePool) *Collective {
	co := &Collective{Comm: c, Ranks: ranks, e: e, pool: pool, parts: make([]part, len(g.Ops))}
	co.run.Graph, co.run.Port = g, co
	co.waiter.Whole = co
	if g.Ports > 0 {
		co.trackArrivals()
	}
	return co
}

// Active reports whether it runs.
func (co *Collective) Active() bool { return co.whole != nil }

// RunCollective runs a collective to its end. The lock is held.
func (e *Engine) RunCollective(co *Collective, in, out []byte) error {
	call, c := co.Call, co.Comm // co may serve again when it has ended
	x := e.begin(co, in, out, true)
	if !x.Done() {
		e.waitOne(x, c, call)
	}
	err := x.Err
	e.m.Free(x)
	return err
}

// StartCollective starts one. If it is over at once and well, the Op is zero. The
// lock is held.
func (e *Engine) StartCollective(co *Collective, in, out []byte) Op {
	x := e.begin(co, in, out, false)
	if !x.Done() && e.driver == nil {
		// What the others have sent may be here already: a caller that goes on to
		// compute then has one step less to do at the end.
		e.poll()
	}
	if x.Done() && x.Err == nil {
		e.m.Free(x)
		return Op{}
	}
	return Op{x, x.Handle()}
}

// begin starts a run; blocking says that the caller will do nothing but wait for it.
func (e *Engine) begin(co *Collective, in, out []byte, blocking bool) *p2p.Xfer {
	x := e.m.New()
	x.Source, x.Tag, x.Ctx = Nobody, p2p.AnyTag, co.Comm.Ctx
	if e.broken != nil && e.broken[x.Ctx] != nil {
		e.m.Refuse(x, &PartError{Call: co.Call, Err: e.broken[x.Ctx]})
		co.free()
		return x
	}
	co.whole, co.bad = x, nil
	if co.arrivals != nil {
		co.arrivals.reset(blocking)
		e.aware++
	}
	e.collectives++
	co.index = len(e.active)
	e.active = append(e.active, co)
	co.run.Mem = [3][]byte{in, out, e.getScratch(co.run.Graph.Tmp)}
	if co.Timed {
		co.Meter.Begin(e.now())
	}
	co.run.Start()
	e.advanced(co)
	if len(e.m.Out.Done)|len(e.m.Out.Notes)|len(e.blocked) != 0 {
		e.settle()
	}
	return x
}

// moved sees whether a run that went on has failed or ended.
func (e *Engine) advanced(co *Collective) {
	if co.arrivals != nil {
		e.noteHeld(co)
	}
	if co.run.Err() != nil {
		e.abandon(co)
	}
	if co.run.Done() {
		e.finishRun(co)
	}
}

// Post starts a message of the run. What the device does not take at once waits in
// the link, like that of any send. Nothing is polled here: the caller may be
// working on what a poll has brought.
func (co *Collective) Post(_ *sched.Run, id int, op *sched.Op, b []byte) (ended bool, err error) {
	e, p := co.e, &co.parts[id]
	l := p.link
	if l == nil {
		l = e.link(co.world(op.Peer))
		p.link = l
	}
	var x *p2p.Xfer
	tag := co.tag(op)
	if op.Kind == sched.Send {
		e.m.Sign = co.Sign
		wr := e.m.SendOne(l, co.Comm.Ctx, co.Comm.Rank, tag, b)
		if wr != nil && l.Open && len(l.Wait) == 0 {
			if n, _ := l.QP.PostSend(wr[:]); n == 1 {
				e.m.Sign = 0
				return true, nil
			}
		}
		switch sent, tried := e.sendNow(l, co.Comm, tag, b, wr); {
		case sent:
			e.m.Sign = 0
			return true, nil
		case tried:
			x = e.adopt(l)
		default:
			x = e.m.New()
			x.Link, x.Ctx, x.Source, x.Tag, x.Buf = l, co.Comm.Ctx, co.Comm.Rank, tag, b
			e.m.Send(x)
		}
		e.m.Sign = 0
	} else {
		if e.failed != nil {
			return true, co.failure(op, e.failed)
		}
		x = e.m.New()
		x.Link, x.Ctx, x.Source, x.Tag, x.Buf, x.Sign = l, co.Comm.Ctx, op.Peer, tag, b, co.Sign
		e.m.Recv(x)
		if co.arrivals != nil {
			co.announce(x)
		}
	}
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	if x.Done() {
		co.noteArrived(op)
		err := co.outcome(x, op)
		e.m.Free(x)
		return true, err
	}
	x.Owner, x.Part, p.x = &co.waiter, int32(id), x
	return false, nil
}

// tag is the tag of a message: that of the collective, or of a stream.
func (co *Collective) tag(op *sched.Op) int32 {
	if op.Stream == 0 {
		return co.Tag
	}
	return co.Streams + int32(op.Stream)
}

func (co *Collective) world(rank int32) int {
	if co.Ranks == nil {
		return int(rank)
	}
	return int(co.Ranks[rank])
}

// Reduce is the run's reduction.
func (co *Collective) Reduce(r *sched.Run, inout, in []byte) {
	if err := co.Reducer.Reduce(inout, in); err != nil {
		co.e.breakComm(co.Comm, err)
		r.Fail(err)
	}
}

// partEnded lets a collective go on when one of its messages has ended.
func (e *Engine) partEnded(co *Collective, x *p2p.Xfer) {
	id := int(x.Part)
	co.parts[id].x = nil
	op := &co.run.Graph.Ops[id]
	co.noteArrived(op)
	if co.Timed {
		co.Meter.Event(e.now())
	}
	err := co.outcome(x, op)
	e.m.Free(x)
	co.run.Ended(id, err)
	e.advanced(co)
}

// outcome is the error of a message that has ended. A message of another length
// than expected is one too, but does not stop the run: the other ranks would wait
// for what it has still to send, and only those that see the difference can tell.
func (co *Collective) outcome(x *p2p.Xfer, op *sched.Op) error {
	switch {
	case x.Err == nil && !x.Differs && !x.Cancelled && (x.Send || x.Len == op.Dst.Len):
		return nil
	case x.Cancelled: // by abandon, or with its context
		if err := co.run.Err(); err != nil {
			return err
		}
		return co.e.brokenError(co.Comm.Ctx)
	case x.Differs:
		err := &MismatchError{Call: co.Call, Peer: int(op.Peer), Mine: co.Sign, Theirs: x.Sign, Got: x.Total(), Want: op.Dst.Len}
		co.e.breakComm(co.Comm, err)
		return err
	case x.Err == nil || errors.Is(x.Err, p2p.ErrTruncated):
		if co.bad == nil {
			co.bad = &PartError{Call: co.Call, Peer: int(op.Peer), Got: x.Total(), Want: op.Dst.Len}
		}
		return nil
	}
	return co.failure(op, x.Err)
}

func (co *Collective) failure(op *sched.Op, err error) error {
	return &PartError{Call: co.Call, Send: op.Kind == sched.Send, Peer: int(op.Peer), Err: err}
}

// PartError says which message of a collective ended badly. If Err is nil, it had
// another length than expected.
type PartError struct {
	Call      string
	Send      bool
	Peer      int // rank in the communicator
	Got, Want int // bytes
	Err       error
}

func (p *PartError) Error() string {
	if p.Err != nil {
		return p.Err.Error()
	}
	return fmt.Sprintf("rank %d sent %d bytes where this rank expects %d: the counts differ between ranks", p.Peer, p.Got, p.Want)
}

// Unwrap gives the cause.
func (p *PartError) Unwrap() error { return p.Err }

// abandon takes back the receives of a run that has failed. Nobody may be left to
// send to them: who waits for this rank cannot go on either. Sends end by
// themselves.
func (e *Engine) abandon(co *Collective) {
	for i := range co.parts {
		if x := co.parts[i].x; x != nil && !x.Send && !x.Done() {
			e.m.Cancel(x)
		}
	}
	if len(e.m.Out.WR) > 0 {
		e.flush() // offers that are taken back
	}
}

// over ends a collective.
func (e *Engine) finishRun(co *Collective) {
	x, err := co.whole, co.run.Err()
	if err == nil {
		err = co.bad
	}
	if co.arrivals != nil {
		e.noteFinished(co)
	}
	if co.Meter != nil {
		e.reportRun(co)
	}
	e.putScratch(co.run.Mem[sched.Tmp])
	co.run.Mem = [3][]byte{} // or it would keep the user's buffers alive
	last := len(e.active) - 1
	e.active[last].index = co.index
	e.active[co.index] = e.active[last]
	e.active[last] = nil
	e.active = e.active[:last]
	co.free()
	e.m.Refuse(x, err)
}

// free gives a collective that does not run any more to its pool.
func (co *Collective) free() {
	co.whole = nil
	if co.pool != nil {
		co.next, co.pool.free = co.pool.free, co
	}
}

// partAwaited is the message that an operation that stands for a collective waits
// for, a receive if there is one; nil if it stands for none.
func (e *Engine) partAwaited(x *p2p.Xfer) (awaited *p2p.Xfer) {
	for _, co := range e.active {
		if co.whole != x {
			continue
		}
		for i := range co.parts {
			if p := co.parts[i].x; p != nil && (awaited == nil || awaited.Send && !p.Send) {
				awaited = p
			}
		}
	}
	return awaited
}

// Scratch memory is shared by all collectives of a rank. It is given back at the
// end of each run, and the same memory serves the next one of that size.
const (
	keepTmps = 8        // pieces that are kept
	keepTmp  = 64 << 20 // the largest that is
)

// borrow takes n bytes of scratch memory: the smallest free piece that will do.
func (e *Engine) getScratch(n int) []byte {
	if n == 0 {
		return nil
	}
	best := -1
	for i, t := range e.tmps {
		if cap(t) >= n && (best < 0 || cap(t) < cap(e.tmps[best])) {
			best = i
		}
	}
	if best < 0 {
		// Powers of two, so that calls of slowly growing sizes settle soon.
		return make([]byte, n, 1<<bits.Len(uint(max(n, 64)-1)))
	}
	t := e.tmps[best]
	last := len(e.tmps) - 1
	e.tmps[best], e.tmps[last] = e.tmps[last], nil
	e.tmps = e.tmps[:last]
	return t[:n]
}

func (e *Engine) putScratch(t []byte) {
	if cap(t) == 0 || cap(t) > keepTmp {
		return
	}
	if len(e.tmps) < keepTmps {
		e.tmps = append(e.tmps, t)
		return
	}
	least := 0
	for i := range e.tmps {
		if cap(e.tmps[i]) < cap(e.tmps[least]) {
			least = i
		}
	}
	if cap(t) > cap(e.tmps[least]) {
		e.tmps[least] = t
	}
}
