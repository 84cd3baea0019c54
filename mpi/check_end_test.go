package mpi

// What check mode keeps until the end of a job, and what it reports then.

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// finalizeErrors runs fn as each of n ranks in check mode and returns what Finalize returns.
func finalizeErrors(t *testing.T, n int, fn func(c *Comm) error) []error {
	t.Helper()
	for _, name := range []string{"PMI_FD", "PMI_PORT", "PMIX_RANK", "MUSTER_ROOT"} { // as mpitest.Launched
		if os.Getenv(name) != "" {
			t.Skip("a world of its own, which every rank of a job would make")
		}
	}
	worlds, err := Local(n, &Config{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank, w := range worlds {
		all.Go(func() {
			if err := fn(w.Comm()); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
			errs[rank] = w.Finalize()
		})
	}
	all.Wait()
	return errs
}

func wantPending(t *testing.T, err error, what ...string) {
	t.Helper()
	if !errors.Is(err, ErrPending) {
		t.Fatalf("Finalize returned %v, want class %q", err, ErrPending.Error())
	}
	for _, s := range what {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("Finalize must report %q: %v", s, err)
		}
	}
}

// A program that makes and frees communicators in a loop needs no more memory in check mode,
// and no more time for each.
func TestFreedCommunicatorsAreForgotten(t *testing.T) {
	for _, err := range finalizeErrors(t, 1, func(c *Comm) error {
		for range 3 * watchMost {
			d, err := c.Dup()
			if err != nil {
				return err
			}
			if err := d.Free(); err != nil {
				return err
			}
		}
		if n := len(c.w.check.comms); n > watchMost+2 {
			t.Errorf("%d communicators are kept after %d have been freed", n, 3*watchMost)
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
}

// A message on a communicator that has been freed is reported, with its line while the
// communicators are few, and in any case if it had arrived before.
func TestUnreceivedOnFreedCommunicator(t *testing.T) {
	for name, before := range map[string]int{"few": 0, "many": watchMost + 1} {
		t.Run(name, func(t *testing.T) {
			errs := finalizeErrors(t, 2, func(c *Comm) error {
				for range before {
					if _, err := c.Self().Dup(); err != nil {
						return err
					}
				}
				d, err := c.Dup()
				if err != nil {
					return err
				}
				if c.Rank() == 1 {
					if err := Send(d, []int{1, 2}, 0, 7); err != nil {
						return err
					}
				}
				if err := c.Barrier(); err != nil {
					return err
				}
				return d.Free()
			})
			wantPending(t, errs[0], "a message was not received: rank 1 sent it with Send of int at ", "on world.dup, tag 7, 16 bytes")
			if errs[1] != nil {
				t.Error(errs[1])
			}
		})
	}
}

// A wait that gives up does not complete the request, so it is one to report.
func TestDroppedAfterGivingUp(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	errs := finalizeErrors(t, 2, func(c *Comm) error {
		if c.Rank() == 1 {
			return nil
		}
		if _, err := Irecv(c, make([]int, 1), 1, 3).WaitContext(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("the wait returned %v", err)
		}
		return nil
	})
	wantPending(t, errs[0], "a request was not completed: Irecv from rank 1 at ")
	if errs[1] != nil {
		t.Error(errs[1])
	}
}

// A collective that one rank cannot start sends nothing that a later call would compare.
func TestFailedStartIsNotCompared(t *testing.T) {
	chain, err := coll.Find(coll.Bcast, "chain")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range finalizeErrors(t, 2, func(c *Comm) error {
		if c.Rank() == 0 {
			ForceAlgorithm(c, chain, []int{0}) // a parameter with which there is no schedule
			if _, err := Ibcast(c, make([]int, 1), 0).Wait(); !errors.Is(err, ErrIntern) {
				t.Errorf("the broadcast returned %v", err)
			}
			Unforce(c, coll.Bcast)
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		return Bcast(c, make([]int, 1), 0)
	}) {
		if err != nil {
			t.Error(err)
		}
	}
}
