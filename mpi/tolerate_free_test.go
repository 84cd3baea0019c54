package mpi_test

// Communicators that have been freed, in jobs that survive failures.

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// TestFreedCommunicatorsAreReleased checks that a rank does not keep what it knows about
// communicators that all ranks have freed: memory, and time at the next failure.
func TestFreedCommunicatorsAreReleased(t *testing.T) {
	const ranks, rounds, most = 7, 200, 30
	tolerantJob(t, ranks, nil, func(c *mpi.Comm) error {
		before := mpi.Memberships(c)
		for i := range rounds {
			if err := useAndFree(c, i); err != nil {
				return err
			}
			if now := mpi.Memberships(c); now > before+most {
				return fmt.Errorf("%d communicators are left after %d of %d were made and freed; %d at the beginning", now, i+1, rounds, before)
			}
		}
		left := []int{most} // ranks learn a bit later that all others have freed one
		for n := 0; left[0] > before; n++ {
			if err := mpi.Allreduce(c, []int{mpi.Memberships(c)}, left, mpi.Max); err != nil {
				return err
			}
			if n == 10_000 {
				return fmt.Errorf("%d communicators are left at the end, %d at the beginning", left[0], before)
			}
		}
		return nil
	})
}

// useAndFree makes a communicator, uses it, and frees it.
func useAndFree(c *mpi.Comm, how int) error {
	d, err := c.Dup()
	if err != nil {
		return err
	}
	n, me := c.Size(), c.Rank()
	switch how % 5 {
	case 0:
		_, _, err = d.Agree(1)
	case 1: // in shared memory too
		for range 3 {
			_, _, e := d.Agree(1)
			err = errors.Join(err, e)
		}
	case 2:
		w, e := mpi.AllocateWin[int64](d, 1)
		if e != nil {
			return e
		}
		err = w.Free()
	case 3: // a request is under way
		got := []int{-1}
		q := mpi.Irecv(d, got, (me+n-1)%n, 1)
		if err := mpi.Send(d, []int{me}, (me+1)%n, 1); err != nil {
			return err
		}
		if err := d.Free(); err != nil {
			return err
		}
		if _, err := q.Wait(); err != nil || got[0] != (me+n-1)%n {
			return fmt.Errorf("received %d on a freed communicator: %w", got[0], err)
		}
		return nil
	case 4:
		err = d.Barrier()
	}
	return errors.Join(err, d.Free())
}

// TestFailureEndsReceiveOfFreedCommunicator checks that a receive that is under way on a freed
// communicator ends with a failure.
func TestFailureEndsReceiveOfFreedCommunicator(t *testing.T) {
	failingJob(t, 3, func(c *mpi.Comm) error {
		d, err := c.Dup()
		if err != nil {
			return err
		}
		var q mpi.Request
		if c.Rank() == 0 {
			q = mpi.Irecv(d, make([]int, 1), mpi.AnySource, 1)
		}
		if err := d.Free(); err != nil {
			return err
		}
		for range 10 { // the others would release it meanwhile
			if err := useAndFree(c, 4); err != nil {
				return err
			}
		}
		if err := together(c); err != nil {
			return err
		}
		switch c.Rank() {
		case 2:
			return errFails
		case 0:
			_, err := q.Wait()
			return isFailure(err, 2)
		}
		return nil
	})
}

// TestRevokeAfterOthersFreed checks that a revocation reaches all ranks that still use a
// communicator, if those that would pass it on have freed it.
func TestRevokeAfterOthersFreed(t *testing.T) {
	const ranks = 8
	tolerantJob(t, ranks, nil, func(c *mpi.Comm) error {
		d, err := c.Dup()
		if err != nil {
			return err
		}
		me := c.Rank()
		waits := me == 3 || me == ranks-1 // rank 0 does not inform them itself
		if !waits && me != 0 {
			if err := d.Free(); err != nil {
				return err
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if me == 0 {
			err = d.Revoke()
		} else if waits {
			if _, e := mpi.Recv(d, make([]int, 1), 0, 1); !errors.Is(e, mpi.ErrRevoked) {
				err = fmt.Errorf("the receive returned %w, want ErrRevoked", e)
			}
		}
		return errors.Join(err, c.Barrier())
	})
}

// TestFreeWindowAfterFailure checks that windows can be created and freed until a rank fails:
// it may fail while some ranks have the window and others do not.
func TestFreeWindowAfterFailure(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("needs a job whose ranks can be made to fail")
	}
	for _, apart := range []bool{false, true} {
		for i := range 30 {
			worlds, err := mpi.Local(4, &mpi.Config{OnFailure: "return"})
			noError(t, err, "Local")
			var wg sync.WaitGroup
			for rank, w := range worlds[:3] {
				wg.Go(func() {
					mpi.KeepWindowsApart(w.Comm(), apart)
					err := untilItFails(func() error {
						v, err := mpi.AllocateWin[int](w.Comm(), 4)
						if err != nil {
							return err
						}
						return v.Free()
					})
					if !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrRevoked) {
						t.Errorf("rank %d: %v", rank, err)
					}
					if err := errors.Join(shrunken(w.Comm(), 3), w.Finalize()); err != nil {
						t.Errorf("rank %d: %v", rank, err)
					}
				})
			}
			mpi.KeepWindowsApart(worlds[3].Comm(), apart)
			for range i / 6 {
				if v, err := mpi.AllocateWin[int](worlds[3].Comm(), 4); err == nil {
					_ = v.Free()
				}
			}
			wg.Go(func() { _, _ = mpi.AllocateWin[int](worlds[3].Comm(), 4) })
			for range 1 << (2 * (i % 6)) { // it fails at different points of the creation
				runtime.Gosched()
			}
			inspect.FailLocal(worlds, 3, "somebody pulled the plug")
			wg.Wait()
			mpi.EndRank(worlds[3])
		}
	}
}
