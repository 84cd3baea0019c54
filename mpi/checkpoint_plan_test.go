package mpi

import (
	"slices"
	"strings"
	"testing"
)

func TestBuddies(t *testing.T) {
	for _, c := range []struct{ nodes, want []int }{
		{[]int{0}, []int{0}},
		{[]int{0, 0, 0}, []int{1, 2, 0}},
		{[]int{0, 0, 1, 1}, []int{2, 3, 0, 1}},
		{[]int{0, 1, 0, 1}, []int{1, 0, 3, 2}},
		{[]int{0, 0, 0, 2, 2, 5}, []int{3, 4, 3, 5, 5, 0}},
		{[]int{7, 7, 7, 1}, []int{3, 3, 3, 0}},
	} {
		got := buddies(c.nodes)
		if !slices.Equal(got, c.want) {
			t.Errorf("the buddies of ranks on nodes %v are %v, want %v", c.nodes, got, c.want)
		}
	}
}

// held is what a rank keeps of a checkpoint of four ranks, whose buddies are the next ranks.
func held(version uint64, rank int, complete bool) holding {
	return holding{Version: version, Ctx: 8, Size: 4, Complete: complete,
		Ranks: []int{rank, (rank + 3) % 4}, Own: []bool{true, false}, Lengths: []int{10, 10}}
}

func TestPlanRestore(t *testing.T) {
	of := func(h ...holding) []holding { return h }
	all := [][]holding{of(held(5, 0, true)), of(held(5, 1, true)), of(held(5, 2, true)), of(held(5, 3, true))}
	for name, c := range map[string]struct {
		holdings [][]holding
		version  uint64
		again    bool
		to       []int // of each part: who gets it
		lost     string
	}{
		"none":                  {[][]holding{nil, nil}, 0, false, nil, ""},
		"nothing lost":          {all, 5, false, []int{0, 1, 2, 3}, ""},
		"replaced":              {[][]holding{all[0], nil, all[2], all[3]}, 5, true, []int{0, 1, 2, 3}, ""},
		"shrunken":              {[][]holding{all[0], all[2], all[3]}, 5, false, []int{0, 1, 1, 2}, ""},
		"rank and buddy":        {[][]holding{all[0], nil, nil, all[3]}, 0, false, nil, "ranks [1]"},
		"never complete":        {[][]holding{of(held(5, 0, false)), nil, nil, nil}, 0, false, nil, ""},
		"new one not complete":  {[][]holding{of(held(5, 0, true), held(6, 0, false)), all[1], all[2], all[3]}, 5, false, []int{0, 1, 2, 3}, ""},
		"some keep the old one": {[][]holding{of(held(6, 0, true)), of(held(5, 1, true), held(6, 1, false)), of(held(6, 2, true)), of(held(5, 3, true), held(6, 3, false))}, 6, false, []int{0, 1, 2, 3}, ""},
	} {
		plan, err := planRestore(c.holdings)
		switch {
		case c.lost != "":
			if err == nil || !strings.Contains(err.Error(), c.lost) {
				t.Errorf("%s: the error is %v, want one that names %s", name, err, c.lost)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", name, err)
			continue
		case c.version == 0:
			if plan != nil {
				t.Errorf("%s: the plan is %+v, want none", name, plan)
			}
			continue
		}
		if plan == nil || plan.key.version != c.version || plan.storeAgain != c.again || len(plan.moves) != 4 {
			t.Errorf("%s: the plan is %+v, want version %d, stored again: %v", name, plan, c.version, c.again)
			continue
		}
		for _, m := range plan.moves {
			if m.to != c.to[m.part] {
				t.Errorf("%s: rank %d gets part %d, want rank %d", name, m.to, m.part, c.to[m.part])
			}
		}
	}
}
