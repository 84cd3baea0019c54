package mpi_test

// Operations on the memory of the calling rank itself.

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

// An operation on the own rank is complete when the call returns: programs use its result,
// or free its buffers, before the next synchronization.
func TestOperationsOnTheOwnRankAreDoneAtOnce(t *testing.T) {
	windowsOn(t, []int{1, 2, 3}, func(t *testing.T, c *mpi.Comm) {
		for _, made := range madeBy {
			w, err := made.make(c, 4)
			noError(t, err, made.name)
			for _, a := range inEpochs {
				me := c.Rank()
				a.do(t, c, w, me, func() {
					expect := func(call string, got, want int64) {
						if got != want {
							t.Errorf("%s, %s: right after %s on the own rank the value is %d, want %d", made.name, a.name, call, got, want)
						}
					}
					sum, got := mpi.Sum[int64], make([]int64, 1)
					noError(t, w.Put([]int64{5}, me, 1), "Put")
					expect("Put", w.Memory()[1], 5)
					noError(t, w.Get(got, me, 1), "Get")
					expect("Get", got[0], 5)
					noError(t, w.Accumulate([]int64{2}, me, 1, sum), "Accumulate")
					expect("Accumulate", w.Memory()[1], 7)
					noError(t, w.FetchAndOp(1, &got[0], me, 1, sum), "FetchAndOp")
					expect("FetchAndOp", got[0], 7)
					noError(t, w.CompareAndSwap(8, 20, &got[0], me, 1), "CompareAndSwap")
					expect("CompareAndSwap", got[0], 8)
					noError(t, w.GetAccumulate([]int64{1}, got, me, 1, sum), "GetAccumulate")
					expect("GetAccumulate", got[0], 20)
					expect("GetAccumulate", w.Memory()[1], 21)
				})
			}
			noError(t, w.Free(), "Free")
		}
	})
}

// A request on the own rank is complete, too.
func TestRequestsOnTheOwnRankAreDoneAtOnce(t *testing.T) {
	windowsOn(t, []int{2}, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.AllocateWin[int64](c, 2)
		noError(t, err, "AllocateWin")
		noError(t, w.LockAll(), "LockAll")
		was, got := make([]int64, 1), make([]int64, 1)
		first := w.RGetAccumulate([]int64{3}, was, c.Rank(), 0, mpi.Sum)
		second := w.RGet(got, c.Rank(), 0)
		if was[0] != 0 || got[0] != 3 {
			t.Errorf("the results are %d and %d before the requests are waited for, want 0 and 3", was[0], got[0])
		}
		for _, r := range []mpi.Request{first, second} {
			_, err := r.Wait()
			noError(t, err, "Wait")
		}
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, w.Free(), "Free")
	})
}

// A rank may wait for a change of its own memory by accumulates and flushes alone: they let
// in what the other rank does.
func TestOwnAccumulatesLetOthersIn(t *testing.T) {
	windowsOn(t, []int{2}, func(t *testing.T, c *mpi.Comm) {
		w, err := mpi.AllocateWin[int64](c, 1)
		noError(t, err, "AllocateWin")
		noError(t, w.LockAll(), "LockAll")
		if c.Rank() == 1 {
			noError(t, w.Accumulate([]int64{1}, 0, 0, mpi.Sum), "Accumulate")
			noError(t, w.Flush(0), "Flush")
		} else {
			for v := int64(0); v == 0; {
				noError(t, w.FetchAndOp(0, &v, 0, 0, mpi.NoOp), "FetchAndOp")
				noError(t, w.Flush(0), "Flush")
			}
		}
		noError(t, w.UnlockAll(), "UnlockAll")
		noError(t, w.Free(), "Free")
	})
}
