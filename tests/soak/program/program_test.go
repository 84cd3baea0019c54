package program

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// Without faults every program ends with the right values, on ranks that are goroutines.
func TestProgramsWithoutFaults(t *testing.T) {
	kinds := map[string]bool{}
	for seed := range uint64(12) {
		mpitest.RunOptions(t, 1+int(seed%5), mpitest.Options{StuckAfter: 10 * time.Second}, func(t *testing.T, world *mpi.Comm) {
			result, err := Run(world, Config{Seed: seed, Time: time.Minute, Steps: 24, Largest: 100_000})
			if err != nil {
				t.Error(err)
			}
			if result.Steps != 24 {
				t.Errorf("%d steps, want 24", result.Steps)
			}
			if world.Rank() == 0 {
				for k := range result.Kinds {
					kinds[k] = true
				}
			}
		})
	}
	if !mpitest.Launched() && len(kinds) != 8 {
		t.Errorf("only the steps %v occur", kinds)
	}
}

func TestCheckerFindsWrongBytes(t *testing.T) {
	buf := newBuffer(100)
	fill(buf[:100], 7)
	if err := checkBytes(buf, 100, 100, 7, "it"); err != nil {
		t.Errorf("correct bytes: %v", err)
	}
	for _, c := range []struct {
		what   string
		change func()
		got    int
	}{
		{"a byte", func() { buf[50]++ }, 100},
		{"a byte behind it", func() { buf[105]++ }, 100},
		{"its length", func() {}, 99},
	} {
		fill(buf[:100], 7)
		c.change()
		if checkBytes(buf, c.got, 100, 7, "it") == nil {
			t.Errorf("%s is wrong, and nothing is reported", c.what)
		}
	}
}
