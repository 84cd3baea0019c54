package coll

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/internal/sched"
)

// A node-aware algorithm is chosen only if its plan costs less than it saves in plannedCalls
// calls, compared with the best algorithm that is not node-aware. Plans are made here and
// timed; shortPlan is too short to be timed, and to matter.
func TestPlansAreWorthTheirCost(t *testing.T) {
	if race.Enabled {
		t.Skip("plans take ten times as long under the race detector")
	}
	const shortPlan = 0.02
	for _, n := range []int{4, 16, 32} {
		nodes := Consecutive(2, slices.Repeat([]int{n}, n)...)
		for i, m := range []*Model{&hosts, &sharedHosts, labModel(1000), labModel(100)} {
			for kind := Barrier; kind < Neighbors; kind++ {
				for _, bytes := range []int{8, 256, 1 << 10, 8 << 10, 64 << 10, 1 << 20} {
					s := onNodes(kind, bytes, nodes)
					ranking := rank(s, m)
					chosen := ranking[0]
					flat := slices.IndexFunc(ranking, func(r Ranked) bool { return !r.Algorithm.Needs.Nodes })
					if !chosen.Algorithm.Needs.Nodes || flat < 0 {
						continue
					}
					gain := ranking[flat].Algorithm.costOn(s, m, ranking[flat].Params) - chosen.Algorithm.costOn(s, m, chosen.Params)
					if plan := planTime(t, s, chosen); plan > shortPlan && plan > plannedCalls*gain {
						t.Errorf("%s of %d bytes on %d nodes of %d ranks, model %d: %s %v takes %.3g s to plan and saves %.3g s in a call, compared with %s",
							kind, bytes, n, n, i, chosen.Algorithm.Name, chosen.Params, plan, gain, ranking[flat].Algorithm.Name)
					}
				}
			}
		}
	}
}

// TestSingleCarrierPlans checks the case that the rule is for: among 1,024 ranks a single
// carrier would plan for seconds.
func TestSingleCarrierPlans(t *testing.T) {
	for n, want := range map[int]bool{4: true, 32: false} {
		c, err := Choose(onNodes(Alltoall, 8, Consecutive(2, slices.Repeat([]int{n}, n)...)), labModel(1000), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Algorithm.Name == "node-carriers" && c.Params[0] == 1; got != want {
			t.Errorf("alltoall of 8 bytes on %d nodes of %d ranks: %s %v; want a single carrier: %v", n, n, c.Algorithm.Name, c.Params, want)
		}
	}
}

// planTime returns the processor time in seconds to build the graph of the slower of a
// leader and another rank, the shortest of three attempts.
func planTime(t *testing.T, s *Shape, r Ranked) float64 {
	t.Helper()
	shortest := time.Hour
	for range 3 {
		slowest := time.Duration(0)
		for rank := range 2 {
			var b sched.Builder
			own := *s
			own.Rank = rank
			start := usedTime(t)
			if _, err := r.Algorithm.Graph(&b, &own, r.Params); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, usedTime(t)-start)
		}
		shortest = min(shortest, slowest)
	}
	return shortest.Seconds()
}

func usedTime(t *testing.T) time.Duration {
	t.Helper()
	used, ok := cputime.Used()
	if !ok {
		t.Skip("the system does not report the processor time")
	}
	return used
}
