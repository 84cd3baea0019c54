package coll

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The choice of an algorithm for a call. Costs are computed for every applicable
// algorithm and every parameter value worth trying. The algorithm with the lowest
// cost is chosen, unless a tuning table names another.
//
// All ranks of a call must make the same choice without communicating. They do if they
// have the same table and the same model, because the choice depends only on values
// that all ranks know: the costs and Message ignore what only some ranks know (the
// lengths of alltoallv or gatherv, the neighbors of a rank, InPlace). Callers ensure
// that table and model are the same.

// Choice is the algorithm chosen for a call, with the reasons.
type Choice struct {
	Ranked
	Why string // a sentence for users
	// Ranking lists the applicable algorithms, each with its best parameters, in the
	// order of their cost.
	Ranking []Ranked
}

// Ranked is an algorithm with parameters and their cost in seconds.
type Ranked struct {
	Algorithm *Algorithm
	Params    []int
	Cost      float64
}

// Choose chooses the algorithm for a call. A nil table has no rules.
func Choose(s *Shape, m *Model, table *Tuning) (Choice, error) {
	var c Choice
	if c.Ranking = rank(s, m); len(c.Ranking) == 0 {
		return c, fmt.Errorf("%s among %d ranks: none of the algorithms %s is applicable; %s",
			s.Kind, s.Size, strings.Join(algorithmNames(s.Kind), ", "), reasons(s))
	}
	passed := ""
	if rule, i := table.match(s, &passed); rule != nil {
		c.Ranked = Ranked{rule.Algorithm, rule.Params, rule.Algorithm.costPlanned(s, m, rule.Params)}
		c.Why = fmt.Sprintf("rule %d of the tuning table, for %s", i+1, rule.describeCalls())
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

// rank finds the best parameters of each algorithm and sorts the algorithms by cost.
// Costs are compared with the precision of float32: equal formulas thus stay equal on
// every processor, and the order of the table decides.
func rank(s *Shape, m *Model) []Ranked {
	if ranking := rankPlans(s, m, false); len(ranking) > 0 {
		return ranking
	}
	return rankPlans(s, m, true) // all schedules are long
}

func rankPlans(s *Shape, m *Model, long bool) []Ranked {
	candidates := byKind[s.Kind]
	ranking := make([]Ranked, 0, len(candidates))
	for _, a := range candidates {
		if ok, _ := Applicable(a, s); !ok || a.ByName {
			continue
		}
		best := Ranked{Algorithm: a, Cost: math.Inf(1)}
		a.EachParams(func(params []int) {
			if !long && a.tooLong(s, params) {
				return
			}
			cost := a.costPlanned(s, m, params)
			if best.Params == nil || float32(cost) < float32(best.Cost) {
				best.Params, best.Cost = slices.Clone(params), cost
			}
		})
		if best.Params != nil {
			ranking = append(ranking, best)
		}
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

// EachParams calls try with every combination of the values worth trying, the default
// first. It reuses the slice.
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

// Message returns the message size of a call as benchmarks count it, and whether all
// ranks know it: the data of kinds without blocks, one block of kinds with blocks (the
// mean if lengths differ), and all of In for ReduceScatter.
func (s *Shape) Message() (bytes int, known bool) {
	r := table[s.Kind]
	blocks := &s.Recv
	if r.out != AllBlocks {
		blocks = &s.Send
	}
	switch {
	case r.out != AllBlocks && r.out != OwnBlock:
		return s.Bytes, true
	case r.near:
		return 0, false
	case !r.alike:
		return blocks.Each, !s.Recv.irregular() && !s.Send.irregular()
	}
	all := blocks.Each * s.Size
	if blocks.Lens != nil {
		all = sum(blocks.Lens)
	}
	if r.combines {
		return all, true
	}
	return all / s.Size, true
}

// LongestSent returns the longest block that this rank sends in an alltoall. Each rank
// knows only its own, so nothing that all must agree on may depend on it.
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
