package mpi

// Access for external tests to internals of the package: they can force the algorithm
// of a collective on a communicator and check which one was used.

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
)

// Eventually polls a condition until it holds. It returns false after the timeout. It
// uses real time: ranks wait in the kernel and in shared memory.
func Eventually(timeout time.Duration, condition func() bool) bool {
	for end := time.Now().Add(timeout); ; time.Sleep(100 * time.Microsecond) {
		if condition() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// LocalSpares is Local with k further ranks, which are spares.
func LocalSpares(n, k int, cfg *Config) ([]*World, error) {
	worlds, err := Local(n+k, cfg)
	for _, w := range worlds {
		w.makeSpares(k)
	}
	return worlds, err
}

// ForceAlgorithm makes calls on c use an algorithm where it is applicable, as
// Config.Collective does from the start of a job. It also accepts parameters that
// Config.Collective rejects as not worth trying. It applies to the whole rank until
// Unforce, and discards existing plans.
func ForceAlgorithm(c *Comm, a *coll.Algorithm, params []int) {
	forceCollective(c, a.Kind, -1, &coll.Tuning{About: "a test", Rules: []coll.Rule{{Kind: a.Kind, Algorithm: a, Params: params}}})
}

// ForceSegment makes calls of a kind on c use shared memory where possible.
func ForceSegment(c *Comm, kind coll.Kind) { forceCollective(c, kind, math.MaxInt, nil) }

// Unforce undoes ForceAlgorithm and ForceSegment for a kind.
func Unforce(c *Comm, kind coll.Kind) {
	tuning, _ := readTuning(&c.w.cfg) // it could be read when the rank joined
	forceCollective(c, kind, coll.Segment.Cores[kind], tuning)
}

func forceCollective(c *Comm, kind coll.Kind, limit int, tuning *coll.Tuning) {
	defer c.e.Hold().Release()
	c.nodeState().limits[kind] = limit
	c.w.tuning = tuning
	c.plans.forget()
}

// EndRank releases what a rank has that has failed.
func EndRank(w *World) {
	w.e.Fail(errors.New("the test is over"))
	_ = w.Finalize() // it returns this error
}

// AgreeByMessages makes agreements of this rank use messages, as between hosts: it never
// settles which of its slots it uses.
func AgreeByMessages(c *Comm) { c.e.OfferSlots(math.MaxUint32) }

// PretendNodes makes the choice of algorithms on c assume a topology: ranks with the same
// number share a node. The devices do not change.
func PretendNodes(c *Comm, nodeOf []int) {
	defer c.e.Hold().Release()
	if c.plans == nil {
		c.plans = &collPlans{}
	}
	c.plans.forget()
	c.plans.choice.prepare(c)
	c.plans.choice.nodes = coll.NewTopology(nodeOf, 2)
	if c.node != nil { // a region belongs to the ranks of one node
		if err := c.w.teams.leaveRegion(c.node, ""); err != nil {
			panic(err)
		}
		c.node.region = nodeRegion{}
	}
}

// ForgetPlans makes the next calls on c choose algorithms again, so that ServedBy reports
// them.
func ForgetPlans(c *Comm) {
	defer c.e.Hold().Release()
	c.plans.forget()
}

func (ps *collPlans) forget() {
	if ps != nil {
		ps.last, ps.all, ps.bytes = [len(ps.last)]*plan{}, nil, 0
	}
}

// ServedBy returns the algorithm and the parameters of the last call of a kind since
// ForgetPlans, or nil if no schedule was needed.
func ServedBy(c *Comm, kind coll.Kind) (*coll.Algorithm, []int) {
	defer c.e.Hold().Release()
	if c.plans == nil || c.plans.last[kind] == nil {
		return nil, nil
	}
	by := &c.plans.last[kind].by
	return by.Algorithm, by.Params
}

// ProfileTo writes the text of a profile to out, if w is the rank that prints it.
func ProfileTo(w *World, out io.Writer) {
	if w.comm.rank == 0 {
		w.watch.profile.text, w.watch.profile.full = out, true
	}
}

// RequestKeysOnUse makes new windows request keys on first use, as those of many ranks do.
// All ranks must call it.
func RequestKeysOnUse(c *Comm, on bool) { c.w.windows.keysOnUse = on }

// KeepWindowsApart makes new windows use the device and requests, even if memory could be
// mapped. All ranks must call it.
func KeepWindowsApart(c *Comm, apart bool) { c.w.windows.apart = apart }

// SetClockAhead gives the rank of c a private clock that is ahead of the machine's, in a
// job with a profile of arrivals. All ranks must call it.
func SetClockAhead(c *Comm, by time.Duration) error {
	c.w.watch.recorder.clock = c.w.watch.recorder.clock.WithOffset(by)
	c.w.watch.clock = c.w.watch.recorder.clock
	return c.w.compareClocks(&c.w.watch.profile.clock.At, &c.w.watch.profile.clock.Add)
}

// RecordCall records a call that does nothing.
func RecordCall(c *Comm) { c.arrive(coll.Barrier, "nothing", 0).leave(nil) }

// RecordStarted records a nonblocking call that completes at once.
func RecordStarted(c *Comm) error {
	k := barrierCall("Inothing")
	return Request{c: c, more: c.arriveStarted(&k).request(nil)}.endAtOnce()
}

// NetworkKey returns the network key that software iWARP uses. All ranks must call it.
func NetworkKey(c *Comm) ([]byte, error) { return networkKey(&c.w.cfg, published{c.w.client}) }

// Memberships returns the number of communicators whose failures the rank of c handles.
func Memberships(c *Comm) int { return c.e.Memberships() }
