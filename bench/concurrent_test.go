package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// resultsOf runs a benchmark on n ranks and returns the results of rank 0.
func resultsOf(t *testing.T, name string, n int) (results []Result) {
	b, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	mpitest.Run(t, n, func(t *testing.T, c *mpi.Comm) {
		err := b.Run(c, &Params{Sizes: []int{8, 1000}, Iterations: 4, Warmup: 1, Window: 4}, func(r Result) {
			if c.Rank() == 0 {
				results = append(results, r)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	return results
}

func TestConcurrentAndNeighborhoodBenchmarks(t *testing.T) {
	for _, c := range []struct {
		name    string
		ranks   int
		metrics []string // of each size
	}{
		{"multipair", 4, []string{""}},
		{"multipair-latency", 4, []string{""}},
		{"allgather-groups", 3, []string{"groups-1"}},
		{"allgather-groups", 8, []string{"groups-1", "groups-2"}},
		{"neighbor-allgather", 4, []string{""}},
		{"neighbor-alltoall", 3, []string{""}}, // a grid with one dimension of 1
	} {
		t.Run(c.name, func(t *testing.T) {
			var want, got []string
			for range 2 {
				want = append(want, c.metrics...)
			}
			for _, r := range resultsOf(t, c.name, c.ranks) {
				if got = append(got, r.Metric); !(r.Value > 0) {
					t.Errorf("a figure of %g: %+v", r.Value, r)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the figures are %q, want %q", got, want)
			}
		})
	}
}

func TestPairsNeedEvenRanks(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		err := multipairLatency(c, &Params{Sizes: []int{8}}, func(Result) {})
		if err == nil || !strings.Contains(err.Error(), "even number") {
			t.Errorf("three ranks in pairs: %v", err)
		}
	})
}
