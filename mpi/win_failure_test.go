package mpi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// TestLockHolderDies checks that rank 0 does not hang when it waits for the lock of its
// memory and rank 1, which holds the lock, fails.
func TestLockHolderDies(t *testing.T) {
	for _, apart := range []bool{false, true} {
		worlds, err := mpi.Local(2, nil)
		noError(t, err, "Local")
		held, failed := make(chan error, 1), make(chan error, 1)
		for rank, w := range worlds {
			c := w.Comm()
			mpi.KeepWindowsApart(c, apart)
			go func() {
				win, err := mpi.AllocateWin[int64](c, 1)
				if err != nil {
					held <- err
					return
				}
				if rank == 1 {
					err := win.Lock(0, mpi.LockExclusive)
					_ = mpi.Send(c, []int8{1}, 0, 1) // the wait below tells
					held <- err
					return
				}
				_, err = mpi.Recv(c, make([]int8, 1), 1, 1)
				if err == nil {
					err = win.Lock(0, mpi.LockExclusive)
				}
				failed <- err
			}()
		}
		noError(t, <-held, "Lock of rank 1")
		time.Sleep(10 * time.Millisecond) // until rank 0 waits for the lock; either order is correct
		inspect.FailLocal(worlds, 1, "a test has ended it")
		select {
		case err := <-failed:
			wantClass(t, err, mpi.ErrProcAborted, "Lock that a dead rank holds")
		case <-time.After(30 * time.Second):
			t.Fatal("rank 0 still waits for a lock whose holder is dead")
		}
		for rank, w := range worlds { // nobody serves requests any more
			wantClass(t, w.Finalize(), mpi.ErrProcAborted, fmt.Sprintf("Finalize of rank %d", rank))
		}
	}
}
