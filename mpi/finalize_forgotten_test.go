package mpi_test

// A rank that forgets a collective call and leaves: the barrier of Finalize must not match
// the call, and all ranks get an error that names both.

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// leaveEarly makes rank 1 leave while the others make a call on a communicator, after some
// calls that all ranks make. It returns what the ranks get, of the call or else of Finalize.
func leaveEarly(t *testing.T, n, before int, cfg *mpi.Config, dup bool, call func(c *mpi.Comm) error) []error {
	t.Helper()
	worlds, err := mpi.Local(n, cfg)
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank, w := range worlds {
		all.Go(func() {
			c := w.Comm()
			if dup {
				if c, errs[rank] = c.Dup(); errs[rank] != nil {
					return
				}
			}
			for range before { // the last one too may see that rank 1 has left
				if errs[rank] == nil {
					errs[rank] = c.Barrier()
				}
			}
			if rank != 1 && errs[rank] == nil {
				errs[rank] = call(c)
			}
			if err := w.Finalize(); errs[rank] == nil {
				errs[rank] = err
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("the ranks have not left after 20 s: a rank waits in Finalize, or for one that has left:\n%s", strings.Join(inspect.Waits(worlds[0]), "\n"))
	}
	return errs
}

func TestForgottenCollective(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("a world of its own, which every rank of a job would make")
	}
	calls := map[string]func(c *mpi.Comm) error{
		"Barrier":  (*mpi.Comm).Barrier,
		"Ibarrier": func(c *mpi.Comm) error { _, err := c.Ibarrier().Wait(); return err },
	}
	for name, call := range calls {
		for i := range 24 {
			check, dup, before, n := i&1 != 0, i&2 != 0, i&4*10, 2+i>>3 // 0 or 40 calls before, the latter in a segment
			for _, onFailure := range []string{"end", "return"}[:1+2/n] {
				t.Run(fmt.Sprintf("%s/check=%v/dup=%v/after %d/%d ranks/%s", name, check, dup, before, n, onFailure), func(t *testing.T) {
					t.Parallel()
					errs := leaveEarly(t, n, before, &mpi.Config{Check: check, OnFailure: onFailure}, dup, call)
					wantForgotten(t, errs, check, dup || onFailure == "return")
				})
			}
		}
	}
}

// wantForgotten checks the errors. alone is whether rank 1 may leave without one, because it has
// waited for no other rank there.
func wantForgotten(t *testing.T, errs []error, check, alone bool) {
	t.Helper()
	for rank, err := range errs {
		switch {
		case rank == 1 && alone:
		case err == nil:
			t.Errorf("rank %d has no error", rank)
		default:
			for _, want := range []string{"Finalize", "Barrier"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("rank %d: the error must contain %q: %v", rank, want, err)
				}
			}
			if lines := strings.Count(err.Error(), "finalize_forgotten_test.go:"); check && lines < 2 {
				t.Errorf("rank %d: the error has the lines of %d calls, want both: %v", rank, lines, err)
			}
		}
	}
}
