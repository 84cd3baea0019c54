package mpitest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestSlowIsNotStuck: in correct programs all ranks wait for longer than StuckAfter, and
// what ends the waits is not visible on the board.
func TestSlowIsNotStuck(t *testing.T) {
	const after, long = 200 * time.Millisecond, 900 * time.Millisecond
	expire := func(world *mpi.Comm) error {
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		if _, err := mpi.Irecv(world, make([]int, 1), mpi.AnySource, 1).WaitOrCancel(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return errors.Join(errors.New("the deadline must end a receive without a message"), err)
		}
		return nil
	}
	for name, wait := range map[string]func(world *mpi.Comm) error{
		"goroutine that computes": func(*mpi.Comm) error {
			for begin := time.Now(); time.Since(begin) < long; {
			}
			return nil
		},
		"goroutine that sleeps": func(*mpi.Comm) error {
			time.Sleep(long)
			return nil
		},
		"goroutine that waits with a context": expire,
	} {
		t.Run(name, func(t *testing.T) {
			mpitest.RunOptions(t, 2, mpitest.Options{StuckAfter: after}, func(t *testing.T, world *mpi.Comm) {
				var received sync.WaitGroup
				defer received.Wait()
				received.Go(func() {
					if _, err := mpi.Recv(world, make([]int, 1), 1-world.Rank(), 0); err != nil {
						t.Error(err)
					}
				})
				if err := wait(world); err != nil {
					t.Error(err)
				}
				if err := mpi.Send(world, make([]int, 1), 1-world.Rank(), 0); err != nil {
					t.Error(err)
				}
			})
		})
	}
	t.Run("context", func(t *testing.T) {
		mpitest.RunOptions(t, 2, mpitest.Options{StuckAfter: after}, func(t *testing.T, world *mpi.Comm) {
			if err := expire(world); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("operation", func(t *testing.T) {
		mpitest.RunOptions(t, 2, mpitest.Options{StuckAfter: after}, func(t *testing.T, world *mpi.Comm) {
			slow := (&mpi.UserOp[int]{Name: "slow", Combine: func(inout, in []int) { time.Sleep(long) }}).Op
			err := mpi.Allreduce(world, nil, make([]int, 1), slow)
			if err != nil {
				t.Error(err)
			}
		})
	})
}
