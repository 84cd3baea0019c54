package mpi_test

import (
	"errors"
	"flag"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/tests/soak/program"
)

var (
	simulateSeeds = flag.Int("simulate.seeds", 6, "number of random programs of TestSimulatedPrograms")
	simulateFirst = flag.Uint64("simulate.first", 0, "seed of the first one")
)

// TestSimulatedPrograms runs the random programs of make soak on the whole library in
// virtual time, over a network that loses, duplicates and reorders packets. Waits for
// retransmissions take no real time. In every second program a rank dies.
func TestSimulatedPrograms(t *testing.T) {
	var recoveries atomic.Int32
	for i := range *simulateSeeds {
		seed := *simulateFirst + uint64(i)
		n, share, cfg := 2+int(seed%3), []float64{0.02, 0.1}[seed/2%2], mpi.Config{}
		kill := seed%2 == 1
		if kill {
			n, cfg.OnFailure = n+1, "return"
		}
		took := mpi.Simulate(t, n, cfg, seed, share, func(c *mpi.Comm) error {
			p := program.Config{Seed: seed, Time: time.Hour, Steps: 16, Largest: 50_000, Blocking: true, Survive: kill}
			if kill && c.Rank() == int(seed/2)%n {
				p.Die = func(step int) bool { return step == int(seed*7%16) }
			}
			result, err := program.Run(c, p)
			if errors.Is(err, program.ErrDied) {
				return mpi.ErrSimulatedDeath
			}
			recoveries.Add(int32(result.Recoveries))
			return err
		})
		t.Logf("seed %d: %d ranks, %.0f %% of the packets each lost, duplicated and reordered: %v of virtual time", seed, n, 100*share, took)
	}
	if recoveries.Load() == 0 && *simulateSeeds > 1 {
		t.Error("no program has survived the death of a rank")
	}
}
