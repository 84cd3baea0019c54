package mpi

// The road of a collective call (MPI-4.1 chapter 6), the same for all of them:
//
//	Allreduce, Iallreduce, AllreduceInit   coll_<kind>.go: check the arguments,
//	 └ collCall                            turn them into bytes
//	    └ blocking, started, prepared      here: with a tag, and the engine's lock
//	       └ plan                          coll_plan.go: the schedule, usually kept
//	          └ chooseAlgorithm            coll_choose.go: if it is new
//
// The schedule is run by the engine. Messages of collectives have a context of
// their own, in which tags tell collectives apart that are under way together:
//
//	blockingTag  of all blocking calls. There is one at a time, and all ranks make
//	             them in the same order. Messages between two ranks keep their
//	             order, and the n-th send of a schedule to a rank meets its n-th
//	             receive from us; so the messages of the next call, which may come
//	             while this rank is in the last one, find receives in order too.
//	startedTag   and up: of the calls that begin with I, each with a number of its
//	             own, counted per communicator. All ranks make them in the same
//	             order, so they count alike. A number comes again after 2²⁹ calls.
//	preparedTag  and up: of the calls that end with Init, counted apart. A number
//	             is kept, so that persistent collectives may be started in any
//	             order. Two runs of one are told apart like blocking calls.
//	streamTag    and up: of the streams of a schedule that may overtake each other
//	             (sched.Op), a row of tags for each of the tags above. 2¹⁵ started
//	             and as many prepared collectives have rows of their own.

import (
	"errors"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

const (
	blockingTag = 0
	releaseTag  = 1 // wakes a rank that sleeps at the gate (coll_barrier.go)
	startedTag  = 2
	preparedTag = 1 << 29
	streamTag   = 1 << 30
	streamRows  = 1 << 15
)

// number gives a collective its tag and those of its streams, and notes the call.
func (c *Comm) number(co *engine.Collective, k *collCall, form coll.Form, tag int32) {
	co.Sign = uint32(c.noteCall(k.call(c, form)))
	co.Number, co.What = c.past.Latest()
	co.Tag = tag
	row := tag
	switch {
	case tag >= preparedTag:
		row = streamRows + (tag-preparedTag)%streamRows
	case tag >= startedTag:
		row = startedTag + (tag-startedTag)%(streamRows-startedTag)
	}
	co.Streams = streamTag + row*sched.Streams
}

// collCall is a collective call with its arguments checked, in bytes.
type collCall struct {
	name string
	key  planKey
	// The counts and places of the forms that have them, in elements, as the user
	// gave them; places may be nil for blocks one after the other.
	sendCounts, sendDispls []int
	recvCounts, recvDispls []int
	in, out                []byte
	near                   *neighborhood // of neighborhood collectives
}

// payload is the bytes of the data, or of a block where each rank has one.
func (k *collCall) payload() int {
	if k.key.kind == coll.Gather || k.key.kind == coll.Allgather {
		return k.key.recv
	}
	return k.key.bytes
}

// blocking makes a call that has no reduction and waits for its end.
func (c *Comm) blocking(k *collCall) error {
	a := c.arrive(k.key.kind, k.name, k.payload())
	err := c.runBlocking(k)
	a.leave(err)
	return err
}

func (c *Comm) runBlocking(k *collCall) error {
	if done, err := c.inNode(k); done {
		return err
	}
	c.e.Lock()
	co, err := c.collective(k)
	if err == nil {
		c.number(co, k, coll.Blocking, blockingTag)
		err = c.e.RunCollective(co, k.in, k.out)
	}
	c.e.Unlock()
	if err != nil {
		return c.collFailure(err)
	}
	return nil
}

// started makes a call that has no reduction and does not wait. refused is why it
// cannot be made.
func (c *Comm) started(k *collCall, refused error) Request {
	if refused != nil {
		return c.refused(refused)
	}
	a := c.arriveStarted(k)
	c.e.Lock()
	co, err := c.collective(k)
	if err != nil {
		c.e.Unlock()
		return c.refused(c.collFailure(err))
	}
	return c.startHeld(co, k, a)
}

// startHeld gives a collective its number and starts it. It unlocks.
func (c *Comm) startHeld(co *engine.Collective, k *collCall, a *arrival) Request {
	n := &c.plans.started
	c.number(co, k, coll.Started, startedTag+*n)
	if *n++; *n == preparedTag-startedTag {
		*n = 0
	}
	op := c.e.StartCollective(co, k.in, k.out)
	c.e.Unlock()
	return Request{c: c, op: op, more: a.request(nil)}
}

// prepared makes a persistent collective of a call.
func (c *Comm) prepared(k *collCall, refused error) *Persistent {
	p := &Persistent{c: c, op: k.name, err: refused}
	if refused != nil {
		return p
	}
	c.e.Lock()
	defer c.e.Unlock()
	plan, err := c.plan(k)
	if err != nil {
		p.err = c.collFailure(err)
		return p
	}
	co := c.e.NewCollective(plan.graph, &c.co, c.collRanks(), nil)
	co.Call = k.name
	c.number(co, k, coll.Prepared, preparedTag+c.plans.prepared)
	p.coll = &preparedColl{co: co, form: plan.aware.prepared(), in: k.in, out: k.out, recorder: c.recordPrepared(k, c.plans.prepared)}
	c.plans.prepared++
	return p
}

// preparedColl is what a Persistent keeps of a collective. The Collective is its
// own, so that starting it needs no look at the plans.
type preparedColl struct {
	co       *engine.Collective
	form     *awareForm         // if it has one (coll_aware.go)
	aware    *engine.Collective // what runs that, once it was wanted
	in, out  []byte
	pack     func()       // before each start, if not nil
	more     *requestMore // of each request
	recorder *preparedRecorder
}

// start starts a persistent collective.
func (p *Persistent) startCollective() Request {
	c, k := p.c, p.coll
	if err := c.usable(p.op); err != nil {
		return c.refused(err)
	}
	c.e.Lock()
	if k.active() {
		c.e.Unlock()
		return c.refused(c.refuse(ErrRequest, p.op, "it was started before and has not ended: wait for that request first"))
	}
	co, err := k.next(c)
	if err != nil {
		c.e.Unlock()
		return c.refused(err)
	}
	a := k.recorder.start()
	if k.pack != nil {
		k.pack()
	}
	op := c.e.StartCollective(co, k.in, k.out)
	c.e.Unlock()
	return c.landed(Request{c: c, op: op, more: a.request(k.more)})
}

// landed is for requests with something to unpack: one that is over already is
// unpacked now, since there is nothing to wait for.
func (c *Comm) landed(r Request) Request {
	if r.more != nil && r.more.landing != nil && !r.op.Active() {
		r.more.landing.unpack(0)
		r.more = r.more.record.request(nil)
	}
	return r
}

// reduction makes a call that combines elements, and waits for its end.
func reduction[T Elem](c *Comm, k *collCall, op Op[T]) error {
	a := c.arrive(k.key.kind, k.name, k.payload())
	err := runReduction(c, k, op)
	a.leave(err)
	return err
}

func runReduction[T Elem](c *Comm, k *collCall, op Op[T]) error {
	if done, err := reducedInNode(c, k, op); done {
		return err
	}
	c.e.Lock()
	co, err := c.collective(k)
	if err == nil {
		c.number(co, k, coll.Blocking, blockingTag)
		setReducer(c, co, op)
		err = c.e.RunCollective(co, k.in, k.out)
	}
	c.e.Unlock()
	if err != nil {
		return c.collFailure(err)
	}
	return nil
}

// startedReduction is reduction that does not wait.
func startedReduction[T Elem](c *Comm, k *collCall, op Op[T], refused error) Request {
	if refused != nil {
		return c.refused(refused)
	}
	a := c.arriveStarted(k)
	c.e.Lock()
	co, err := c.collective(k)
	if err != nil {
		c.e.Unlock()
		return c.refused(c.collFailure(err))
	}
	setReducer(c, co, op)
	return c.startHeld(co, k, a)
}

// preparedReduction is reduction as a persistent collective.
func preparedReduction[T Elem](c *Comm, k *collCall, op Op[T], refused error) *Persistent {
	p := c.prepared(k, refused)
	if p.err == nil {
		setReducer(c, p.coll.co, op)
	}
	return p
}

// collFailure turns an error of the engine into one of this package.
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
		return err // it is ours
	case c.inter != nil:
		return c.inter.both.collFailure(part) // whose ranks are those of the schedule
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
		return c.refuse(ErrRoot, op, "there is no rank %d: %s has ranks 0 to %d", root, c.name, c.size-1)
	}
	return nil
}

// checkType says no to elements that cannot travel.
func checkType[T Elem](c *Comm, op string) error {
	if !mayTravel[T](&c.w.types) {
		if err := admit[T](&c.w.types); err != nil {
			return c.refuse(ErrType, op, "%w", err)
		}
	}
	return nil
}

// checkOp says no to an operation that does nothing.
func checkOp[T Elem](c *Comm, name string, op *Op[T]) error {
	if op.Combine == nil && op.predefined == nil {
		return c.refuse(ErrOp, name, "the operation has no Combine function")
	}
	return nil
}

// same reports whether two slices begin at the same place, so that a call is meant
// to work in place.
func same[T any](a, b []T) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }
