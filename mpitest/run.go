package mpitest

// Ranks as goroutines: start and run them, and report those that have not ended.

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// Run calls fn as each of n ranks and waits for all of them. A rank that fails
// the test or panics makes the calls of the others return errors that name it.
// Each rank of a test is a subtest, so that its failures carry the rank; in a benchmark
// all ranks share t. Check mode is on (mpi.Config.Check), unless MUSTER_CHECK is off.
// Under a launcher, Run calls fn once, as the rank of this process, if that is one of
// the n.
func Run[T testing.TB](t T, n int, fn func(t T, world *mpi.Comm)) {
	t.Helper()
	RunConfig(t, n, nil, fn)
}

// Sizes calls Run with several numbers of ranks, each as a subtest. In a job with more
// ranks than any of them it also runs with all ranks.
func Sizes(t *testing.T, ranks []int, fn func(t *testing.T, world *mpi.Comm)) {
	t.Helper()
	if Launched() && len(ranks) > 1 && jobSize() > slices.Max(ranks) {
		ranks = append(slices.Clone(ranks), jobSize())
	}
	for _, n := range ranks {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) { Run(t, n, fn) })
	}
}

// RunConfig is Run with a configuration. Under a launcher the configuration comes from
// the environment of the job, so a test with its own configuration is skipped.
func RunConfig[T testing.TB](t T, n int, cfg *mpi.Config, fn func(t T, world *mpi.Comm)) {
	t.Helper()
	RunOptions(t, n, Options{Config: cfg}, fn)
}

// RunOptions is Run with options.
func RunOptions[T testing.TB](t T, n int, opts Options, fn func(t T, world *mpi.Comm)) {
	t.Helper()
	opts.setDefaults()
	if Launched() {
		if opts.Config != nil {
			t.Skip("the configuration of a job comes from its environment; this test brings its own")
		}
		runInJob(t, n, opts.Timeout, fn)
		return
	}
	worlds, err := mpi.Local(n, withCheckMode(opts.Config))
	if err != nil {
		t.Fatalf("start %d ranks: %v", n, err)
	}
	g := &gang{busy: make(map[int]bool, n), done: make(chan struct{})}
	for rank := range worlds {
		g.busy[rank] = true
	}
	for rank, w := range worlds {
		go func() {
			defer g.end(rank)
			asRank(t, rank, func(t T) {
				ok := false
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("rank %d: panic: %v\n%s", rank, p, debug.Stack())
					}
					if !ok { // t.FailNow or a panic: the others must not wait for this rank
						inspect.FailLocal(worlds, rank, fmt.Sprintf("its test function ended early (%s)", t.Name()))
					}
				}()
				fn(t, w.Comm())
				if err := w.Finalize(); err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
				ok = true
			})
		}()
	}
	if why := g.await(worlds[0], &opts); why != "" {
		for _, rank := range g.runningRanks() { // so that the calls of all end
			inspect.FailLocal(worlds, rank, "the test has ended: it was stuck")
		}
		t.Errorf("%s", why)
		select { // a rank must not report to a test that is over
		case <-g.done:
		case <-time.After(5 * time.Second):
		}
		t.FailNow()
	}
}

// asRank calls fn as a subtest that is named after the rank. Ranks run at the same time,
// although none is a parallel test: each has a goroutine that waits for its subtest.
func asRank[T testing.TB](t T, rank int, fn func(t T)) {
	called := false
	if test, ok := any(t).(*testing.T); ok {
		test.Run(fmt.Sprintf("rank=%d", rank), func(sub *testing.T) {
			called = true
			fn(any(sub).(T))
		})
	}
	if !called {
		// A benchmark, or a wrapper of the caller, or a rank that -run or -failfast excludes:
		// the others need it.
		fn(t)
	}
}

// withCheckMode returns a configuration with check mode, unless the environment forbids it.
func withCheckMode(cfg *mpi.Config) *mpi.Config {
	var c mpi.Config
	if cfg != nil {
		c = *cfg
	}
	c.Check = os.Getenv("MUSTER_CHECK") != "off"
	return &c
}

// gang tracks the ranks that have not ended.
type gang struct {
	mu   sync.Mutex
	busy map[int]bool
	done chan struct{}
}

func (g *gang) end(rank int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.busy, rank)
	if len(g.busy) == 0 {
		close(g.done)
	}
}

func (g *gang) runningRanks() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ranks []int
	for r := range g.busy {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	return ranks
}
