package mpitest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// scenarioVar makes a test that fails on purpose do so: it runs in a process of
// its own, started by the test that looks at what it says.
const scenarioVar = "MPITEST_SCENARIO"

func TestMain(m *testing.M) {
	if os.Getenv(scenarioVar) == "no main" {
		os.Exit(m.Run()) // as without a TestMain
	}
	mpitest.Main(m)
}

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
		"fatal":      {"rank 1 has had enough", "rank 1 on", "ended early", "--- FAIL"},
		"panic":      {"rank 1: panic: out of cheese", "rank 1 on", "--- FAIL"},
		"timeout":    {"after 1s these ranks have not ended: [0 1]; which rank waits for which:", "rank 0 waits in Recv (", "--- FAIL"},
		"soon":       {"no progress for 200ms; which rank waits for which:", "cycle: 0 waits for 1 waits for 0", "--- FAIL"},
		"deadlock":   {"no progress for 2s", "rank 0 waits in Recv (", "_test.go:", "from 1 tag 0", "cycle: 0 waits for 1 waits for 0", "--- FAIL"},
		"rank":       {"TestScenario/rank=1", "this rank only", "--- FAIL"},
		"types":      {"the element types differ: rank 1 sent with Send of float32 at ", "_test.go:", "rank 0 received with Recv of float64 at "},
		"operations": {"Allreduce of 8 bytes of int with Sum at ", "Allreduce of 8 bytes of int with Max at ", "_test.go:"},
		"kinds":      {"rank 0 is in Barrier at ", "rank 1 in Bcast of 8 bytes of int with root 0 at "},
		"roots":      {"of int with root 0 at ", "of int with root 1 at "},
		"unreceived": {"a message was not received: rank 1 sent it with Send of int at ", "to rank 0 on world, tag 7, 8 bytes"},
		"dropped":    {"a request was not completed: Irecv from rank 1 at "},
		"no main":    {"has no TestMain that leaves the job", "mpitest.Main(m)"},
		"refused":    {"start 0 ranks", "--- FAIL"},
		"leak":       {"left behind after the tests: goroutines 1", "mpi.Recv"},
	} {
		t.Run(scenario, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestScenario$")
			cmd.Env = append(os.Environ(), scenarioVar+"="+scenario)
			if scenario == "no main" {
				cmd.Env = append(cmd.Env, "MUSTER_ROOT=localhost:1") // a rank of a job
			}
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
	case "deadlock":
		mpitest.Run(t, 2, exchangeNothing)
	case "timeout":
		mpitest.RunOptions(t, 2, mpitest.Options{StuckAfter: -1, Timeout: time.Second}, exchangeNothing)
	case "soon":
		mpitest.RunOptions(t, 2, mpitest.Options{StuckAfter: 200 * time.Millisecond}, exchangeNothing)
	case "rank":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			if world.Rank() == 1 {
				t.Error("this rank only")
			}
		})
	case "types":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			var err error
			if world.Rank() == 1 {
				err = mpi.Send(world, make([]float32, 4), 0, 0)
			} else {
				_, err = mpi.Recv(world, make([]float64, 4), 1, 0)
			}
			fail(t, err)
		})
	case "operations":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			op := mpi.Sum[int]
			if world.Rank() == 1 {
				op = mpi.Max[int]
			}
			fail(t, mpi.Allreduce(world, nil, make([]int, 1), op))
		})
	case "kinds":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			if world.Rank() == 0 {
				fail(t, world.Barrier())
			} else {
				fail(t, mpi.Bcast(world, make([]int, 1), 0))
			}
		})
	case "roots":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			fail(t, mpi.Bcast(world, make([]int, 1), world.Rank()))
		})
	case "unreceived":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			if world.Rank() == 1 {
				fail(t, mpi.Send(world, make([]int, 1), 0, 7))
			}
		})
	case "dropped":
		mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
			if world.Rank() == 0 {
				mpi.Irecv(world, make([]int, 1), 1, 7)
			}
		})
	case "no main":
		mpitest.Run(t, 1, wait)
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

// exchangeNothing is a deadlock of two ranks.
func exchangeNothing(t *testing.T, world *mpi.Comm) {
	if _, err := mpi.Recv(world, make([]int, 1), 1-world.Rank(), 0); err == nil {
		t.Error("a receive without a message has ended")
	}
}

func fail(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

// A benchmark has the same entry point.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		mpitest.Run(b, 2, func(b *testing.B, world *mpi.Comm) {
			if err := world.Barrier(); err != nil {
				b.Error(err)
			}
		})
	}
}
