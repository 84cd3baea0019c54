package bench

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestStallFigures(t *testing.T) {
	times := make([]float64, 1000)
	for i := range times {
		times[i] = 100 // µs
	}
	times[997], times[998], times[999] = 500, 501, 20_001
	times[10] = 30_000
	want := map[string]float64{"round": 100, "round-p99": 100, "round-max": 20_001, "stalled": 2, "above-limit": 1,
		"paused": 2, "paused-stalled": 1, "paused-max": 30_000}
	paused := make([]float64, 1000)
	paused[0], paused[10] = 1, 1 // a round that was not stalled, and one that was
	for _, r := range stallFigures(8, times, paused) {
		if r.Value != want[r.Metric] {
			t.Errorf("%s is %v %s, want %v", r.Metric, r.Value, r.Unit, want[r.Metric])
		}
		delete(want, r.Metric)
	}
	if len(want) > 0 {
		t.Errorf("no figure for %v", want)
	}
}

// A round counts as paused if a pause overlaps it, however short the common time.
func TestPausedRounds(t *testing.T) {
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	ends := []time.Time{at(10), at(20), at(30), at(40)}
	got := pausedRounds(began, ends, []pause{{at(-5), at(0)}, {at(19), at(21)}, {at(40), at(50)}})
	if want := []float64{0, 1, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("paused rounds are %v, want %v", got, want)
	}
}

// The monitor ends when it is told to, and records only what is longer than its limit.
func TestPauseMonitor(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	m := watchPauses()
	time.Sleep(20 * time.Millisecond)
	found, stolen := m.stop()
	if now := runtime.GOMAXPROCS(0); now != procs {
		t.Errorf("GOMAXPROCS is %d afterwards, was %d", now, procs)
	}
	if stolen < 0 {
		t.Errorf("the hypervisor took %v", stolen)
	}
	for _, p := range found {
		if p.to.Sub(p.from) <= pauseLimit {
			t.Errorf("a pause of %v", p.to.Sub(p.from))
		}
	}
}

// Each benchmark prints its figures, and the counters of causes beside them.
func TestStallsAndProcessorTime(t *testing.T) {
	for name, metrics := range map[string][]string{
		"stalls": {"round", "round-p99", "round-max", "stalled", "above-limit", "paused", "paused-stalled", "paused-max", "pauses", "pause-max", "stolen", "cpu", "datagrams.retransmitted", "waits.long"},
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
