package mpitest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// scenarioVar makes a test that fails on purpose do so: it runs in a process of
// its own, started by the test that looks at what it says.
const scenarioVar = "MPITEST_SCENARIO"

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestRunGivesEveryRank(t *testing.T) {
	seen := make(chan [2]int, 16)
	mpitest.Sizes(t, []int{1, 2, 5}, func(t *testing.T, world *mpi.Comm) {
		seen <- [2]int{world.Rank(), world.Size()}
	})
	close(seen)
	got := map[[2]int]int{}
	for s := range seen {
		got[s]++
	}
	if mpitest.Launched() {
		return // each process has seen its own ranks only
	}
	for _, n := range []int{1, 2, 5} {
		for r := range n {
			if got[[2]int{r, n}] != 1 {
				t.Errorf("rank %d of %d ran %d times, want once", r, n, got[[2]int{r, n}])
			}
		}
	}
}

// What a failing test says, and that it ends.
func TestFailuresAreReported(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("starts processes")
	}
	for scenario, want := range map[string][]string{
		"fatal":   {"rank 1 has had enough", "rank 1 on", "ended early", "--- FAIL"},
		"panic":   {"rank 1: panic: out of cheese", "rank 1 on", "--- FAIL"},
		"refused": {"start 0 ranks", "--- FAIL"},
		"leak":    {"left behind after the tests: goroutines 1", "mpi.Recv"},
	} {
		t.Run(scenario, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestScenario$")
			cmd.Env = append(os.Environ(), scenarioVar+"="+scenario)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("the test passed:\n%s", out)
			}
			for _, s := range want {
				if !strings.Contains(string(out), s) {
					t.Errorf("it does not say %q:\n%s", s, out)
				}
			}
		})
	}
}

// TestScenario is what TestFailuresAreReported starts.
func TestScenario(t *testing.T) {
	wait := func(t *testing.T, world *mpi.Comm) {
		if _, err := mpi.Recv(world, make([]int, 1), 1, 0); err != nil {
			t.Errorf("rank %d: %v", world.Rank(), err)
		}
	}
	switch os.Getenv(scenarioVar) {
	case "fatal":
		mpitest.Run(t, 3, func(t *testing.T, world *mpi.Comm) {
			if world.Rank() == 1 {
				t.Fatal("rank 1 has had enough")
			}
			wait(t, world)
		})
	case "panic":
		mpitest.Run(t, 3, func(t *testing.T, world *mpi.Comm) {
			if world.Rank() == 1 {
				panic("out of cheese")
			}
			wait(t, world)
		})
	case "refused":
		mpitest.Run(t, 0, wait)
	case "leak":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			if world.Rank() == 0 {
				other, err := mpi.Local(2, nil)
				if err != nil {
					t.Fatal(err)
				}
				go mpi.Recv(other[0].Comm(), make([]int, 1), 1, 0)
			}
		})
	default:
		t.Skip("runs as a part of TestFailuresAreReported")
	}
}
