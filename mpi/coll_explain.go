package mpi

// What a collective would do, for people who ask: muster explain.

import "github.com/muster-mpi/muster/internal/coll"

// CollectiveChoice is an algorithm of a collective and what it is thought to cost.
type CollectiveChoice struct {
	Algorithm string
	Params    map[string]int
	Seconds   float64
}

// CollectiveExplained reports how a call is made, and why.
type CollectiveExplained struct {
	CollectiveChoice
	Why string
	// Others could serve too, the cheapest first.
	Others []CollectiveChoice
	// Startup is what a message is thought to cost in seconds, PerByte each of its
	// bytes, Copy and Reduce a byte that is copied or combined by a rank.
	Startup, PerByte, Copy, Reduce float64
	// Nodes is on how many hosts the ranks are.
	Nodes int
	// Segment is up to how many bytes blocking calls are made in the shared memory of
	// the host instead, by no algorithm that sends messages; negative: none is, and
	// NoSegment says why.
	Segment   int
	NoSegment string
}

// ExplainCollective reports which algorithm serves a call of a collective on c, by the
// names of Config.Collective, in which all blocks are equal, with so many bytes: of
// the data, or of a block where each rank has one. With ranks above 0 it is told
// for so many instead, which need not exist; all are then taken to be as far from
// each other as those of c.
func ExplainCollective(c *Comm, collective string, bytes, ranks int) (*CollectiveExplained, error) {
	const op = "ExplainCollective"
	if err := c.usable(op); err != nil {
		return nil, err
	}
	kind, err := coll.ParseKind(collective)
	if err != nil {
		return nil, c.refuse(ErrArg, op, "%w", err)
	}
	if bytes < 0 || ranks < 0 {
		return nil, c.refuse(ErrArg, op, "%d bytes among %d ranks: give numbers that are not negative", bytes, ranks)
	}
	c.e.Lock()
	defer c.e.Unlock()
	if c.plans == nil {
		c.plans = &collPlans{}
	}
	k := collCall{name: op, key: planKey{kind: kind, elem: 1, bytes: bytes, recv: bytes}}
	s := c.shape(&k)
	if ranks > 0 && ranks != c.size {
		s.Size, s.Nodes = ranks, nil
	}
	choice, err := c.chooseAlgorithm(&s)
	if err != nil {
		return nil, c.refuse(ErrArg, op, "%w", err)
	}
	m := &c.plans.choice.model
	x := &CollectiveExplained{CollectiveChoice: named(choice.Ranked), Why: choice.Why, Nodes: 1,
		Startup: m.Startup, PerByte: m.PerByte, Copy: m.Copy, Reduce: m.Reduce,
		Segment: wantedLimits(c.forced(), c.e.Oversubscribed())[kind], NoSegment: c.noTeam()}
	if s.Nodes != nil {
		x.Nodes = len(s.Nodes.Ranks)
	}
	for _, r := range choice.Ranking {
		if r.Algorithm != choice.Algorithm {
			x.Others = append(x.Others, named(r))
		}
	}
	switch {
	case x.NoSegment != "":
		x.Segment = -1
	case x.Segment < 0 && c.forced() != "":
		x.NoSegment = "Config.Collective (MUSTER_COLLECTIVE) names an algorithm"
	case x.Segment < 0:
		x.NoSegment = "it has no form there"
	}
	return x, nil
}

func named(r coll.Ranked) CollectiveChoice {
	c := CollectiveChoice{Algorithm: r.Algorithm.Name, Params: map[string]int{}, Seconds: r.Cost}
	for i, p := range r.Algorithm.Params {
		c.Params[p.Name] = r.Params[i]
	}
	return c
}
