package mpi_test

// Windows (MPI-4.1 chapter 12): the effect of each call, with mapped memory and without.

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// windowsOn runs a test with mapped memory, where possible, and without.
func windowsOn(t *testing.T, sizes []int, fn func(t *testing.T, c *mpi.Comm)) {
	for _, apart := range []bool{false, true} {
		t.Run(map[bool]string{false: "in reach", true: "apart"}[apart], func(t *testing.T) {
			t.Logf("repeat with SEED=%d", pauseSeed)
			mpitest.Sizes(t, sizes, func(t *testing.T, c *mpi.Comm) {
				mpi.KeepWindowsApart(c, apart)
				mpi.RequestKeysOnUse(c, apart && c.Size()%2 == 1) // with half of the sizes
				fn(t, c)
				mpi.KeepWindowsApart(c, false)
				mpi.RequestKeysOnUse(c, false)
			})
		})
	}
}

// The delays of all ranks, which may be goroutines. windowsOn logs the seed.
var (
	pauseSeed = seeded.Seed()
	pauses    = seeded.New(pauseSeed)
	pausesMu  sync.Mutex
)

// pause delays a rank at random, so that others are early or late.
func pause() {
	pausesMu.Lock()
	d := pauses.IntN(300)
	pausesMu.Unlock()
	if d > 150 {
		time.Sleep(time.Duration(d) * time.Microsecond)
	}
}

// inEpochs runs a function on a target within an epoch of each kind.
var inEpochs = []struct {
	name string
	do   func(t *testing.T, c *mpi.Comm, w *mpi.Win[int64], target int, body func())
}{
	{"fence", func(t *testing.T, c *mpi.Comm, w *mpi.Win[int64], target int, body func()) {
		noError(t, w.Fence(), "Fence")
		body()
		noError(t, w.FenceEnd(), "FenceEnd")
	}},
	{"post-start-complete-wait", func(t *testing.T, c *mpi.Comm, w *mpi.Win[int64], target int, body func()) {
		// Each rank accesses the next one and is accessed by the one before.
		to, err := c.Group().Include(target)
		noError(t, err, "Include")
		from, err := c.Group().Include((2*c.Rank() - target + 2*c.Size()) % c.Size())
		noError(t, err, "Include")
		noError(t, w.Post(from), "Post")
		pause()
		noError(t, w.Start(to), "Start")
		body()
		noError(t, w.Complete(), "Complete")
		if c.Rank()%2 == 0 {
			noError(t, w.Wait(), "Wait")
			return
		}
		for {
			over, err := w.Test()
			noError(t, err, "Test")
			if over {
				return
			}
		}
	}},
	{"lock", func(t *testing.T, c *mpi.Comm, w *mpi.Win[int64], target int, body func()) {
		noError(t, w.Lock(target, mpi.LockExclusive), "Lock")
		body()
		noError(t, w.Unlock(target), "Unlock")
		noError(t, c.Barrier(), "Barrier")
	}},
	{"lock shared, flush", func(t *testing.T, c *mpi.Comm, w *mpi.Win[int64], target int, body func()) {
		noError(t, w.Lock(target, mpi.LockShared), "Lock")
		body()
		noError(t, w.Flush(target), "Flush")
		noError(t, c.Barrier(), "Barrier")
		noError(t, w.Unlock(target), "Unlock")
	}},
	{"lock all, flush all", func(t *testing.T, c *mpi.Comm, w *mpi.Win[int64], target int, body func()) {
		noError(t, w.LockAll(), "LockAll")
		body()
		noError(t, w.FlushAll(), "FlushAll")
		noError(t, c.Barrier(), "Barrier")
		noError(t, w.Sync(), "Sync")
		noError(t, w.UnlockAll(), "UnlockAll")
	}},
}

// madeBy creates windows of n elements in each way.
var madeBy = []struct {
	name string
	make func(c *mpi.Comm, n int) (*mpi.Win[int64], error)
}{
	{"create", func(c *mpi.Comm, n int) (*mpi.Win[int64], error) { return mpi.CreateWin(c, make([]int64, n)) }},
	{"allocate", mpi.AllocateWin[int64]},
}

func TestPutIsSeenAfterEachSynchronisation(t *testing.T) {
	windowsOn(t, []int{1, 2, 3, 5}, func(t *testing.T, c *mpi.Comm) {
		for _, made := range madeBy {
			for _, n := range []int{1, 100, 20_000} {
				w, err := made.make(c, n+2)
				noError(t, err, made.name)
				next, prev := neighbors(c)
				buf := make([]int64, n)
				for round, a := range inEpochs {
					for i := range buf {
						buf[i] = int64(c.Rank()*1000 + round*100 + i)
					}
					pause()
					a.do(t, c, w, next, func() { noError(t, w.Put(buf, next, 1), "Put") })
					mem := w.Memory()
					if mem[0] != 0 || mem[n+1] != 0 {
						t.Errorf("%s, %s: a put of %d elements at 1 has changed its neighbors: %d, %d", made.name, a.name, n, mem[0], mem[n+1])
					}
					for i := range n {
						if want := int64(prev*1000 + round*100 + i); mem[1+i] != want {
							t.Fatalf("%s, %s, %d elements: element %d is %d, want %d", made.name, a.name, n, i, mem[1+i], want)
						}
					}
					noError(t, c.Barrier(), "Barrier") // before the next round changes it
				}
				noError(t, w.Free(), "Free")
			}
		}
	})
}

func TestGetReadsWhatIsThere(t *testing.T) {
	windowsOn(t, []int{1, 2, 3, 5}, func(t *testing.T, c *mpi.Comm) {
		for _, made := range madeBy {
			for _, n := range []int{1, 100, 20_000} {
				w, err := made.make(c, n)
				noError(t, err, made.name)
				for i := range w.Memory() {
					w.Memory()[i] = int64(c.Rank()*100_000 + i)
				}
				noError(t, c.Barrier(), "Barrier")
				next, _ := neighbors(c)
				for _, a := range inEpochs {
					buf := make([]int64, n)
					a.do(t, c, w, next, func() { noError(t, w.Get(buf, next, 0), "Get") })
					for i := range buf {
						if want := int64(next*100_000 + i); buf[i] != want {
							t.Fatalf("%s, %s, %d elements: element %d is %d, want %d", made.name, a.name, n, i, buf[i], want)
						}
					}
				}
				noError(t, w.Free(), "Free")
			}
		}
	})
}

func TestAccumulateCombinesWithAllRanks(t *testing.T) {
	windowsOn(t, []int{1, 2, 3, 5}, func(t *testing.T, c *mpi.Comm) {
		const n = 3000 // more than one request
		w, err := mpi.AllocateWin[int64](c, n)
		noError(t, err, "AllocateWin")
		buf := make([]int64, n)
		for i := range buf {
			buf[i] = int64(c.Rank() + i)
		}
		noError(t, w.Fence(), "Fence")
		for range 3 {
			pause()
			noError(t, w.Accumulate(buf, 0, 0, mpi.Sum), "Accumulate")
		}
		noError(t, w.Fence(), "Fence")
		if c.Rank() == 0 {
			p := int64(c.Size())
			for i, got := range w.Memory() {
				if want := 3 * (p*(p-1)/2 + p*int64(i)); got != want {
					t.Fatalf("element %d is %d after 3 sums of %d ranks, want %d", i, got, p, want)
				}
			}
		}
		noError(t, w.Fence(), "Fence")
		most := make([]int64, n)
		noError(t, w.GetAccumulate(buf, most, 0, 0, mpi.Max), "GetAccumulate")
		noError(t, w.FenceEnd(), "FenceEnd")
		if most[0] < int64(c.Rank()) {
			t.Errorf("GetAccumulate gave %d for what was at least %d", most[0], c.Rank())
		}
		noError(t, w.Free(), "Free")
	})
}

// accumulateAll tests accumulates on one type of elements.
func accumulateAll[T comparable](t *testing.T, c *mpi.Comm, what string, op func() mpi.Op[T], start, each, want T) {
	w, err := mpi.AllocateWin[T](c, 3)
	noError(t, err, what)
	if c.Rank() == 0 {
		w.Memory()[1] = start
	}
	noError(t, w.Fence(), "Fence")
	var was T
	noError(t, w.Accumulate([]T{each}, 0, 1, op), what)
	noError(t, w.Fence(), "Fence")
	if c.Rank() == 0 {
		if got := w.Memory()[1]; got != want {
			t.Errorf("%s: accumulated to %v, want %v", what, got, want)
		}
	}
	noError(t, w.Fence(), "Fence")
	noError(t, w.FetchAndOp(each, &was, 0, 1, mpi.NoOp), what)
	noError(t, w.Fence(), "Fence")
	if was != want {
		t.Errorf("%s: NoOp has fetched %v, want %v", what, was, want)
	}
	if c.Rank() == 0 {
		noError(t, w.CompareAndSwap(want, start, &was, 0, 1), what)
	}
	noError(t, w.Fence(), "Fence")
	if c.Rank() == 0 && (was != want || w.Memory()[1] != start) {
		t.Errorf("%s: CompareAndSwap of %v gave %v and left %v, want %v", what, want, was, w.Memory()[1], start)
	}
	noError(t, w.Fence(), "Fence")
	noError(t, w.Free(), "Free")
}

func TestAccumulateOnAllKindsOfElements(t *testing.T) {
	type name [3]byte
	windowsOn(t, []int{3}, func(t *testing.T, c *mpi.Comm) {
		accumulateAll(t, c, "int8", mpi.Sum[int8], 1, 2, 7)
		accumulateAll(t, c, "uint16", mpi.BitOr[uint16], 1, 6, 7)
		accumulateAll(t, c, "int32", mpi.Prod[int32], 1, 3, 27)
		accumulateAll(t, c, "uint32", mpi.BitXor[uint32], 1, 2, 3)
		accumulateAll(t, c, "int", mpi.LogicalXor[int], 0, 5, 1)
		accumulateAll(t, c, "int64", mpi.BitAnd[int64], 7, 6, 6)
		accumulateAll(t, c, "uint64", mpi.Min[uint64], 7, 6, 6)
		accumulateAll(t, c, "float32", mpi.Sum[float32], 0.5, 0.25, 1.25)
		accumulateAll(t, c, "float64", mpi.Max[float64], 0.5, 8, 8)
		accumulateAll(t, c, "complex64", mpi.Sum[complex64], 1i, 2, 6+1i)
		accumulateAll(t, c, "complex128", mpi.Sum[complex128], 1, 1i, 1+3i)
		accumulateAll(t, c, "a pair", mpi.MinLoc[float64], mpi.Loc[float64]{Value: 2, Index: 1}, mpi.Loc[float64]{Value: 1, Index: 9}, mpi.Loc[float64]{Value: 1, Index: 9})
		accumulateAll(t, c, "an array", mpi.Replace[name], name{1}, name{7, 8, 9}, name{7, 8, 9})
	})
}

func TestRequestsOfWindowsAreWaitedFor(t *testing.T) {
	windowsOn(t, []int{1, 2, 4}, func(t *testing.T, c *mpi.Comm) {
		const n = 5000
		w, err := mpi.CreateWin(c, make([]int64, 2*n))
		noError(t, err, "CreateWin")
		next, _ := neighbors(c)
		noError(t, w.LockAll(), "LockAll")
		out, in := make([]int64, n), make([]int64, n)
		for i := range out {
			out[i] = int64(i * c.Rank())
		}
		reqs := []mpi.Request{w.RPut(out, next, 0), w.RAccumulate(out, next, n, mpi.Sum)}
		err = mpi.WaitAll(reqs...)
		noError(t, err, "WaitAll of RPut and RAccumulate")
		noError(t, w.Flush(next), "Flush")
		sum := make([]int64, n)
		reqs = []mpi.Request{w.RGet(in, next, 0), w.RGetAccumulate(nil, sum, next, n, mpi.NoOp)}
		err = mpi.WaitAll(reqs...)
		noError(t, err, "WaitAll of RGet and RGetAccumulate")
		if !slices.Equal(in, out) || !slices.Equal(sum, out) {
			t.Errorf("what was put and accumulated is not what was got")
		}
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, w.Free(), "Free")
	})
}

func TestDynamicWindow(t *testing.T) {
	windowsOn(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.CreateDynamicWin[int64](c)
		noError(t, err, "CreateDynamicWin")
		mem := make([]int64, 3000)
		displ, err := w.Attach(mem)
		noError(t, err, "Attach")
		displs := make([]int, c.Size())
		noError(t, mpi.Allgather(c, []int{displ}, displs), "Allgather")
		next, prev := neighbors(c)
		buf := make([]int64, 2500)
		for i := range buf {
			buf[i] = int64(c.Rank() + i)
		}
		noError(t, w.LockAll(), "LockAll")
		noError(t, w.Put(buf, next, displs[next]+400), "Put")
		noError(t, w.Accumulate(buf[:1], next, displs[next], mpi.Sum), "Accumulate")
		noError(t, w.Flush(next), "Flush")
		back := make([]int64, 2500)
		noError(t, w.Get(back, next, displs[next]+400), "Get")
		noError(t, w.Flush(next), "Flush")
		if !slices.Equal(back, buf) {
			t.Error("Get does not give what was put")
		}
		wantClass(t, w.Put(buf, next, 7), mpi.ErrDisp, "Put at a displ that Attach has not given")
		noError(t, w.Put(buf, next, displs[next]+600), "Put beyond the end, which only the target can see")
		wantClass(t, w.Flush(next), mpi.ErrRMARange, "Flush after it")
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, c.Barrier(), "Barrier")
		if mem[0] != int64(prev) || mem[400+2499] != int64(prev+2499) {
			t.Errorf("rank %d has put %d and %d", prev, mem[0], mem[400+2499])
		}
		noError(t, w.Detach(displ), "Detach")
		wantClass(t, w.Detach(displ), mpi.ErrRMAAttach, "second Detach")
		noError(t, w.Free(), "Free")
	})
}

func TestSharedWindowIsOneMemory(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		node, err := c.SplitType(mpi.ByNode, 0)
		noError(t, err, "SplitType")
		w, err := mpi.AllocateSharedWin[int32](node, 10+node.Rank())
		if err != nil {
			wantClass(t, err, mpi.ErrRMAShared, "AllocateSharedWin without shared memory")
			noError(t, node.Free(), "Free")
			return
		}
		for r := range node.Size() {
			there, err := w.Query(r)
			noError(t, err, "Query")
			if len(there) != 10+r || w.Len(r) != 10+r || !w.Direct(r) {
				t.Fatalf("rank %d has %d elements, want %d", r, len(there), 10+r)
			}
		}
		next, prev := neighbors(node)
		there, _ := w.Query(next)
		there[9] = int32(100 + node.Rank())
		noError(t, w.Sync(), "Sync")
		noError(t, node.Barrier(), "Barrier")
		noError(t, w.Sync(), "Sync")
		if got := w.Memory()[9]; got != int32(100+prev) {
			t.Errorf("rank %d has stored %d here, want %d", prev, got, 100+prev)
		}
		noError(t, w.Free(), "Free of the window")
		noError(t, node.Free(), "Free")
	})
}

func TestInvalidRMACalls(t *testing.T) {
	windowsOn(t, []int{2}, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.CreateWin(c, make([]int64, 10))
		noError(t, err, "CreateWin")
		one, two := []int64{1}, []int64{1, 2}
		peer := 1 - c.Rank()
		wantClass(t, w.Put(one, peer, 0), mpi.ErrRMASync, "Put outside of an epoch")
		wantClass(t, w.Get(one, peer, 0), mpi.ErrRMASync, "Get outside of an epoch")
		wantClass(t, w.Flush(peer), mpi.ErrRMASync, "Flush without a lock")
		wantClass(t, w.Unlock(peer), mpi.ErrRMASync, "Unlock without a lock")
		wantClass(t, w.Complete(), mpi.ErrRMASync, "Complete without Start")
		wantClass(t, w.Wait(), mpi.ErrRMASync, "Wait without Post")
		noError(t, w.Lock(peer, mpi.LockShared), "Lock")
		wantClass(t, w.Lock(peer, mpi.LockShared), mpi.ErrRMASync, "second Lock")
		wantClass(t, w.LockAll(), mpi.ErrRMASync, "LockAll with a lock")
		wantClass(t, w.Free(), mpi.ErrRMASync, "Free with a lock")
		wantClass(t, w.Put(one, c.Rank(), 0), mpi.ErrRMASync, "Put to a rank that is not locked")
		wantClass(t, w.Put(one, 2, 0), mpi.ErrRank, "Put to nobody")
		for _, disp := range []int{-1, 10, 1 << 62} {
			wantClass(t, w.Put(one, peer, disp), mpi.ErrRMARange, fmt.Sprintf("Put at %d", disp))
			wantClass(t, w.Accumulate(one, peer, disp, mpi.Sum), mpi.ErrRMARange, fmt.Sprintf("Accumulate at %d", disp))
		}
		wantClass(t, w.Get(two, peer, 9), mpi.ErrRMARange, "Get across the end")
		wantClass(t, w.GetAccumulate(two, one, peer, 0, mpi.Sum), mpi.ErrCount, "GetAccumulate with too few results")
		own := (&mpi.UserOp[int64]{Name: "mine", Combine: func(inout, in []int64) {}}).Op
		wantClass(t, w.Accumulate(one, peer, 0, own), mpi.ErrOp, "Accumulate by an operation of one's own")
		_, err = w.Query(peer)
		wantClass(t, err, mpi.ErrRMAFlavor, "Query")
		_, err = w.Attach(two)
		wantClass(t, err, mpi.ErrRMAFlavor, "Attach")
		noError(t, w.Put(one, peer, 9), "Put at the end")
		noError(t, w.Unlock(peer), "Unlock")
		_, err = w.RPut(one, peer, 0).Wait()
		wantClass(t, err, mpi.ErrRMASync, "RPut without a lock")
		noError(t, w.Free(), "Free")
		wantClass(t, w.Free(), mpi.ErrWin, "second Free")
		wantClass(t, w.Fence(), mpi.ErrWin, "Fence after Free")
		_, err = mpi.AllocateWin[*int](c, 1)
		wantClass(t, err, mpi.ErrType, "AllocateWin of pointers")
		n := 1 - 2*c.Rank() // rank 1 cannot
		_, err = mpi.AllocateWin[int64](c, n)
		wantClass(t, err, mpi.ErrSize, "AllocateWin that one rank cannot make")
	})
}
