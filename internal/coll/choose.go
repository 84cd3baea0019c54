package coll

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The choice of an algorithm for a call. Costs are computed for every algorithm
// that can do the call, with every value of its parameters that is worth trying;
// the cheapest is chosen, unless a tuning table says otherwise.
//
// All ranks of a call must choose the same without asking each other. They do if
// they have the same table and the same model, since everything else that is
// looked at here is known to all of them: what only some know (the lengths of
// alltoallv or gatherv, the neighbors of a rank, InPlace) is left out by
// the algorithms' costs and by Message. Callers see to the table and the model.

// Choice is an algorithm for a call, with what led to it.
type Choice struct {
	Ranked
	Why string // a sentence for users
	// Ranking has the algorithms that can do the call, each with its best
	// parameters, in the order of their cost by the model.
	Ranking []Ranked
}

// Ranked is an algorithm with parameters and their cost in seconds.
type Ranked struct {
	Algorithm *Algorithm
	Params    []int
	Cost      float64
}

// Choose chooses. A nil table has no rules.
func Choose(s *Shape, m *Model, table *Tuning) (Choice, error) {
	var c Choice
	if c.Ranking = rank(s, m); len(c.Ranking) == 0 {
		return c, fmt.Errorf("%s among %d ranks: none of the algorithms %s can do it; %s",
			s.Kind, s.Size, strings.Join(names(s.Kind), ", "), reasons(s))
	}
	passed := ""
	if rule, i := table.match(s, &passed); rule != nil {
		c.Ranked = Ranked{rule.Algorithm, rule.Params, rule.Algorithm.costOn(s, m, rule.Params)}
		c.Why = fmt.Sprintf("rule %d of the tuning table, for %s", i+1, rule.where())
	} else {
		c.Ranked = c.Ranking[0]
		c.Why = "lowest estimated cost"
		if len(c.Ranking) == 1 {
			c.Why = "the only algorithm for this call"
		}
	}
	c.Why += passed
	return c, nil
}

// rank finds the best parameters of each algorithm and puts the algorithms in
// order. Costs are compared with the precision of float32: what is equal by its
// formula stays equal, however a processor rounds, and the order of the table
// decides.
func rank(s *Shape, m *Model) []Ranked {
	candidates := byKind[s.Kind]
	ranking := make([]Ranked, 0, len(candidates))
	for _, a := range candidates {
		if ok, _ := Applicable(a, s); !ok || a.ByName {
			continue
		}
		best := Ranked{Algorithm: a, Cost: math.Inf(1)}
		a.EachParams(func(params []int) {
			cost := a.costOn(s, m, params)
			if best.Params == nil || float32(cost) < float32(best.Cost) {
				best.Params, best.Cost = slices.Clone(params), cost
			}
		})
		ranking = append(ranking, best)
	}
	slices.SortStableFunc(ranking, func(a, b Ranked) int {
		switch x, y := float32(a.Cost), float32(b.Cost); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return ranking
}

// costOn is Cost where ranks share nodes. Algorithms that do not know of nodes have
// all ranks of one send at the same time, over the cables that they share, but for
// what goes to ranks of the same node. A gather or scatter has to do with one cable,
// that of the root.
func (a *Algorithm) costOn(s *Shape, m *Model, params []int) float64 {
	if s.Nodes == nil || a.Needs.Nodes || a.Along && s.Nodes.inOrder || s.Kind == Gather || s.Kind == Scatter {
		return a.Cost(s, m, params)
	}
	shared, most := *m, s.Nodes.most()
	if m.TimeSlices {
		shared.Startup *= float64(most)
	}
	shared.PerByte *= float64(most*(s.Size-most)) / float64(s.Size-1)
	return a.Cost(s, &shared, params)
}

// EachParams calls try with every combination of the values worth trying, the
// default first. The slice is the same each time.
func (a *Algorithm) EachParams(try func(params []int)) {
	params := a.Default()
	var vary func(i int)
	vary = func(i int) {
		if i == len(params) {
			try(params)
			return
		}
		for _, v := range a.Params[i].Values {
			params[i] = v
			vary(i + 1)
		}
	}
	vary(0)
}

func reasons(s *Shape) string {
	var list []string
	for _, a := range byKind[s.Kind] {
		_, why := Applicable(a, s)
		list = append(list, a.Name+": "+why)
	}
	return strings.Join(list, "; ")
}

// Message is the size of a call as benchmarks count it, and whether all ranks know
// it: the data of kinds that have no blocks, one block of those that have (the mean
// where the lengths differ), and all of In for ReduceScatter.
func (s *Shape) Message() (bytes int, known bool) {
	switch s.Kind {
	case Barrier:
		return 0, true
	case Gather, Alltoall:
		return s.Recv.Each, !s.Recv.irregular() && !s.Send.irregular()
	case Scatter:
		return s.Send.Each, !s.Send.irregular()
	case Allgather:
		if s.Recv.Lens == nil {
			return s.Recv.Each, true
		}
		return sum(s.Recv.Lens) / s.Size, true
	case ReduceScatter:
		if s.Send.Lens == nil {
			return s.Send.Each * s.Size, true
		}
		return sum(s.Send.Lens), true
	case Neighbors:
		return 0, false
	}
	return s.Bytes, true
}

// LongestSent is the longest block that this rank sends to one other in an alltoall. Ranks
// know it each for itself, so nothing that all must agree on may depend on it.
func (s *Shape) LongestSent() (longest int) {
	for r := range s.Size {
		if r != s.Rank {
			longest = max(longest, s.sentTo(r).Len)
		}
	}
	return longest
}

func sum(list []int) (total int) {
	for _, n := range list {
		total += n
	}
	return total
}
