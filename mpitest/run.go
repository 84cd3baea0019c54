package mpitest

// Ranks as goroutines: start and run them, and report those that have not ended.

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// Timeout is the time after which a test fails and reports the ranks that have not
// ended.
const Timeout = 120 * time.Second

// Run calls fn as each of n ranks and waits for all of them. A rank that fails
// the test or panics makes the calls of the others return errors that name it.
// Under a launcher, Run calls fn once, as the rank of this process, if that is one of
// the n.
func Run(t *testing.T, n int, fn func(t *testing.T, world *mpi.Comm)) {
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
func RunConfig(t *testing.T, n int, cfg *mpi.Config, fn func(t *testing.T, world *mpi.Comm)) {
	t.Helper()
	if Launched() {
		if cfg != nil {
			t.Skip("the configuration of a job comes from its environment; this test brings its own")
		}
		runInJob(t, n, fn)
		return
	}
	worlds, err := mpi.Local(n, cfg)
	if err != nil {
		t.Fatalf("start %d ranks: %v", n, err)
	}
	g := &gang{busy: make(map[int]bool, n), done: make(chan struct{})}
	for rank := range worlds {
		g.busy[rank] = true
	}
	for rank, w := range worlds {
		go func() {
			ok := false
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("rank %d: panic: %v\n%s", rank, p, debug.Stack())
				}
				if !ok { // t.FailNow or a panic: the others must not wait for this rank
					inspect.FailLocal(worlds, rank, fmt.Sprintf("its test function ended early (%s)", t.Name()))
				}
				g.end(rank)
			}()
			fn(t, w.Comm())
			if err := w.Finalize(); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
			ok = true
		}()
	}
	select {
	case <-g.done:
	case <-time.After(Timeout):
		late, stacks := g.left(), strings.Join(libraryStacks(), "\n\n")
		for _, rank := range late { // so that the calls of the others end
			inspect.FailLocal(worlds, rank, fmt.Sprintf("it has not ended within %v (%s)", Timeout, t.Name()))
		}
		t.Errorf("after %v these ranks have not ended: %v\n%s", Timeout, late, stacks)
		select { // a rank must not report to a test that is over
		case <-g.done:
		case <-time.After(5 * time.Second):
		}
		t.FailNow()
	}
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

func (g *gang) left() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ranks []int
	for r := range g.busy {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	return ranks
}
