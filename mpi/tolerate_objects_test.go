package mpi_test

// What becomes of windows, inter-communicators, persistent requests and started collectives
// when a rank fails: the table of docs/guide/failures.md.

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// errFails is what a rank returns to fail.
var errFails = errors.New("this rank fails")

// failingJob runs fn on all ranks. A rank for which it returns errFails fails, the others
// leave the job.
func failingJob(t *testing.T, n int, fn func(c *mpi.Comm) error) {
	t.Helper()
	if mpitest.Launched() {
		t.Skip("needs a job whose ranks can be made to fail")
	}
	worlds, err := mpi.Local(n, &mpi.Config{OnFailure: "return"})
	noError(t, err, "Local")
	var wg sync.WaitGroup
	var failed sync.Map
	for rank, w := range worlds {
		wg.Go(func() {
			err := fn(w.Comm())
			if err == nil {
				err = w.Finalize()
			}
			if err != nil {
				failed.Store(rank, true)
				inspect.FailLocal(worlds, rank, "somebody pulled the plug")
			}
			if err != nil && err != errFails {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
	for rank := range failed.Range {
		mpi.EndRank(worlds[rank.(int)])
	}
}

// together returns when all ranks have called it, also if a rank fails then.
func together(c *mpi.Comm) error {
	_, _, err := c.Agree(0)
	return err
}

// untilItFails makes a call until it fails.
func untilItFails(call func() error) error {
	const limit = 20 * time.Second
	for begin := time.Now(); time.Since(begin) < limit; runtime.Gosched() {
		if err := call(); err != nil {
			return err
		}
	}
	return fmt.Errorf("no call has failed within %v", limit)
}

// failedWindowCalls wait for, or access, rank 3, which fails, or rank 1.
var failedWindowCalls = map[string]func(w *mpi.Win[int]) error{
	"Fence":   func(w *mpi.Win[int]) error { return w.Fence() },
	"Lock":    func(w *mpi.Win[int]) error { return errors.Join(w.Lock(3, mpi.LockExclusive), w.Unlock(3)) },
	"LockAll": func(w *mpi.Win[int]) error { return errors.Join(w.LockAll(), w.UnlockAll()) },
	"Put": func(w *mpi.Win[int]) error {
		return errors.Join(w.Lock(1, mpi.LockShared), w.Put([]int{1}, 1, w.Group().Rank()), w.Unlock(1))
	},
	"Get": func(w *mpi.Win[int]) error {
		return errors.Join(w.Lock(3, mpi.LockShared), w.Get([]int{1}, 3, 0), w.Flush(3), w.Unlock(3))
	},
	"FetchAndOp": func(w *mpi.Win[int]) error {
		var old int
		return errors.Join(w.Lock(1, mpi.LockShared), w.FetchAndOp(1, &old, 1, 0, mpi.Sum), w.Unlock(1))
	},
	"Start": func(w *mpi.Win[int]) error {
		g, err := w.Group().Include((w.Group().Rank() + 1) % 4)
		if err != nil {
			return err
		}
		from, err := w.Group().Include((w.Group().Rank() + 3) % 4)
		return errors.Join(err, w.Post(from), w.Start(g), w.Complete(), w.Wait())
	},
}

func TestWindowAfterFailure(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for name, call := range failedWindowCalls {
			t.Run(fmt.Sprintf("%s, apart=%v", name, apart), func(t *testing.T) {
				failingJob(t, 4, func(c *mpi.Comm) error {
					mpi.KeepWindowsApart(c, apart)
					w, err := mpi.AllocateWin[int](c, 4)
					if err != nil {
						return err
					}
					if err := call(w); err != nil {
						return fmt.Errorf("before the failure: %w", err)
					}
					if err := together(c); err != nil {
						return err
					}
					if c.Rank() == 3 {
						return errFails
					}
					for range 2 { // now and later
						if err := isFailure(untilItFails(func() error { return call(w) }), 3); err != nil {
							return err
						}
					}
					if err := w.Free(); err != nil {
						return fmt.Errorf("Free: %w", err)
					}
					s, err := c.Shrink()
					if err != nil {
						return err
					}
					v, err := mpi.AllocateWin[int](s, 4)
					if err != nil {
						return fmt.Errorf("a window of the others: %w", err)
					}
					return errors.Join(v.Fence(), v.Put([]int{s.Rank()}, (s.Rank()+1)%3, 0), v.Fence(), v.Free())
				})
			})
		}
	}
}

// TestRevokeWindow checks that revoking a window ends its calls.
func TestRevokeWindow(t *testing.T) {
	failingJob(t, 3, func(c *mpi.Comm) error {
		w, err := mpi.AllocateWin[int](c, 4)
		if err := errors.Join(err, together(c)); err != nil {
			return err
		}
		if c.Rank() == 0 { // never comes to the fence
			return errors.Join(w.Revoke(), w.Free(), c.Barrier())
		}
		if err := w.Fence(); !errors.Is(err, mpi.ErrRevoked) {
			return fmt.Errorf("Fence returns %v, want an error of class ErrRevoked", err)
		}
		return errors.Join(w.Free(), c.Barrier())
	})
}

func TestIntercommAfterFailure(t *testing.T) {
	failingJob(t, 5, func(c *mpi.Comm) error {
		color := min(c.Rank()/2, 1) // ranks 0 and 1, and ranks 2, 3 and 4
		local, err := c.Split(color, 0)
		if err != nil {
			return err
		}
		inter, err := local.IntercommCreate(0, c, 2-2*color, 9)
		if err := errors.Join(err, together(c)); err != nil {
			return err
		}
		if c.Rank() == 4 {
			return errFails
		}
		// Collectives fail in both groups, now and later.
		sum := []int{0}
		for range 2 {
			if err := isFailure(untilItFails(func() error { return mpi.Allreduce(inter, []int{1}, sum, mpi.Sum) }), 4); err != nil {
				return fmt.Errorf("Allreduce: %w", err)
			}
		}
		if err := isFailure(second(inter.Merge(mpi.MergeOrder(color))), 4); err != nil {
			return fmt.Errorf("Merge: %w", err)
		}
		if failed := inter.Failed(); !slices.Equal(failed, []int{4}) {
			return fmt.Errorf("Failed returns %v, want rank 4 of both groups", failed)
		}
		// Messages among the others work. Rank 4 of the world is rank 2 of its group.
		got := []int{0}
		if local.Rank() < 2 {
			if _, err := mpi.Sendrecv(inter, []int{c.Rank()}, local.Rank(), 1, got, local.Rank(), 1); err != nil || got[0] != c.Rank()^2 {
				return fmt.Errorf("Sendrecv: %w, received %d", err, got[0])
			}
		}
		if color == 0 {
			if err := isFailure(mpi.Ssend(inter, []int{1}, 2, 1), 4); err != nil {
				return err
			}
		}
		// Agree works, Shrink needs an intra-communicator: shrink the groups and join them again.
		flag, failed, err := inter.Agree(^(uint64(1) << c.Rank()))
		if err != nil || flag != ^uint64(0b1111) || !slices.Equal(failed, []int{4}) {
			return fmt.Errorf("agreed on %x without %v: %w", flag, failed, err)
		}
		if _, err := inter.Shrink(); !errors.Is(err, mpi.ErrComm) {
			return fmt.Errorf("Shrink returns %v, want an error of class ErrComm", err)
		}
		rest, err := c.Shrink()
		if err != nil {
			return err
		}
		if local, err = local.Shrink(); err != nil {
			return err
		}
		if inter, err = local.IntercommCreate(0, rest, 2-2*color, 9); err != nil {
			return err
		}
		if err := mpi.Allreduce(inter, []int{1}, sum, mpi.Sum); err != nil || sum[0] != 2 {
			return fmt.Errorf("the sum of the other group is %d: %w", sum[0], err)
		}
		return nil
	})
}

func TestPersistentAfterFailure(t *testing.T) {
	failingJob(t, 4, func(c *mpi.Comm) error {
		next, previous := (c.Rank()+1)%3, (c.Rank()+2)%3
		sum, got, from3, all := []int{0}, []int{0}, []int{0}, []int{0}
		reduce := mpi.AllreduceInit(c, []int{1}, sum, mpi.Sum)
		gather := mpi.AllgatherInit(c, []int{c.Rank()}, make([]int, 4))
		send, recv := mpi.SendInit(c, []int{c.Rank()}, next, 1), mpi.RecvInit(c, got, previous, 1)
		dead := mpi.RecvInit(c, from3, 3, 2)
		if _, err := reduce.Start().Wait(); err != nil || sum[0] != 4 {
			return fmt.Errorf("before the failure the sum is %d: %w", sum[0], err)
		}
		if err := together(c); err != nil {
			return err
		}
		if c.Rank() == 3 {
			return errFails
		}
		for range 2 { // now and later; a request that was never started fails too
			for name, p := range map[string]*mpi.Persistent{"Allreduce": reduce, "Allgather": gather, "receive from rank 3": dead} {
				if err := isFailure(waitErr(p.Start()), 3); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		for range 3 {
			if err := mpi.WaitAll(send.Start(), recv.Start()); err != nil || got[0] != previous {
				return fmt.Errorf("messages of the others: %w, received %d", err, got[0])
			}
		}
		s, err := c.Shrink()
		if err != nil {
			return err
		}
		if _, err := mpi.AllreduceInit(s, []int{1}, all, mpi.Sum).Start().Wait(); err != nil || all[0] != 3 {
			return fmt.Errorf("the sum of the others is %d: %w", all[0], err)
		}
		return nil
	})
}

// TestStartedCollectivesAfterFailure checks that collectives that were started before a
// failure complete or fail, and that those of another communicator go on.
func TestStartedCollectivesAfterFailure(t *testing.T) {
	failingJob(t, 4, func(c *mpi.Comm) error {
		three, err := c.Split(c.Rank()/3, 0)
		if err := errors.Join(err, together(c)); err != nil {
			return err
		}
		sums := make([][]int, 8)
		var reqs []mpi.Request
		for i := range sums {
			sums[i] = []int{0}
			if c.Rank() == 3 && i == 4 {
				return errFails // the first four have been started
			}
			reqs = append(reqs, mpi.Iallreduce(c, []int{1}, sums[i], mpi.Sum))
		}
		sum := []int{0}
		other := mpi.Iallreduce(three, []int{1}, sum, mpi.Sum)
		for i, r := range reqs {
			err := waitErr(r)
			if err == nil && (i >= 4 || sums[i][0] != 4) {
				return fmt.Errorf("collective %d returns the sum %d without an error", i, sums[i][0])
			}
			if err != nil {
				if err := isFailure(err, 3); err != nil {
					return err
				}
			}
		}
		if _, err := other.Wait(); err != nil || sum[0] != 3 {
			return fmt.Errorf("the sum of the others is %d: %w", sum[0], err)
		}
		return shrunken(c, 3)
	})
}
