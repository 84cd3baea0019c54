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
	defer c.e.Hold().Release()
	if c.plans == nil {
		c.plans = &collPlans{}
	}
	k := collCall{name: op, key: planKey{kind: kind, elem: 1, bytes: bytes, recv: bytes}}
	s := c.shape(&k)
	if ranks > 0 && ranks != c.size {
		s.Size, s.Nodes = ranks, nil
	}
	choice, err := c.chooseLocked(&s)
	if err != nil {
		return nil, c.refuse(ErrArg, op, "%w", err)
	}
	m := &c.plans.choice.model
	x := &hook.Collective{Choice: describeChoice(choice.Ranked), Reason: choice.Why, Nodes: 1, Rails: 1,
		Startup: m.Startup, PerByte: m.PerByte, Copy: m.Copy, Reduce: m.Reduce, Forms: c.hostForms(kind)}
	if s.Nodes != nil {
		x.Nodes, x.Rails = s.Nodes.Nodes(), s.Nodes.Rails
	}
	for _, r := range choice.Ranking {
		if r.Algorithm != choice.Algorithm {
			x.Others = append(x.Others, describeChoice(r))
		}
	}
	return x, nil
}

// hostForms returns the forms of a kind in memory of the host.
func (c *Comm) hostForms(kind coll.Kind) (forms []hook.HostForm) {
	p, names := c.placement(), c.namedAlgorithms()
	for _, f := range coll.HostForms() {
		if !f.Supports(kind) {
			continue
		}
		limits, why := f.Limits(p, names)
		switch {
		case limits[kind] >= 0 || why != "":
		case names[kind] != "":
			why = "Config.Collective (MUSTER_COLLECTIVE) names another algorithm"
		default:
			why = "the gate is used"
		}
		forms = append(forms, hook.HostForm{Name: f.Name, Limit: limits[kind], Why: why})
	}
	return forms
}

func describeChoice(r coll.Ranked) hook.CollectiveChoice {
	c := hook.CollectiveChoice{Algorithm: r.Algorithm.Name, Params: map[string]int{}, Seconds: r.Cost}
	for i, p := range r.Algorithm.Params {
		c.Params[p.Name] = r.Params[i]
	}
	return c
}
