package mpi_test

// Collectives in the shared memory of a node: they are used, work together with all other
// calls, and end when a rank fails. Their results are checked by the tests of each call,
// which make enough calls to use shared memory, and in package nodecoll.

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// shareMemory makes enough calls for the ranks of c to share memory, unless they are on
// several hosts or sharing is disabled.
func shareMemory(t *testing.T, c *mpi.Comm) bool {
	t.Helper()
	if c.Size() > 1 && !haveSegment(t, c) {
		return false
	}
	one := []int64{1}
	for range 4 {
		noError(t, mpi.Allreduce(c, one, []int64{0}, mpi.Sum), "Allreduce")
	}
	bytes, why := inspect.NodeSegment(c)
	if c.Size() == 1 && bytes != 0 || c.Size() > 1 && bytes < c.Size()<<16 {
		t.Fatalf("%s of %d ranks shares %d bytes (%s)", c.Name(), c.Size(), bytes, why)
	}
	return true
}

// nodeCounts are element counts on both sides of the thresholds.
var nodeCounts = []int{1, 7, 8, 256, 257, 2048, 4096, 4097, 8192, 8193, 9000}

func TestNodeCollectives(t *testing.T) {
	mpitest.Sizes(t, oneToNine, func(t *testing.T, c *mpi.Comm) {
		if !shareMemory(t, c) {
			return
		}
		me, size := c.Rank(), c.Size()
		for _, n := range nodeCounts {
			if race.Enabled && n*size > 20000 {
				continue
			}
			sum := make([]int64, n)
			var all []int64
			for r := range size {
				all = append(all, contribution(r, n)...)
				for i := range sum {
					sum[i] += value(r, i)
				}
			}
			what := func(call string) string { return fmt.Sprintf("%s of %d elements by %d ranks", call, n, size) }
			root := n % size

			v := make([]int64, n)
			if me == root {
				copy(v, contribution(root, n))
			}
			noError(t, mpi.Bcast(c, v, root), what("Bcast"))
			wantSlice(t, v, contribution(root, n), what("Bcast"))

			v = contribution(me, n)
			noError(t, mpi.Allreduce(c, nil, v, mpi.Sum), what("Allreduce"))
			wantSlice(t, v, sum, what("Allreduce in place"))
			v = contribution(me, n)
			noError(t, mpi.Reduce(c, v, v, mpi.Sum, root), what("Reduce"))
			if me == root {
				wantSlice(t, v, sum, what("Reduce in place"))
			}
			out := make([]int64, n*size)
			noError(t, mpi.Allgather(c, contribution(me, n), out), what("Allgather"))
			wantSlice(t, out, all, what("Allgather"))
			clear(out)
			noError(t, mpi.Gather(c, contribution(me, n), out, root), what("Gather"))
			if me == root {
				wantSlice(t, out, all, what("Gather"))
			}
			noError(t, mpi.Scatter(c, all, v, root), what("Scatter"))
			wantSlice(t, v, contribution(me, n), what("Scatter"))
			if me == root {
				noError(t, mpi.Scatter(c, all, nil, root), what("Scatter in place"))
			} else {
				clear(v)
				noError(t, mpi.Scatter(c, nil, v, root), what("Scatter in place"))
				wantSlice(t, v, contribution(me, n), what("Scatter in place"))
			}
			noError(t, mpi.Alltoall(c, all, out), what("Alltoall"))
			wantSlice(t, out, slices.Repeat(contribution(me, n), size), what("Alltoall"))
			noError(t, mpi.ReduceScatterBlock(c, slices.Repeat(contribution(me, n), size), v, mpi.Sum), what("ReduceScatterBlock"))
			wantSlice(t, v, sum, what("ReduceScatterBlock"))
			noError(t, mpi.Scan(c, slices.Repeat([]int64{1}, n), v, mpi.Sum), what("Scan"))
			wantSlice(t, v, slices.Repeat([]int64{int64(me + 1)}, n), what("Scan"))
			noError(t, mpi.Exscan(c, slices.Repeat([]int64{1}, n), v, mpi.Sum), what("Exscan"))
			if me > 0 {
				wantSlice(t, v, slices.Repeat([]int64{int64(me)}, n), what("Exscan"))
			}
			barrier(t, c)
		}
	})
}

// Ranks that wait in shared memory make progress on messages: rank 0 enters the collective
// only after it has sent a message that needs progress of the others, and has waited for a
// nonblocking collective on the same communicator.
func TestNodeCollectiveServesMessages(t *testing.T) {
	mpitest.Sizes(t, []int{2, 3, 5}, func(t *testing.T, c *mpi.Comm) {
		if !shareMemory(t, c) {
			return
		}
		for range 3 {
			big := make([]byte, 1<<20)
			total := []int64{0}
			r := mpi.Iallreduce(c, []int64{1}, total, mpi.Sum)
			if c.Rank() == 0 {
				for dst := 1; dst < c.Size(); dst++ {
					noError(t, mpi.Send(c, pattern(1<<20, dst), dst, 3), "Send to a rank that waits in a barrier")
				}
				time.Sleep(10 * time.Millisecond) // the others wait in the barrier meanwhile
				noError(t, waitErr(r), "Iallreduce")
				barrier(t, c)
			} else {
				recv := mpi.Irecv(c, big, 0, 3)
				barrier(t, c)
				noError(t, waitErr(recv), "Irecv")
				wantPattern(t, big, c.Rank(), "what came during the barrier")
				noError(t, waitErr(r), "Iallreduce")
			}
			if total[0] != int64(c.Size()) {
				t.Errorf("rank %d: Iallreduce gives %d, want %d", c.Rank(), total[0], c.Size())
			}
		}
	})
}

// Each communicator has its own segment, and frees it.
func TestNodeCommunicators(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		if !shareMemory(t, c) {
			return
		}
		dup, err := c.Dup()
		noError(t, err, "Dup")
		if bytes, _ := inspect.NodeSegment(dup); bytes != 0 {
			t.Error("a duplicate has the segment of its model")
		}
		shareMemory(t, dup)
		half, err := c.Split(c.Rank()%2, -c.Rank())
		noError(t, err, "Split")
		shareMemory(t, half)
		for i := range 20 { // in another order on each rank, each comm by a goroutine
			errs := make(chan error, 2)
			for _, d := range []*mpi.Comm{dup, half} {
				go func() {
					v := []int{i}
					errs <- mpi.Bcast(d, v, i%d.Size())
				}()
			}
			noError(t, errors.Join(<-errs, <-errs), "Bcast on two communicators at once")
		}
		noError(t, half.Free(), "Free")
		noError(t, dup.Free(), "Free")
		if bytes, why := inspect.NodeSegment(dup); bytes != 0 && c.Size() > 1 || !strings.Contains(why, "freed") && c.Size() > 1 {
			t.Errorf("a communicator that was freed shares %d bytes: %s", bytes, why)
		}
		barrier(t, c)
	})
}

// Config.Collective takes precedence: another algorithm keeps a call out of the segment.
func TestNodeForced(t *testing.T) {
	for _, forced := range []string{"allreduce=segment", "bcast=binomial"} {
		mpitest.RunConfig(t, 2, &mpi.Config{Collective: forced}, func(t *testing.T, c *mpi.Comm) {
			for range 10 {
				noError(t, mpi.Bcast(c, []int{1}, 0), "Bcast")
			}
			bytes, _ := inspect.NodeSegment(c)
			if used := bytes > 0; used != strings.HasPrefix(forced, "allreduce") {
				t.Errorf("with %s a broadcast shares %d bytes", forced, bytes)
			}
			v := contribution(c.Rank(), 1<<17)
			noError(t, mpi.Allreduce(c, v, v, mpi.Sum), "Allreduce of 1 MB")
		})
	}
	if _, err := mpi.Local(2, &mpi.Config{Collective: "neighbors=segment"}); err == nil || !strings.Contains(err.Error(), "shared memory") {
		t.Errorf("neighborhood collectives in the segment: %v", err)
	}
}

func TestNodeAllocatesNothing(t *testing.T) {
	unchecked(t)
	if race.Enabled {
		t.Skip("the race detector makes this slow, and allocates itself")
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if !shareMemory(t, c) {
			return
		}
		for _, size := range []int{8, 1 << 10, 16 << 10} {
			floats, all := make([]float64, size/8), make([]float64, size/4)
			product := (&mpi.UserOp[float64]{Name: "mine", Combine: func(inout, in []float64) {
				for i := range inout {
					inout[i] *= in[i]
				}
			}}).Op
			for _, k := range []struct {
				name string
				call func() error
			}{
				{"Barrier", c.Barrier},
				{"Bcast", func() error { return mpi.Bcast(c, floats, 1) }},
				{"Allreduce", func() error { return mpi.Allreduce(c, floats, floats, mpi.Sum) }},
				{"Allreduce of my own", func() error { return mpi.Allreduce(c, nil, floats, product) }},
				{"Reduce", func() error { return mpi.Reduce(c, floats, floats, mpi.Max, 0) }},
				{"Allgather", func() error { return mpi.Allgather(c, floats, all) }},
				{"Alltoall", func() error { return mpi.Alltoall(c, nil, all) }},
				{"Gather", func() error { return mpi.Gather(c, floats, all, 0) }},
				{"Scatter", func() error { return mpi.Scatter(c, all, floats, 0) }},
				{"Scan", func() error { return mpi.Scan(c, floats, floats, mpi.Min) }},
			} {
				mallocs(t, c, k.name+" in shared memory", size, 200, func([]byte) { noError(t, k.call(), k.name) })
			}
		}
	})
}

// dieInSegment: rank 1 dies while the others wait for it in shared memory.
func dieInSegment(world *mpi.Comm) error {
	v := []int{1}
	for range 10 {
		if err := mpi.Allreduce(world, v, v, mpi.Max); err != nil {
			return err
		}
	}
	if bytes, why := inspect.NodeSegment(world); bytes == 0 {
		return fmt.Errorf("there is no segment: %s", why)
	}
	if world.Rank() == 1 {
		time.Sleep(100 * time.Millisecond) // until the others wait in shared memory
		os.Exit(3)
	}
	err := mpi.Allreduce(world, v, v, mpi.Max)
	fmt.Printf("rank %d reports: %v\n", world.Rank(), err)
	return err
}

// A rank of one process ends early while the others wait in shared memory.
func TestNodeRankEndsEarly(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("ends ranks of this process")
	}
	worlds, err := mpi.Local(3, nil)
	noError(t, err, "Local")
	errs := make(chan error, 3)
	for r, w := range worlds {
		go func() {
			c := w.Comm()
			v := []int{1}
			for range 10 {
				if err := mpi.Allreduce(c, v, v, mpi.Max); err != nil {
					errs <- err
					return
				}
			}
			if r == 1 {
				time.Sleep(20 * time.Millisecond) // until the others wait in shared memory
				inspect.FailLocal(worlds, 1, "stopped by the test")
				return
			}
			errs <- mpi.Allreduce(c, v, v, mpi.Max)
			errs <- mpi.Bcast(c, v, r)
		}()
	}
	for range 4 {
		select {
		case err := <-errs:
			if !errors.Is(err, mpi.ErrProcAborted) || !strings.Contains(err.Error(), "rank 1") {
				t.Errorf("a surviving rank got %v", err)
			}
		case <-time.After(20 * time.Second):
			buf := make([]byte, 1<<16)
			t.Fatalf("the survivors still wait\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

// Ranks that wait long in shared memory sleep.
func TestNodeSleepersUseNoCPU(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("looks at all ranks of one process")
	}
	const late = 400 * time.Millisecond
	mpitest.Run(t, 4, func(t *testing.T, c *mpi.Comm) {
		if !shareMemory(t, c) {
			return
		}
		one := []int{1}
		noError(t, mpi.Allreduce(c, one, one, mpi.Max), "Allreduce")
		usesLittleCPU(t, c, fmt.Sprintf("waiting for %v on three ranks", late), late/3, func() time.Duration {
			before, _ := cputime.Used()
			if c.Rank() == 3 {
				time.Sleep(late) // the interval that is measured
			}
			noError(t, mpi.Allreduce(c, one, one, mpi.Max), "Allreduce")
			after, _ := cputime.Used()
			if c.Rank() != 0 {
				return 0
			}
			return after - before
		})
	})
}
