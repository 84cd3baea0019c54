package mpi

// The cache of schedules. A program makes the same collective calls many times; making a
// schedule takes a thousand times longer than finding it. Each communicator caches the
// schedules that it has used, by the shape of the call, and first tries the one that it
// used last for this kind of call. The cache is bounded and evicts the least recently used
// schedule. The engine's lock guards all of it.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// planKey is the shape of a call, except for counts that differ between ranks.
type planKey struct {
	kind      coll.Kind
	ordered   bool // the reduction does not commute
	inPlace   bool
	irregular bool // lengths differ between ranks
	shared    bool // all neighbors get the same block
	root      int
	elem      int   // bytes of an element
	bytes     int   // of the data; of the rank's own block, or of each block sent
	recv      int   // of each block received
	typ       *byte // of the elements of a reduction: a plan caches its reducers
}

// plan is a schedule for calls of one shape.
type plan struct {
	key     planKey
	counts  [4][]int      // send counts and displacements, receive counts and displacements
	carried []coll.Blocks // lengths of blocks that the rank hands on (coll_lengths.go)
	by      coll.Ranked   // the algorithm; none between two groups, where each phase has its own
	graph   *sched.Graph
	idle    engine.CollectivePool
	aware   *awareForm   // the same messages in the order of arrival; nil: there is no such form
	segment *segmentForm // with the node phases in a segment; nil: there is no such form
	trial   *coll.Trial  // of an arrival-aware algorithm with other messages (coll_votes.go), or nil
	tried   *triedPlan   // that algorithm; nil: there is none
	used    uint64       // time of the last use, in cache lookups
}

// The bounds of the cache of a communicator. Large schedules count by their memory.
const (
	keepPlans     = 64
	keepPlanBytes = 4 << 20
)

// collPlans is the state of a communicator for its collectives.
type collPlans struct {
	last     [coll.Kinds]*plan // the one used last, by kind
	all      []*plan
	bytes    int // of the graphs of all
	clock    uint64
	started  int32 // calls so far, for their tags
	prepared int32
	uneven   [coll.Kinds]*coll.Uneven // arrival history of calls whose lengths differ
	choice   chooser
	lengths  *lengthsPlan // exchanges lengths of blocks; nil until first needed
	arrivals coll.Arrivals
	build    sched.Builder
}

// collective returns what runs a call's schedule.
func (c *Comm) collective(h *engine.Held, k *collCall) (*engine.Collective, error) {
	p, err := c.planLocked(k)
	if err != nil {
		return nil, err
	}
	return c.runnerOf(h, p, k)
}

// runnerOf returns what runs a plan.
func (c *Comm) runnerOf(h *engine.Held, p *plan, k *collCall) (*engine.Collective, error) {
	if p.aware != nil {
		return c.adaptive(h, p, k)
	}
	return c.takeCollective(h, &p.idle, p.graph, k), nil
}

// takeCollective returns an idle collective of a graph, or a new one.
func (c *Comm) takeCollective(h *engine.Held, idle *engine.CollectivePool, g *sched.Graph, k *collCall) *engine.Collective {
	co := h.NewCollective(g, &c.co, c.collRanks(), idle)
	co.Call = k.name
	return co
}

// planLocked finds or makes the plan of a call.
func (c *Comm) planLocked(k *collCall) (*plan, error) {
	if c.plans == nil {
		c.plans = &collPlans{}
	}
	if p := c.plans.last[k.key.kind]; p != nil && p.fits(k) {
		return p, nil
	}
	return c.otherPlanLocked(k)
}

// fits reports whether a plan serves a call.
func (p *plan) fits(k *collCall) bool {
	return p.key == k.key && (!p.key.irregular ||
		slices.Equal(p.counts[0], k.sendCounts) && slices.Equal(p.counts[1], k.sendDispls) &&
			slices.Equal(p.counts[2], k.recvCounts) && slices.Equal(p.counts[3], k.recvDispls) && sameLengths(p.carried, k.carried))
}

// otherPlanLocked is planLocked if the last plan does not fit.
func (c *Comm) otherPlanLocked(k *collCall) (*plan, error) {
	ps := c.plans
	ps.clock++
	i := slices.IndexFunc(ps.all, func(p *plan) bool { return p.fits(k) })
	if i < 0 {
		p, err := c.newPlanLocked(k)
		if err != nil {
			return nil, err
		}
		i = len(ps.all)
		ps.all = append(ps.all, p)
		ps.bytes += p.graph.Bytes()
	}
	p := ps.all[i]
	p.used = ps.clock
	ps.last[k.key.kind] = p
	for len(ps.all) > 1 && (len(ps.all) > keepPlans || ps.bytes > keepPlanBytes) {
		ps.evict()
	}
	return p, nil
}

// evict removes the least recently used plan. Runs of it that are under way go on.
func (ps *collPlans) evict() {
	oldest := 0
	for i, p := range ps.all {
		if p.used < ps.all[oldest].used {
			oldest = i
		}
	}
	p := ps.all[oldest]
	ps.bytes -= p.graph.Bytes()
	ps.all = slices.Delete(ps.all, oldest, oldest+1)
	if ps.last[p.key.kind] == p {
		ps.last[p.key.kind] = nil
	}
}

// newPlanLocked makes a schedule.
func (c *Comm) newPlanLocked(k *collCall) (*plan, error) {
	p := &plan{key: k.key, carried: k.carried, counts: [4][]int{
		slices.Clone(k.sendCounts), slices.Clone(k.sendDispls), slices.Clone(k.recvCounts), slices.Clone(k.recvDispls)}}
	if err := c.fillLocked(p, k); err != nil {
		return nil, c.refuse(ErrIntern, k.name, "%w", err)
	}
	return p, nil
}

// fillLocked makes the graph of a call with the selected algorithm.
func (c *Comm) fillLocked(p *plan, k *collCall) (err error) {
	if c.inter != nil {
		p.graph, err = c.interGraphLocked(k)
		return err
	}
	s := c.shape(k)
	choice, err := c.chooseLocked(&s)
	if err != nil {
		return err
	}
	p.by = choice.Ranked
	p.aware = c.awareFormOf(p, &s)
	c.addTrial(p, &s)
	if p.segment, err = c.segmentFormOf(p.by, &s); err != nil {
		return err
	}
	p.graph, err = p.by.Algorithm.Graph(&c.plans.build, &s, p.by.Params)
	return err
}

// shape returns the properties of a call that the choice of an algorithm may depend on.
func (c *Comm) shape(k *collCall) coll.Shape {
	s := coll.Shape{Kind: k.key.kind, Rank: c.rank, Size: c.size, Root: k.key.root, Elem: k.key.elem,
		Commutes: !k.key.ordered, InPlace: k.key.inPlace, Nodes: c.plans.choice.nodesOf(c), Carried: k.carried}
	s.SetBlocks(k.blocks())
	if s.Kind.Near() {
		k.neighborBlocks(&s)
	}
	return s
}

// blocks returns the length of the data, and the blocks that are sent and received.
func (k *collCall) blocks() (bytes int, send, recv coll.Blocks) {
	send = blocks(k.key.bytes, k.sendCounts, k.sendDispls, k.key.elem)
	recv = blocks(k.key.recv, k.recvCounts, k.recvDispls, k.key.elem)
	send.Irregular, recv.Irregular = k.key.irregular, k.key.irregular
	return k.key.bytes, send, recv
}

// blocks converts counts of elements to lengths in bytes.
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
