package mpi

// The choice of an algorithm, for package inspect.

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi/internal/hook"
)

// explainCollective is inspect.ExplainCollective.
func (c *Comm) explainCollective(collective string, bytes, ranks int) (*hook.Collective, error) {
	const op = "ExplainCollective"
	if err := c.usable(op); err != nil {
		return nil, err
	}
	kind, err := coll.ParseKind(collective)
	if err != nil {
		return nil, c.refuse(ErrArg, op, "%w", err)
	}
	if bytes < 0 || ranks < 0 {
		return nil, c.refuse(ErrArg, op, "%d bytes among %d ranks: neither may be negative", bytes, ranks)
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
	x := &hook.Collective{Choice: named(choice.Ranked), Reason: choice.Why, Nodes: 1, Rails: 1,
		Startup: m.Startup, PerByte: m.PerByte, Copy: m.Copy, Reduce: m.Reduce,
		Segment: wantedLimits(c.forced(), c.e.Oversubscribed())[kind], NoSegment: c.noTeam()}
	if s.Nodes != nil {
		x.Nodes, x.Rails = s.Nodes.Nodes(), s.Nodes.Rails
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

func named(r coll.Ranked) hook.CollectiveChoice {
	c := hook.CollectiveChoice{Algorithm: r.Algorithm.Name, Params: map[string]int{}, Seconds: r.Cost}
	for i, p := range r.Algorithm.Params {
		c.Params[p.Name] = r.Params[i]
	}
	return c
}
