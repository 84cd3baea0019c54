package mpi

// The path of a collective call (MPI-4.1 chapter 6), the same for all of them:
//
//	Allreduce, Iallreduce, AllreduceInit   coll_reduce.go and others: describe the call
//	 └ collArgs                            coll_args.go: check the arguments and convert them
//	                                       to bytes, in a collCall
//	    └ blocking, started, prepared      here: assign a tag, take the engine's lock
//	       └ plan                          coll_plan.go: the schedule, usually cached
//	          └ chooseAlgorithm            coll_choose.go: for a new schedule
//
// The engine runs the schedule. internal/engine/tags.go has the tags of its messages.

import (
	"cmp"
	"errors"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// number assigns a collective its tag and those of its streams, and records the call.
func (c *Comm) number(h *engine.Held, co *engine.Collective, k *collCall, form coll.Form, tag int32) {
	co.Sign = uint32(c.noteCall(h, k.call(c, form)))
	if form == coll.Started && c.described() {
		co.Sign = 0 // the descriptions are compared instead: they name the lines
	}
	co.Number, co.What = c.past.Latest()
	co.Tag, co.Streams = tag, streamsOf(tag)
}

// streamsOf returns the first of the tags of the streams of a collective.
func streamsOf(tag int32) int32 {
	row := tag
	switch {
	case tag >= engine.PreparedTag:
		row = engine.StreamRows + (tag-engine.PreparedTag)%(engine.StreamRows-1) // the last row is that of engine.LastTags
	case tag >= engine.StartedTag:
		row = engine.StartedTag + (tag-engine.StartedTag)%(engine.StreamRows-engine.StartedTag)
	}
	return engine.StreamTag + row*sched.Streams
}

// collCall is a collective call with its arguments checked, in bytes.
type collCall struct {
	name string
	key  planKey
	// The counts and displacements of the calls that have them, in elements, as the user
	// passed them; displacements may be nil for consecutive blocks.
	sendCounts, sendDispls []int
	recvCounts, recvDispls []int
	carried                []coll.Blocks // lengths of blocks that the rank hands on (coll_lengths.go)
	in, out                []byte
	near                   *neighborhood   // of neighborhood collectives
	noted                  bool            // check mode has compared it
	inner                  bool            // it is a part of another call, and hooks do not see it
	leaving                bool            // the barrier of Finalize, which matches no other
	checked                *checkedArgs    // in check mode; nil if there is none
	packed                 *packedExchange // of blocks with layouts; nil if there are none
}

// payload returns the size in bytes of the data, or of a block where each rank has one.
func (k *collCall) payload() int {
	if k.key.kind.Input() == coll.OwnBlock {
		return k.key.recv
	}
	return k.key.bytes
}

// volume returns the size in bytes that hooks see: the payload or, where blocks differ in
// size, what this rank sends, or what it receives if it sends nothing.
func (k *collCall) volume() int {
	if !k.key.irregular {
		return k.payload()
	}
	n := 0
	for _, count := range k.sendCounts {
		n += count * k.key.elem
	}
	return cmp.Or(n, len(k.in), len(k.out))
}

// blocking makes a blocking call. op is nil if it does not combine elements.
func blocking[T Elem](c *Comm, k *collCall, op *Op[T]) error {
	h := c.beginColl(k, CallCollective, false)
	if err := c.checkCall(k, coll.Blocking); err != nil {
		return h.finish(err)
	}
	a := c.arrive(k.key.kind, k.name, k.payload())
	err := runBlocking(c, k, op)
	a.leave(err)
	return h.finish(err)
}

func runBlocking[T Elem](c *Comm, k *collCall, op *Op[T]) error {
	if done, err := inNode(c, k, op); done {
		return err
	}
	h := c.e.Hold()
	err := c.learnLengths(h, k)
	if err == nil {
		var v votedCall
		if v, err = c.votedCollective(h, k); err == nil {
			c.number(h, v.co, k, coll.Blocking, engine.BlockingTag)
			setReducer(c, v.co, op)
			err = v.run(c, h, k)
		}
	}
	h.Release()
	if err != nil {
		return c.collFailure(err)
	}
	return nil
}

// startColl makes a non-blocking call.
func startColl[T Elem](c *Comm, k *collCall, op *Op[T]) Request {
	h := c.beginColl(k, CallCollective, true)
	a := c.arriveStarted(k)
	held := c.e.Hold()
	co, err := c.collective(held, k)
	if err != nil {
		held.Release()
		return h.finishStart(c.refusedRequest(c.collFailure(err)))
	}
	var d *callCheck
	if c.w.cfg.Check { // now that the call has its schedule, it will be started
		held.Release()
		d = c.startCheck(k, coll.Started)
		held = c.e.Hold()
	}
	setReducer(c, co, op)
	r := c.startNumbered(held, co, k, a)
	held.Release()
	return h.finishStart(d.request(r))
}

// startNumbered numbers a collective and starts it.
func (c *Comm) startNumbered(h *engine.Held, co *engine.Collective, k *collCall, a *arrival) Request {
	n := &c.plans.started
	c.number(h, co, k, coll.Started, engine.StartedTag+*n)
	if *n++; *n == engine.PreparedTag-engine.StartedTag {
		*n = 0
	}
	return Request{c: c, op: h.StartCollective(co, k.in, k.out), more: a.request(nil)}
}

// prepareColl returns the persistent collective of a call. refused is the error of its
// arguments.
func prepareColl[T Elem](c *Comm, k *collCall, op *Op[T], refused error) *Persistent {
	p := &Persistent{c: c, op: k.name, err: refused, peer: k.rootOrNull(), tag: AnyTag}
	if refused != nil {
		return p
	}
	h := c.beginColl(k, CallPrepare, false)
	defer func() { _ = h.finish(p.err) }()
	if p.err = c.checkCall(k, coll.Prepared); p.err != nil {
		return p
	}
	held := c.e.Hold()
	defer held.Release()
	if err := c.learnLengths(held, k); err != nil { // these calls are nonlocal (MPI-4.1 6.13)
		p.err = c.collFailure(err)
		return p
	}
	plan, err := c.planLocked(k)
	if err != nil {
		p.err = c.collFailure(err)
		return p
	}
	co := held.NewCollective(plan.graph, &c.co, c.collRanks(), nil)
	co.Call = k.name
	setReducer(c, co, op)
	c.number(held, co, k, coll.Prepared, engine.PreparedTag+c.plans.prepared)
	p.coll = &preparedColl{co: co, form: plan.aware.forPersistent(), in: k.in, out: k.out, bytes: k.volume(), recorder: c.recordPrepared(k, c.plans.prepared)}
	c.plans.prepared++
	return p
}

// preparedColl is the part of a Persistent that belongs to a collective. It has its own
// Collective, so that a start needs no lookup of the plan.
type preparedColl struct {
	co       *engine.Collective
	form     *awareForm         // or nil (coll_aware.go)
	aware    *engine.Collective // runs the aware form; nil until first needed
	in, out  []byte
	bytes    int          // of the data, for hooks
	pack     func()       // called before each start, if not nil
	more     *requestMore // of each request
	recorder *preparedRecorder
}

// start starts a persistent collective.
func (p *Persistent) startCollective() Request {
	c, k := p.c, p.coll
	if err := c.usable(p.op); err != nil {
		return c.refusedRequest(err)
	}
	h := c.e.Hold()
	if k.activeLocked() {
		h.Release()
		return c.refusedRequest(c.refuse(ErrRequest, p.op, "it was started before and is not complete: wait for that request first"))
	}
	co, err := k.next(c, h)
	if err != nil {
		h.Release()
		return c.refusedRequest(err)
	}
	a := k.recorder.startLocked()
	if k.pack != nil {
		k.pack()
	}
	op := h.StartCollective(co, k.in, k.out)
	h.Release()
	return c.unpackIfComplete(Request{c: c, op: op, more: a.request(k.more)})
}

// unpackIfComplete handles requests with data to unpack: if the operation is already complete, it
// unpacks now, because no Wait will.
func (c *Comm) unpackIfComplete(r Request) Request {
	if r.more != nil && r.more.landing != nil && !r.op.Active() {
		c.unpack(r.more.landing, 0)
		if r.more.hooked != nil {
			r.more.landing = nil
		} else {
			r.more = r.more.record.request(nil)
		}
	}
	return r
}

// collFailure converts an error of the engine to one of this package.
func (c *Comm) collFailure(err error) error {
	var (
		part   *engine.PartError
		op     *opError
		broken *engine.BrokenError
		differ *engine.MismatchError
	)
	switch {
	case errors.As(err, &broken):
		name := "Wait"
		if errors.As(err, &part) {
			name = part.Call
		}
		return c.brokenFailure(name, broken)
	case errors.As(err, &differ):
		return c.mismatchFailure(differ.Call, differ)
	case errors.As(err, &op):
		return c.refuse(ErrOp, op.call, "%w", op)
	case !errors.As(err, &part):
		return err // of this package already
	case c.inter != nil:
		return c.inter.both.collFailure(part) // its ranks are those of the schedule
	case part.Err == nil:
		return c.refuse(ErrTruncate, part.Call, "%w", part)
	}
	return c.failure(part.Err, part.Call, part.Peer, noTag, 0)
}

func (c *Comm) checkRoot(op string, root int) error {
	if err := c.intra(op); err != nil {
		return err
	}
	if root < 0 || root >= c.size {
		return c.refuse(ErrRoot, op, "there is no rank %d: %s has ranks 0 to %d", root, c.Name(), c.size-1)
	}
	return nil
}

// checkType returns an error if the element type has pointers.
func checkType[T Elem](c *Comm, k *collCall) error {
	if !mayTravel[T](&c.w.types) {
		if err := admit[T](&c.w.types); err != nil {
			return c.refuse(ErrType, k.name, "%w", err)
		}
		if c.w.cfg.Check {
			noteType[T](k)
		}
	}
	return nil
}

// checkOp returns an error if the operation has no function.
func checkOp[T Elem](c *Comm, k *collCall, op *Op[T]) error {
	if !op.defined() {
		return c.refuse(ErrOp, k.name, "the operation has no Combine function")
	}
	if k.checked != nil {
		k.checked.op = op.Name()
	}
	return nil
}

// same reports whether two slices begin at the same address, so that a call is in place.
func same[T any](a, b []T) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// checkBlocks returns an error if the counts or displacements of blocks do not fit a
// slice of length n.
func (c *Comm) checkBlocks(name, what string, n int, counts, displs []int) error {
	return c.checkParts(name, what, "rank", c.size, n, counts, displs)
}

// checkParts is checkBlocks for the blocks of any peers: ranks or neighbors.
func (c *Comm) checkParts(name, what, peer string, peers, n int, counts, displs []int) error {
	if len(counts) != peers {
		return c.refuse(ErrCount, name, "there are %d counts for %s and %d %ss", len(counts), what, peers, peer)
	}
	if displs != nil && len(displs) != peers {
		return c.refuse(ErrArg, name, "there are %d displacements in %s and %d %ss; use nil for blocks one after the other", len(displs), what, peers, peer)
	}
	at := 0
	for r, m := range counts {
		if displs != nil {
			at = displs[r]
		}
		if m < 0 {
			return c.refuse(ErrCount, name, "the count of %s %d in %s is %d", peer, r, what, m)
		}
		if at < 0 || at > n || m > n-at {
			return c.refuse(ErrBuffer, name, "the block of %s %d is elements %d to %d of %s, which has %d", peer, r, at, at+m-1, what, n)
		}
		at += m
	}
	return nil
}

// blockOf returns the offset and the length of the block of a rank.
func blockOf(counts, displs []int, rank int) (at, n int) {
	if displs != nil {
		return displs[rank], counts[rank]
	}
	for _, m := range counts[:rank] {
		at += m
	}
	return at, counts[rank]
}
