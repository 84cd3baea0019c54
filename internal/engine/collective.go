package engine

// Collectives. A graph of package sched runs over the same machine and links as other
// messages, in the context of its communicator's collectives, with the lock held. In
// order:
//
//	begin      posts the operations without dependencies (sched.Run.Start)
//	Post       starts a send or receive; a short send completes at once
//	partEnded  continues the run when a message has completed; deliver calls it,
//	           whichever goroutine polls
//	finishRun  completes the collective and frees its scratch memory
//
// An operation without a message represents the whole collective and completes in
// finishRun. So the code that waits for and tests sends and receives also serves
// collectives, and every poll of any goroutine advances them.

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rankset"
	"github.com/muster-mpi/muster/internal/sched"
)

// Nobody is the Source of an operation without a source.
const Nobody = -2

// Reducer combines elements: inout = in ∘ inout. It uses the engine only to run a user
// function (MPI-4.1 section 6.9.5 forbids these to call it). An error ends the collectives of
// the communicator on all ranks.
type Reducer interface {
	Reduce(e *Held, inout, in []byte) error
}

// CollectiveCall is what the runs of a Collective have in common.
type CollectiveCall struct {
	Call    string // name of the MPI call, for errors
	Tag     int32
	Streams int32  // stream n > 0 of the graph has the tag Streams+n
	Sign    uint32 // signature of its messages, which identifies the call
	Number  uint64 // with What: the call as reported to other ranks (Past)
	What    uint64
	Reducer Reducer
}

// Collective runs a graph any number of times, one run at a time. The exported fields
// are set while it is not Active, and its methods called, with the lock held.
type Collective struct {
	CollectiveCall
	Comm    *Comm         // context and rank of its messages
	Ranks   *rankset.List // world rank of each rank of the graph; nil: the same
	Segment []byte        // memory that the ranks of the node share, for the next run; nil: it uses messages
	// Vote, if not nil, has this rank's vote when the next run starts. Messages carry the
	// largest vote that their sender has, and it has the largest vote received when the
	// run ends.
	Vote  *uint8
	Meter Meter // measures the next run, if not nil
	Timed bool  // Meter also gets the times of events

	e        *Held
	run      sched.Run
	parts    []part
	waiter   p2p.Waiter // owner of its messages
	receives int        // of the graph
	progress progress
	index    int       // index in collectives.active
	arrivals *arrivals // arrival tracker; nil unless the graph has unordered sends
	pool     *CollectivePool
	next     *Collective // in the pool's free list
}

// progress is the state of one run of a collective.
type progress struct {
	whole    *p2p.Xfer // represents the collective; nil while it does not run
	scratch  []byte
	bad      error  // an error that does not stop the run
	foreign  uint32 // signature of a tolerated message of another length, or 0
	awaited  int    // receives not completed
	blocking bool   // the caller only waits for this run
}

// part is the state of an operation of the graph.
type part struct {
	link *p2p.Link // set on first use
	x    *p2p.Xfer // while it is pending
}

// CollectivePool holds idle collectives of one graph. The zero pool is empty.
type CollectivePool struct{ free *Collective }

// NewCollective creates a collective for a graph, or takes an idle one from the pool, if any,
// to which it returns after each run.
func (e *Held) NewCollective(g *sched.Graph, c *Comm, ranks *rankset.List, pool *CollectivePool) *Collective {
	if pool != nil && pool.free != nil {
		co := pool.free
		pool.free, co.next = co.next, nil
		return co
	}
	co := &Collective{Comm: c, Ranks: ranks, e: e, pool: pool, parts: make([]part, g.Slots()), receives: g.Receives()}
	co.run.Graph, co.run.Port, co.run.Rank = g, co, int(c.Rank)
	co.waiter.Whole = co
	if g.Ports > 0 {
		co.trackArrivals()
	}
	return co
}

// Active reports whether the collective is running.
func (co *Collective) Active() bool { return co.progress.whole != nil }

// RunCollective runs a collective until it completes.
func (e *Held) RunCollective(co *Collective, in, out []byte) error {
	call, c := co.Call, co.Comm // co may be reused when the run has ended
	x := e.begin(co, in, out, true)
	if !x.Done() {
		e.waitOne(x, c, call)
	}
	err := x.Err
	e.m.Free(x)
	return err
}

// StartCollective starts a collective. The Op is zero if it has completed without an
// error.
func (e *Held) StartCollective(co *Collective, in, out []byte) Op {
	x := e.begin(co, in, out, false)
	if !x.Done() && e.waits.driver == nil {
		// Messages of the other ranks may have arrived: processing them now leaves
		// less to do after the caller's computation.
		e.poll()
	}
	if x.Done() && x.Err == nil {
		e.m.Free(x)
		return Op{}
	}
	e.noteStart()
	return Op{x, x.Handle()}
}

// begin starts a run. blocking reports that the caller only waits for it.
func (e *Held) begin(co *Collective, in, out []byte, blocking bool) *p2p.Xfer {
	x := e.m.New()
	x.Source, x.Tag, x.Ctx = Nobody, p2p.AnyTag, co.Comm.Ctx
	if err := e.colls.err(x.Ctx); err != nil {
		e.m.Refuse(x, &PartError{Call: co.Call, Err: err})
		co.free()
		return x
	}
	g := co.run.Graph
	co.progress = progress{whole: x, awaited: co.receives, blocking: blocking, scratch: e.scratch.get(g.Tmp + g.Shared)}
	if co.arrivals != nil {
		co.arrivals.reset(blocking)
		e.colls.aware++
	}
	e.colls.started++
	e.colls.add(co)
	co.run.Mem = [sched.Bufs][]byte{in, out, co.progress.scratch[:g.Tmp], co.progress.scratch[g.Tmp:]}
	if co.run.InSegment = co.Segment != nil; co.run.InSegment {
		co.run.Mem[sched.Shared] = co.Segment
	}
	if co.Timed {
		co.Meter.Begin(e.now())
	}
	co.run.Start()
	e.checkRun(co)
	if len(e.m.Out.Done)|len(e.m.Out.Notes)|len(e.links.blocked) != 0 {
		e.settle()
	}
	return x
}

// checkRun checks whether a run that made progress has failed or ended.
func (e *Held) checkRun(co *Collective) {
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

// Post starts a message of the run. Packets that the device does not accept wait in the
// link, like those of any send. Post does not poll: its caller may be processing the
// results of a poll.
func (co *Collective) Post(_ *sched.Run, id int, op *sched.Op, b []byte) (ended bool, err error) {
	e, p := co.e, &co.parts[id]
	l := p.link
	if l == nil || co.run.Graph.Generated() { // several of its operations use a part
		l = e.link(co.world(co.run.Peer(op)))
		p.link = l
	}
	var x *p2p.Xfer
	tag := co.tag(op)
	if op.Kind == sched.Send {
		e.m.Sign = co.signature()
		if co.Vote != nil {
			e.m.Vote = *co.Vote
		}
		var sent bool
		if co.grants(l) != nil && len(b) >= leastAnnounced {
			x = e.startAnnounced(l, co.Comm, tag, b)
		} else {
			x, sent = e.startShort(l, co.Comm, tag, b, co.sendKind(l, len(b)))
		}
		e.m.Sign, e.m.Vote = 0, 0
		if sent {
			return true, nil
		}
	} else {
		if e.failed != nil {
			return true, co.failure(op, e.failed)
		}
		x = e.m.New()
		x.Link, x.Ctx, x.Source, x.Tag, x.Buf, x.Sign = l, co.Comm.Ctx, co.run.Peer(op), tag, b, co.Sign
		x.Grants = co.grants(l)
		e.m.Recv(x)
		if co.arrivals != nil && x.Grants == nil {
			co.announce(x)
		}
	}
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	if x.Done() {
		co.noteVote(x)
		co.noteReceived(op)
		co.noteArrived(op)
		err := co.outcome(x, op)
		e.m.Free(x)
		return true, err
	}
	x.Owner, x.Part, p.x = &co.waiter, int32(id), x
	return false, nil
}

// signature returns the signature of sends. A rank that has received a message of another
// length sends with the signature of that, so that the ranks behind it see the difference.
func (co *Collective) signature() uint32 {
	if co.progress.foreign != 0 {
		return co.progress.foreign
	}
	return co.Sign
}

// noteVote takes the vote of a received message. Sends have none.
func (co *Collective) noteVote(x *p2p.Xfer) {
	if co.Vote != nil {
		*co.Vote = max(*co.Vote, x.Vote)
	}
}

// sendKind returns how to send n bytes (T1 5.5.1: collectives gain from the use table as
// other messages do). A send from a registered buffer ends when the device has finished
// with the buffer. While the run awaits a message, that time overlaps; a blocking call
// that has received everything would wait for it.
func (co *Collective) sendKind(l *p2p.Link, n int) shortKind {
	switch {
	case !l.Sourced(n) || !co.e.lanes[l.Dev].sources.collectives:
		return sendCopied
	case co.progress.blocking && co.progress.awaited == 0:
		return sendLast
	}
	return sendPart
}

// noteReceived counts the receives of the run.
func (co *Collective) noteReceived(op *sched.Op) {
	if op.Kind == sched.Recv {
		co.progress.awaited--
	}
}

// tag returns the tag of a message: that of the collective, or of a stream.
func (co *Collective) tag(op *sched.Op) int32 {
	if op.Stream == 0 {
		return co.Tag
	}
	return co.Streams + int32(op.Stream)
}

func (co *Collective) world(rank int32) int { return co.Ranks.At(int(rank)) }

// Reduce performs a reduction of the run.
func (co *Collective) Reduce(r *sched.Run, inout, in []byte) {
	if err := co.Reducer.Reduce(co.e, inout, in); err != nil {
		co.e.breakComm(co.Comm, err)
		r.Fail(err)
	}
}

// partEnded continues a collective after one of its messages has completed.
func (e *Held) partEnded(co *Collective, x *p2p.Xfer) {
	id := int(x.Part)
	co.parts[id].x = nil
	op := co.run.Op(id)
	co.noteVote(x)
	co.noteReceived(op)
	co.noteArrived(op)
	if co.Timed {
		co.Meter.Event(e.now())
	}
	err := co.outcome(x, op)
	e.m.Free(x)
	co.run.HandleEnd(id, err)
	e.checkRun(co)
}

// outcome returns the error of a completed message. A message of unexpected length is an
// error too, but does not stop the run: the other ranks would wait for the remaining
// sends, and only the ranks that see the difference can report it.
func (co *Collective) outcome(x *p2p.Xfer, op *sched.Op) error {
	want := op.Dst.Len
	if op.HandOver && co.run.InSegment {
		want = 0
	}
	switch {
	case x.Err == nil && !x.Differs && !x.Cancelled && (x.Send || x.Len == want):
		return nil
	case x.Cancelled: // by abandon, or because its context was given up
		if err := co.run.Err(); err != nil {
			return err
		}
		return co.e.colls.err(co.Comm.Ctx)
	case x.Differs && !co.tolerates(x):
		err := &MismatchError{Call: co.Call, Peer: int(co.run.Peer(op)), Mine: co.Sign, Theirs: x.Sign, Got: x.Total(), Want: want}
		co.e.breakComm(co.Comm, err)
		return err
	case x.Err == nil || errors.Is(x.Err, p2p.ErrTruncated):
		if x.Differs {
			co.progress.foreign = x.Sign
		}
		if co.progress.bad == nil {
			co.progress.bad = &PartError{Call: co.Call, Peer: int(co.run.Peer(op)), Got: x.Total(), Want: want}
		}
		return nil
	}
	return co.failure(op, x.Err)
}

// tolerates reports whether a message of another call differs only in its length, and the
// communicator stays usable.
func (co *Collective) tolerates(x *p2p.Xfer) bool {
	past := co.Comm.Past
	return past != nil && past.Tolerates(co.What, co.Sign, x.Sign)
}

func (co *Collective) failure(op *sched.Op, err error) error {
	return &PartError{Call: co.Call, Send: op.Kind == sched.Send, Peer: int(co.run.Peer(op)), Err: err}
}

// PartError reports which message of a collective failed. If Err is nil, its length was
// unexpected.
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
	if p.Got == p.Want { // rank Peer has received from a rank with another count
		return fmt.Sprintf("the counts differ between ranks, by a message of rank %d", p.Peer)
	}
	return fmt.Sprintf("rank %d sent %d bytes where this rank expects %d: the counts differ between ranks", p.Peer, p.Got, p.Want)
}

// Unwrap returns the cause.
func (p *PartError) Unwrap() error { return p.Err }

// abandon cancels the receives of a failed run, because their senders may have failed as
// well. Sends complete by themselves.
func (e *Held) abandon(co *Collective) {
	for i := range co.parts {
		if x := co.parts[i].x; x != nil && !x.Send && !x.Done() {
			e.m.Cancel(x)
		}
	}
	if len(e.m.Out.WR) > 0 {
		e.flush() // revoked offers
	}
}

// finishRun completes a collective.
func (e *Held) finishRun(co *Collective) {
	x, err := co.progress.whole, co.run.Err()
	if err == nil {
		err = co.progress.bad
	}
	if co.arrivals != nil {
		e.noteFinished(co)
	}
	if co.Meter != nil {
		e.reportRun(co)
	}
	e.scratch.put(co.progress.scratch)
	co.progress.scratch, co.Segment = nil, nil
	co.run.Mem = [sched.Bufs][]byte{} // release the user's buffers to the garbage collector
	e.colls.remove(co)
	co.free()
	e.m.Refuse(x, err)
}

// free returns an idle collective to its pool.
func (co *Collective) free() {
	co.progress.whole, co.Vote = nil, nil
	if co.pool != nil {
		co.next, co.pool.free = co.pool.free, co
	}
}

// partAwaited returns the message that a collective waits for, a receive if there is one.
func (co *Collective) partAwaited() (awaited *p2p.Xfer) {
	for i := range co.parts {
		if p := co.parts[i].x; p != nil && (awaited == nil || awaited.Send && !p.Send) {
			awaited = p
		}
	}
	return awaited
}
