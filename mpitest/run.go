package mpitest

import (
	"fmt"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// Timeout is how long a test's ranks may take together before the test fails
// and says which ranks are still at it.
const Timeout = 60 * time.Second

// Run calls fn as each of n ranks and waits for all of them. A rank that fails
// the test or panics makes the calls of the others return errors that name it.
func Run(t *testing.T, n int, fn func(t *testing.T, world *mpi.Comm)) {
	t.Helper()
	RunConfig(t, n, nil, fn)
}

// RunConfig is Run with a configuration.
func RunConfig(t *testing.T, n int, cfg *mpi.Config, fn func(t *testing.T, world *mpi.Comm)) {
	t.Helper()
	worlds, err := mpi.Local(n, cfg)
	if err != nil {
		t.Fatalf("start %d ranks: %v", n, err)
	}
	var (
		mu   sync.Mutex
		busy = make(map[int]bool, n)
		wg   sync.WaitGroup
	)
	for rank, w := range worlds {
		busy[rank] = true
		wg.Add(1)
		go func() {
			ok := false
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("rank %d: panic: %v\n%s", rank, p, debug.Stack())
				}
				if !ok { // t.FailNow or a panic: the others must not wait for this rank
					mpi.LeaveLocal(worlds, rank, fmt.Sprintf("its test function ended early (%s)", t.Name()))
				}
				mu.Lock()
				delete(busy, rank)
				mu.Unlock()
				wg.Done()
			}()
			fn(t, w.Comm())
			if err := w.Finalize(); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
			ok = true
		}()
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(Timeout):
		mu.Lock()
		defer mu.Unlock()
		t.Fatalf("after %v these ranks have not ended: %v", Timeout, busy)
	}
}
