package bench

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestStallFigures(t *testing.T) {
	times := make([]float64, 1000)
	for i := range times {
		times[i] = 100 // µs
	}
	times[997], times[998], times[999] = 500, 501, 20_001
	want := map[string]float64{"round": 100, "round-p99": 100, "round-max": 20_001, "stalled": 2, "above-limit": 1}
	for _, r := range stallFigures(8, times) {
		if r.Value != want[r.Metric] {
			t.Errorf("%s is %v %s, want %v", r.Metric, r.Value, r.Unit, want[r.Metric])
		}
		delete(want, r.Metric)
	}
	if len(want) > 0 {
		t.Errorf("no figure for %v", want)
	}
}

// Each benchmark prints its figures, and the counters of causes beside them.
func TestStallsAndProcessorTime(t *testing.T) {
	for name, metrics := range map[string][]string{
		"stalls": {"round", "round-p99", "round-max", "stalled", "above-limit", "cpu", "datagrams.retransmitted", "waits.long"},
		"cpu":    {"", "late"},
	} {
		b, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]float64{}
		mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
			err := b.Run(c, &Params{Sizes: []int{1 << 10}, Iterations: 20}, func(r Result) {
				if c.Rank() == 0 {
					seen[r.Metric] = r.Value
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
		for _, metric := range metrics {
			if v, ok := seen[metric]; !ok || metric == "round" && v <= 0 {
				t.Errorf("%s: %q is %v in %v", name, metric, v, seen)
			}
		}
	}
}
