package mpi

// Node phases in a segment, for communicators with several nodes (decision 064). Some
// schedules have a form in which the ranks of a node share a buffer (coll.Algorithm,
// InSegment). Its messages between nodes are the same, so the ranks of each node decide
// for themselves, by a rule that is the same on all of them:
//
//	inRegion          has the algorithm such a form, and the node a region?
//	 └ regionOf       the node's region, formed after nodeAfter such calls
//	    └ formRegion  the first rank of the node creates it; all map it, or none
//
// The region has two memories, which blocking calls use in turn: that suffices, because no
// rank ends a call before all ranks of its node have begun it (sched.Run). Non-blocking and
// persistent calls, of which a rank may have several under way, use messages.

import (
	"errors"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/nodecoll"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/sched"
)

// segmentForm is the form in a segment of a plan, or of the algorithm that it tries.
type segmentForm struct {
	graph *sched.Graph
	idle  engine.CollectivePool
}

// nodeRegion is the state of a communicator for the region of its node.
type nodeRegion struct {
	*nodecoll.Region        // nil: there is none
	ranks            int    // that share it
	calls            int    // that could have used it
	runs             uint64 // that have used it
	why              string // the reason that there is none; "" if it is not known yet
}

// segmentFormOf returns the form in a segment of an algorithm, or nil.
func (c *Comm) segmentFormOf(by coll.Ranked, s *coll.Shape) (*segmentForm, error) {
	form := by.Algorithm.SegmentForm()
	if form == nil || s.Nodes == nil || s.Nodes.Count(s.Nodes.NodeOf(c.rank)) < 2 || c.w.cfg.NoSharedMemory {
		return nil, nil
	}
	g, err := form.Graph(&c.plans.build, s, by.Params)
	if err != nil || g.Shared == 0 || g.Shared > coll.NodePhases.Cores[s.Kind] {
		return nil, err
	}
	return &segmentForm{graph: g}, nil
}

// blockingCollective is planned for a blocking call.
func (c *Comm) blockingCollective(h *engine.Held, p *plan, k *collCall) (*engine.Collective, error) {
	if co, err := c.inRegion(h, p.segment, k); co != nil || err != nil {
		return co, err
	}
	return c.runnerOf(h, p, k)
}

// inRegion returns what runs a form in the region of the node, or nil if the call uses
// messages.
func (c *Comm) inRegion(h *engine.Held, f *segmentForm, k *collCall) (*engine.Collective, error) {
	if f == nil {
		return nil, nil
	}
	r, err := c.regionOf(h, k)
	if err != nil || r.Region == nil {
		return nil, err
	}
	co := c.takeCollective(h, &f.idle, f.graph, k)
	at, n := int(r.runs%2)*coll.SharedLimit, f.graph.Shared
	co.Segment = r.Bytes[at : at+n : at+n]
	r.runs++
	return co, nil
}

// regionOf returns the region for a call, which it forms if it is time. It releases the
// lock meanwhile.
func (c *Comm) regionOf(h *engine.Held, k *collCall) (*nodeRegion, error) {
	r := &c.node.region
	if r.Region != nil || r.why != "" {
		return r, nil
	}
	if r.calls++; r.calls <= nodeAfter {
		return r, nil
	}
	h.Release()
	err := c.formRegion(k.name)
	c.e.Hold()
	return r, err
}

// formRegion forms the region. All ranks of the node are in the same call.
func (c *Comm) formRegion(op string) error {
	r, nodes := &c.node.region, c.plans.choice.nodes
	link := &regionLink{c: c, op: op, ranks: nodes.RanksOf(nodes.NodeOf(c.rank))}
	r.ranks = len(link.ranks)
	region, err := nodecoll.FormRegion(nodecoll.Config{Rank: nodes.LocalRankOf(c.rank), Size: r.ranks, Exchange: link,
		Host: c.w.nodes, NoMemfd: c.w.cfg.Advanced.NoMemfd}, 2*coll.SharedLimit)
	var without *nodecoll.Unavailable
	switch {
	case err == nil:
		r.Region = region
		c.w.teams.add(c.node)
	case errors.As(err, &without):
		r.why = without.Why
	default:
		r.why = err.Error()
		return c.failure(err, op, ProcNull, noTag, 0)
	}
	return nil
}

// regionLink carries the messages that form a region among the ranks of a node.
type regionLink struct {
	c     *Comm
	op    string
	ranks []int
}

func (l *regionLink) Send(to int, b []byte) error {
	return l.c.e.Send(&l.c.co, l.op, l.c.world(l.ranks[to]), engine.TeamTag, b, p2p.Standard)
}

func (l *regionLink) Recv(from int, b []byte) (int, error) {
	st, err := l.c.e.Recv(&l.c.co, l.op, l.c.world(l.ranks[from]), int32(l.ranks[from]), engine.TeamTag, b)
	return st.Bytes, err
}
