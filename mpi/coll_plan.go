package mpi

// Schedules that are kept. A program makes the same collective calls again and
// again; making a schedule takes a thousand times longer than finding it. Each
// communicator keeps the schedules that it has used, by the shape of the call, and
// looks first at the one that it used last for this kind of call. What is kept is
// bounded; the schedule that was not used for the longest time goes first. All of
// it is guarded by the engine's lock.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// planKey is the shape of a call, but for counts that differ from rank to rank.
type planKey struct {
	kind      coll.Kind
	ordered   bool // the reduction does not commute
	inPlace   bool
	irregular bool // lengths differ from rank to rank
	shared    bool // all neighbors are sent the same block
	root      int
	elem      int   // bytes of an element
	bytes     int   // of the data; of the own block, or of each block that is sent
	recv      int   // of each block that is received
	typ       *byte // of the elements of a reduction: a plan keeps its reducers
}

// plan is a schedule for calls of one shape.
type plan struct {
	key    planKey
	counts [4][]int    // send counts and places, receive counts and places
	by     coll.Ranked // what made it; nothing between two groups, where each phase has its own
	graph  *sched.Graph
	idle   engine.CollectivePool
	aware  *awareForm // the same messages in the order of arrival; nil: there is no such form
	used   uint64     // when, in calls that did not find it at once
}

// What a communicator keeps at most. Large schedules count by their operations.
const (
	keepPlans   = 64
	keepPlanOps = 1 << 16
)

// collPlans is what a communicator keeps for its collectives.
type collPlans struct {
	last     [coll.Neighbors + 1]*plan // the one used last, by kind
	all      []*plan
	ops      int // of all
	clock    uint64
	started  int32 // calls so far, for their tags
	prepared int32
	uneven   [coll.Neighbors + 1]*coll.Uneven // how ranks come to calls whose lengths differ
	choice   chooser
	build    sched.Builder
}

// collective gives what runs a call's schedule. The lock is held.
func (c *Comm) collective(k *collCall) (*engine.Collective, error) {
	p, err := c.plan(k)
	if err != nil {
		return nil, err
	}
	if p.aware != nil {
		return c.adaptive(p, k)
	}
	return c.taken(&p.idle, p.graph, k), nil
}

// taken gives an idle collective of a graph, or a new one.
func (c *Comm) taken(idle *engine.CollectivePool, g *sched.Graph, k *collCall) *engine.Collective {
	co := idle.Take()
	if co == nil {
		co = c.e.NewCollective(g, &c.co, c.collRanks(), idle)
	}
	co.Call = k.name
	return co
}

// plan finds or makes the plan of a call. The lock is held.
func (c *Comm) plan(k *collCall) (*plan, error) {
	if c.plans == nil {
		c.plans = &collPlans{}
	}
	if p := c.plans.last[k.key.kind]; p != nil && p.fits(k) {
		return p, nil
	}
	return c.otherPlan(k)
}

// fits reports whether a plan is one for a call.
func (p *plan) fits(k *collCall) bool {
	return p.key == k.key && (!p.key.irregular ||
		slices.Equal(p.counts[0], k.sendCounts) && slices.Equal(p.counts[1], k.sendDispls) &&
			slices.Equal(p.counts[2], k.recvCounts) && slices.Equal(p.counts[3], k.recvDispls))
}

// otherPlan is plan when it is not the one used last.
func (c *Comm) otherPlan(k *collCall) (*plan, error) {
	ps := c.plans
	ps.clock++
	i := slices.IndexFunc(ps.all, func(p *plan) bool { return p.fits(k) })
	if i < 0 {
		p, err := c.newPlan(k)
		if err != nil {
			return nil, err
		}
		i = len(ps.all)
		ps.all = append(ps.all, p)
		ps.ops += len(p.graph.Ops)
	}
	p := ps.all[i]
	p.used = ps.clock
	ps.last[k.key.kind] = p
	for len(ps.all) > 1 && (len(ps.all) > keepPlans || ps.ops > keepPlanOps) {
		ps.evict()
	}
	return p, nil
}

// evict forgets the plan that was used the longest time ago. Runs of it that are
// under way go on.
func (ps *collPlans) evict() {
	oldest := 0
	for i, p := range ps.all {
		if p.used < ps.all[oldest].used {
			oldest = i
		}
	}
	p := ps.all[oldest]
	ps.ops -= len(p.graph.Ops)
	ps.all = slices.Delete(ps.all, oldest, oldest+1)
	if ps.last[p.key.kind] == p {
		ps.last[p.key.kind] = nil
	}
}

// newPlan makes a schedule.
func (c *Comm) newPlan(k *collCall) (*plan, error) {
	p := &plan{key: k.key, counts: [4][]int{
		slices.Clone(k.sendCounts), slices.Clone(k.sendDispls), slices.Clone(k.recvCounts), slices.Clone(k.recvDispls)}}
	if err := c.fillPlan(p, k); err != nil {
		return nil, c.refuse(ErrIntern, k.name, "%w", err)
	}
	return p, nil
}

// fillPlan makes the graph of a call by the algorithm that is chosen for it.
func (c *Comm) fillPlan(p *plan, k *collCall) (err error) {
	if c.inter != nil {
		p.graph, err = c.interGraph(k)
		return err
	}
	s := c.shape(k)
	choice, err := c.chooseAlgorithm(&s)
	if err != nil {
		return err
	}
	p.by = choice.Ranked
	p.aware = c.awareFormOf(p, &s)
	p.graph, err = p.by.Algorithm.Graph(&c.plans.build, &s, p.by.Params)
	return err
}

// shape is what an algorithm may know of a call.
func (c *Comm) shape(k *collCall) coll.Shape {
	s := coll.Shape{Kind: k.key.kind, Rank: c.rank, Size: c.size, Root: k.key.root, Elem: k.key.elem,
		Commutes: !k.key.ordered, InPlace: k.key.inPlace, Nodes: c.plans.choice.nodesOf(c)}
	s.Send = blocks(k.key.bytes, k.sendCounts, k.sendDispls, k.key.elem)
	s.Recv = blocks(k.key.recv, k.recvCounts, k.recvDispls, k.key.elem)
	s.Send.Irregular, s.Recv.Irregular = k.key.irregular, k.key.irregular
	switch s.Kind {
	case coll.Bcast, coll.Reduce, coll.Allreduce, coll.Scan, coll.Exscan:
		s.Bytes, s.Send = k.key.bytes, coll.Blocks{}
	case coll.Gather, coll.Allgather:
		s.Send = coll.Blocks{}
	case coll.Scatter, coll.ReduceScatter:
		s.Recv = coll.Blocks{}
	case coll.Neighbors:
		k.neighborBlocks(&s)
	}
	return s
}

// blocks turns counts of elements into lengths in bytes.
func blocks(each int, counts, displs []int, elem int) coll.Blocks {
	b := coll.Blocks{Each: each}
	if counts == nil {
		return b
	}
	b.Each = 0
	b.Lens, b.Offs = make([]int, len(counts)), make([]int, len(counts))
	next := 0
	for i, n := range counts {
		b.Lens[i], b.Offs[i] = n*elem, next
		if displs != nil {
			b.Offs[i] = displs[i] * elem
		}
		next = b.Offs[i] + b.Lens[i]
	}
	return b
}
