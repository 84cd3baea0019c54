package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestContestMeasuresEveryCollective(t *testing.T) {
	algorithms := map[string]string{"barrier": "tree:radix=2", "bcast": "chain:segment=8192", "gather": "linear", "scatter": "linear",
		"allgather": "ring:ways=1", "alltoall": "pairwise", "reduce": "binomial", "allreduce": "ring", "reduce-scatter": "pairwise", "scan": "linear", "exscan": "linear"}
	for _, name := range ContestCollectives() {
		t.Run(name, func(t *testing.T) {
			var got []Entry
			mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
				contest, err := NewContest(c, name, []string{"", algorithms[name]})
				if err != nil {
					t.Error(err)
					return
				}
				entries, err := contest.Run(1000, func(string) bool { return true }, time.Millisecond)
				if err != nil {
					t.Error(err)
				}
				if c.Rank() == 0 {
					got = entries
				}
				if err := contest.Close(); err != nil {
					t.Error(err)
				}
			})
			if len(got) != 2 || !got[0].Last || len(got[0].Times) < fewestLaps {
				t.Fatalf("the entries are %+v; the first must stay to the end", got)
			}
			for _, e := range got {
				if e.Choice.Algorithm == "" || e.Choice.Seconds <= 0 || len(e.Times) == 0 || e.Micros() <= 0 {
					t.Errorf("an entry was not measured: %+v", e)
				}
			}
		})
	}
}

// An algorithm that does not support the calls is not called, since the library would use
// another one.
func TestContestLeavesOut(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		contest, err := NewContest(c, "allgather", []string{"", "neighbor-exchange"})
		if err != nil {
			t.Error(err)
			return
		}
		entries, err := contest.Run(8, func(a string) bool { return a != "neighbor-exchange" }, time.Millisecond)
		if err != nil {
			t.Error(err)
		}
		if e := entries[1]; e.Served || e.Last || e.Times != nil {
			t.Errorf("an algorithm for an even number of ranks was called by three: %+v", e)
		}
		if err := contest.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestFastestStay(t *testing.T) {
	entries := []Entry{{Times: []float64{90, 80}}, {Times: []float64{50, 10}}, {Times: []float64{12, 30}}, {Times: []float64{25}}, {Times: []float64{11, 11}}}
	all := []int{0, 1, 2, 3, 4}
	for _, c := range []struct {
		factor float64
		most   int
		want   []int
	}{
		{2, 5, []int{0, 1, 2, 4}}, // the first stays, though it is slow; the shortest times count
		{1.15, 5, []int{0, 1, 4}},
		{2, 1, []int{0, 1}},
	} {
		if got := fastest(entries, all, c.factor, c.most); !slices.Equal(got, c.want) {
			t.Errorf("within %g, at most %d: %v stay, want %v", c.factor, c.most, got, c.want)
		}
	}
}

func TestBestOfContest(t *testing.T) {
	first := Entry{Last: true, Times: []float64{1, 30, 1, 30}}
	for _, c := range []struct {
		name   string
		others []Entry
		want   string
		ratio  float64
	}{
		// The odd calls are compared, whatever the even ones were.
		{"the fastest by even calls", []Entry{{Algorithm: "a", Last: true, Times: []float64{9, 10, 9, 10}}, {Algorithm: "b", Last: true, Times: []float64{5, 15, 5, 15}}}, "b", 2},
		{"only finalists", []Entry{{Algorithm: "a", Times: []float64{2}}, {Algorithm: "b", Last: true, Times: []float64{20, 20}}}, "b", 1.5},
		{"no finalist", []Entry{{Algorithm: "a", Times: []float64{62}}, {Algorithm: "b", Times: []float64{31}}, {Algorithm: "not served"}}, "b", 0.5},
	} {
		best, ratio := Best(append([]Entry{first}, c.others...))
		if best == nil || best.Algorithm != c.want || ratio != c.ratio {
			t.Errorf("%s: %+v, ratio %g; want %s, %g", c.name, best, ratio, c.want, c.ratio)
		}
	}
	if best, _ := Best([]Entry{first}); best != nil {
		t.Errorf("the best of no others is %+v", best)
	}
}
