package mpi_test

// Semantics of windows when ranks are early, late, or outside of the library (MPI-4.1
// section 12.7).

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// many is the number of ranks of a job, at most 16: what matters is that they compete.
func many(t *testing.T, fn func(t *testing.T, c *mpi.Comm)) {
	sizes := []int{2, 16}
	if mpitest.Launched() {
		sizes = []int{2, 3, 5, 16}
	}
	windowsOn(t, sizes, fn)
}

func TestNoFetchAndAddIsLost(t *testing.T) {
	many(t, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.AllocateWin[int64](c, 1)
		noError(t, err, "AllocateWin")
		noError(t, w.LockAll(), "LockAll")
		each := fetches(t, c, w) / c.Size()
		seen := make([]int64, each)
		for i := range seen {
			noError(t, w.FetchAndOp(1, &seen[i], 0, 0, mpi.Sum), "FetchAndOp")
		}
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, c.Barrier(), "Barrier")
		sum := int64(0)
		for i, v := range seen {
			if i > 0 && v <= seen[i-1] {
				t.Fatalf("fetch %d gave %d after %d: accumulates of one rank happen in their order", i, v, seen[i-1])
			}
			sum += v
		}
		all := make([]int64, 1)
		noError(t, mpi.Allreduce(c, []int64{sum}, all, mpi.Sum), "Allreduce")
		if n := int64(each * c.Size()); all[0] != n*(n-1)/2 {
			t.Errorf("%d fetches gave numbers whose sum is %d, want %d: one was lost or seen twice", n, all[0], n*(n-1)/2)
		}
		if n := int64(each * c.Size()); c.Rank() == 0 && w.Memory()[0] != n {
			t.Errorf("the sum is %d after %d additions of 1", w.Memory()[0], n)
		}
		noError(t, w.Free(), "Free")
	})
}

// fetches returns the number of fetch-and-adds of all ranks together: a million if they are
// instructions, fewer if each is a message, and few if ranks also share a core.
func fetches(t *testing.T, c *mpi.Comm, w *mpi.Win[int64]) int {
	total := 1_000_000
	if !w.Direct(0) {
		total = 20_000
		if mpitest.Launched() {
			total = 2_000
		}
	}
	if race.Enabled {
		total /= 20
	}
	least := []int{total}
	noError(t, mpi.Allreduce(c, least, least, mpi.Min), "Allreduce")
	return least[0]
}

func TestExclusiveLockKeepsOthersOut(t *testing.T) {
	many(t, func(t *testing.T, c *mpi.Comm) {
		for _, made := range madeBy {
			w, err := made.make(c, 2)
			noError(t, err, made.name)
			rounds := 200 / c.Size()
			for round := range rounds {
				target := round % c.Size()
				noError(t, w.Lock(target, mpi.LockExclusive), "Lock")
				var v [1]int64
				noError(t, w.Get(v[:], target, 0), "Get")
				noError(t, w.FlushLocal(target), "FlushLocal")
				if round%8 == 0 {
					pause()
				}
				v[0]++ // nobody else may have changed it
				noError(t, w.Put(v[:], target, 0), "Put")
				noError(t, w.Unlock(target), "Unlock")
			}
			noError(t, c.Barrier(), "Barrier")
			noError(t, w.Lock(c.Rank(), mpi.LockShared), "Lock of own memory")
			mine := w.Memory()[0]
			noError(t, w.Unlock(c.Rank()), "Unlock")
			all := make([]int64, 1)
			noError(t, mpi.Allreduce(c, []int64{mine}, all, mpi.Sum), "Allreduce")
			if want := int64(rounds * c.Size()); all[0] != want {
				t.Errorf("%s: %d increments under exclusive locks left %d", made.name, want, all[0])
			}
			noError(t, w.Free(), "Free")
		}
	})
}

// TestReadersShareAndWritersDoNot checks that readers see consistent values of two elements
// that writers change together.
func TestReadersShareAndWritersDoNot(t *testing.T) {
	windowsOn(t, []int{5}, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.AllocateWin[int64](c, 2)
		noError(t, err, "AllocateWin")
		for i := range 40 {
			mode := mpi.LockShared
			if c.Rank() == i%c.Size() {
				mode = mpi.LockExclusive
			}
			noError(t, w.Lock(0, mode), "Lock")
			if mode == mpi.LockExclusive {
				noError(t, w.Put([]int64{int64(i)}, 0, 0), "Put")
				noError(t, w.Flush(0), "Flush")
				pause()
				noError(t, w.Put([]int64{int64(i)}, 0, 1), "Put")
			} else {
				var v [2]int64
				noError(t, w.Get(v[:], 0, 0), "Get")
				noError(t, w.Flush(0), "Flush")
				if v[0] != v[1] {
					t.Errorf("a reader sees %d and %d: a writer was there at the same time", v[0], v[1])
				}
			}
			noError(t, w.Unlock(0), "Unlock")
		}
		noError(t, w.Free(), "Free")
	})
}

func TestAccumulatesOfOneRankKeepTheirOrder(t *testing.T) {
	windowsOn(t, []int{2, 5}, func(t *testing.T, c *mpi.Comm) {
		const n = 1500
		w, err := mpi.AllocateWin[int32](c, n*c.Size())
		noError(t, err, "AllocateWin")
		noError(t, w.LockAll(), "LockAll")
		target := (c.Rank() + 1) % c.Size()
		at := c.Rank() * n
		buf := make([]int32, n)
		for i := range int32(50) {
			for j := range buf {
				buf[j] = i
			}
			noError(t, w.Accumulate(buf, target, at, mpi.Replace), "Accumulate")
			noError(t, w.FlushLocal(target), "FlushLocal")
			if i%10 == 3 {
				var was int32
				noError(t, w.FetchAndOp(0, &was, target, at+int(i), mpi.NoOp), "FetchAndOp")
				noError(t, w.Flush(target), "Flush")
				if was != i {
					t.Errorf("after value %d was put in place, %d is there", i, was)
				}
			}
		}
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, c.Barrier(), "Barrier")
		prev := (c.Rank() + c.Size() - 1) % c.Size()
		for j, v := range w.Memory()[prev*n : prev*n+n] {
			if v != 49 {
				t.Fatalf("element %d is %d after 50 replacements, want the last, 49", j, v)
			}
		}
		noError(t, w.Free(), "Free")
	})
}

// TestLockMadeOfCompareAndSwap implements a lock in the window's memory.
func TestLockMadeOfCompareAndSwap(t *testing.T) {
	windowsOn(t, []int{4}, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.AllocateWin[int](c, 2)
		noError(t, err, "AllocateWin")
		noError(t, w.LockAll(), "LockAll")
		for range 20 {
			for {
				var was int
				noError(t, w.CompareAndSwap(0, 1+c.Rank(), &was, 0, 0), "CompareAndSwap")
				noError(t, w.Flush(0), "Flush")
				if was == 0 {
					break
				}
				time.Sleep(20 * time.Microsecond) // back off
			}
			var v [1]int
			noError(t, w.GetAccumulate(nil, v[:], 0, 1, mpi.NoOp), "GetAccumulate")
			noError(t, w.Flush(0), "Flush")
			v[0]++
			noError(t, w.Accumulate(v[:], 0, 1, mpi.Replace), "Accumulate")
			noError(t, w.Flush(0), "Flush")
			var was int
			noError(t, w.FetchAndOp(0, &was, 0, 0, mpi.Replace), "FetchAndOp")
			noError(t, w.Flush(0), "Flush")
			if was != 1+c.Rank() {
				t.Errorf("the lock of rank %d was taken by rank %d", c.Rank(), was-1)
			}
		}
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, c.Barrier(), "Barrier")
		if c.Rank() == 0 && w.Memory()[1] != 20*c.Size() {
			t.Errorf("%d increments left %d", 20*c.Size(), w.Memory()[1])
		}
		noError(t, w.Free(), "Free")
	})
}

// TestPutIntoARankThatComputes checks that rank 1 can lock, put, flush and unlock while rank
// 0 makes no call until it has seen the result in its own memory.
func TestPutIntoARankThatComputes(t *testing.T) {
	windowsOn(t, []int{2}, func(t *testing.T, c *mpi.Comm) {
		for _, made := range madeBy {
			w, err := made.make(c, 1<<17)
			noError(t, err, made.name)
			if race.Enabled && !w.Direct(1-c.Rank()) {
				// Rank 0 reads memory that is written concurrently, which MPI allows and the
				// race detector does not.
				noError(t, w.Free(), "Free")
				continue
			}
			done := &w.Memory()[1<<17-1]
			noError(t, c.Barrier(), "Barrier")
			if c.Rank() == 0 {
				deadline := time.Now().Add(20 * time.Second)
				for atomic.LoadInt64(done) == 0 {
					if time.Now().After(deadline) {
						t.Errorf("%s: nothing came within 20 s into a rank that makes no call", made.name)
						break
					}
				}
			} else {
				buf := make([]int64, 1<<17-1)
				for i := range buf {
					buf[i] = int64(i) + 1
				}
				for _, mode := range []mpi.LockMode{mpi.LockExclusive, mpi.LockShared} {
					noError(t, w.Lock(0, mode), "Lock")
					noError(t, w.Put(buf, 0, 0), "Put")
					noError(t, w.Unlock(0), "Unlock")
				}
				noError(t, w.Lock(0, mpi.LockExclusive), "Lock")
				noError(t, w.Accumulate([]int64{1}, 0, 1<<17-1, mpi.Replace), "Accumulate")
				noError(t, w.Unlock(0), "Unlock")
			}
			noError(t, c.Barrier(), "Barrier")
			if m := w.Memory(); c.Rank() == 0 && (m[0] != 1 || m[1<<17-2] != 1<<17-1) {
				t.Errorf("%s: the signal has come, and the data before it is %d … %d", made.name, m[0], m[1<<17-2])
			}
			noError(t, w.Free(), "Free")
		}
	})
}

func TestWindowsInReachAllocateNothing(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.AllocateWin[int64](c, 100)
		noError(t, err, "AllocateWin")
		noError(t, w.LockAll(), "LockAll")
		if c.Rank() == 0 && w.Direct(1) {
			buf, was := make([]int64, 50), new(int64)
			if n := testing.AllocsPerRun(100, func() {
				_ = w.Put(buf, 1, 3)
				_ = w.Get(buf, 1, 3)
				_ = w.Accumulate(buf, 1, 3, mpi.Sum)
				_ = w.FetchAndOp(1, was, 1, 0, mpi.Sum)
				_ = w.CompareAndSwap(1, 1, was, 1, 0)
				_ = w.Flush(1)
			}); n != 0 {
				t.Errorf("put, get, accumulate, fetch, swap and flush allocate %v times", n)
			}
		}
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, w.Free(), "Free")
	})
}
