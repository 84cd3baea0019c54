package mpi_test

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// scaleRanks selects a run of many ranks, for example of 50,000 (make scale).
var scaleRanks = flag.Int("scale.ranks", 0, "run collectives of this many goroutines as ranks, and check memory and times")

// mostPerRank is the memory that a rank may take after its first collectives, in a job of any
// size on one node.
const mostPerRank = 100_000

// TestMemoryPerRankDoesNotGrow checks that what a rank keeps without windows on one node
// depends only on the logarithm of the size of the job: on its number of peers in a
// collective. So the memory of a rank of 50,000 follows from that of smaller jobs.
func TestMemoryPerRankDoesNotGrow(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("starts goroutines as ranks")
	}
	few, many := scaleRun(t, 200, 0, nil), scaleRun(t, 2000, 10, &mpi.Config{Collective: "allreduce=recursive-doubling"})
	t.Logf("%d bytes a rank of 200; %d of 2000, %d after 10 more calls", few.first, many.first, many.last)
	if limit := few.first + few.first/10; many.first > limit {
		t.Errorf("a rank of 2000 keeps %d bytes, a rank of 200 %d; want at most %d", many.first, few.first, limit)
	}
	for what, n := range map[string]int{"first collectives": many.first, "10 more calls": many.last} {
		perPeer := float64(many.first-few.first) / math.Log2(2000.0/200)
		if at50000 := n + int(perPeer*math.Log2(50_000.0/2000)); at50000 > mostPerRank {
			t.Errorf("after the %s a rank of 2000 keeps %d bytes, so a rank of 50,000 about %d; want at most %d", what, n, at50000, mostPerRank)
		}
	}
}

// TestCollectivesOfManyRanks executes the first collectives of a job of the size that -scale.ranks gives.
func TestCollectivesOfManyRanks(t *testing.T) {
	n := *scaleRanks
	if n == 0 {
		t.Skip("-scale.ranks is not given")
	}
	r := scaleRun(t, n, 0, nil)
	t.Logf("%d ranks: %d bytes a rank; %s", n, r.first, strings.Join(r.times, ", "))
	if r.first > mostPerRank {
		t.Errorf("a rank of %d keeps %d bytes, want at most %d", n, r.first, mostPerRank)
	}
	if peak := int(residentPeak()) / n; peak > mostPerRank {
		t.Errorf("the process took up to %d bytes a rank, want at most %d", peak, mostPerRank)
	}
	// The goal is three times as much; on a machine with other load it was up to 5.6 times.
	if r.allreduce[0] > 8*r.allreduce[1] {
		t.Errorf("the first Allreduce took %v of processor time, the second %v; want at most eight times as much", r.allreduce[0], r.allreduce[1])
	}
}

// scaled is the result of scaleRun.
type scaled struct {
	first     int              // bytes on the heap for each rank after the first collectives
	last      int              // after more calls
	allreduce [2]time.Duration // processor time of the first and the second call
	times     []string
}

// scaleRun executes the first collectives of n ranks, and then more calls of Allreduce.
func scaleRun(t *testing.T, n, more int, cfg *mpi.Config) (r scaled) {
	t.Helper()
	before := liveHeap()
	start := time.Now()
	worlds, err := mpi.Local(n, cfg)
	noError(t, err, "Local")
	r.times = append(r.times, fmt.Sprintf("Local %v", time.Since(start)))
	each := func(what string, f func(i int, w *mpi.World)) time.Duration {
		start := time.Now()
		before, _ := cputime.Used()
		var wg sync.WaitGroup
		for i, w := range worlds {
			wg.Go(func() { f(i, w) })
		}
		wg.Wait()
		after, _ := cputime.Used()
		used := after - before
		r.times = append(r.times, fmt.Sprintf("%s %v (CPU %v)", what, time.Since(start), used))
		return used
	}
	defer each("Finalize", func(_ int, w *mpi.World) { w.Finalize() })
	allreduce := func(_ int, w *mpi.World) {
		sum := []int64{0}
		noError(t, mpi.Allreduce(w.Comm(), []int64{1}, sum, mpi.Sum), "Allreduce")
		if sum[0] != int64(n) {
			t.Errorf("rank %d: the sum is %d, want %d", w.Comm().Rank(), sum[0], n)
		}
	}
	each("Barrier", func(_ int, w *mpi.World) { noError(t, w.Comm().Barrier(), "Barrier") })
	for i := range r.allreduce {
		r.allreduce[i] = each("Allreduce", allreduce)
	}
	kept := make([]*mpi.Comm, n)
	each("Split", func(i int, w *mpi.World) {
		c := w.Comm()
		odd, err := c.Split(c.Rank()%2, -c.Rank())
		noError(t, err, "Split")
		if odd.Size() != n/2 || odd.Rank() != n/2-1-c.Rank()/2 {
			t.Errorf("rank %d is rank %d of %d after Split", c.Rank(), odd.Rank(), odd.Size())
		}
		kept[i] = odd
	})
	r.first = (liveHeap() - before) / n
	for range more {
		each("Allreduce", allreduce)
	}
	r.last = (liveHeap() - before) / n
	runtime.KeepAlive(kept)
	return r
}

func liveHeap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Above 1,024 ranks, schedules that are as long as the number of ranks are generated while
// they run (sched.Generator).
func TestGeneratedSchedules(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("starts goroutines as ranks")
	}
	if testing.Short() {
		t.Skip("starts a thousand ranks")
	}
	selected := []string{"allgather=ring"}
	if *matrixFull {
		selected = append(selected, "allgather=direct", "alltoall=pairwise", "alltoall=direct")
	}
	for _, algorithm := range selected {
		t.Run(algorithm, func(t *testing.T) { exchangeAmong(t, 1030, algorithm) })
	}
}

func exchangeAmong(t *testing.T, n int, algorithm string) {
	worlds, err := mpi.Local(n, &mpi.Config{Collective: algorithm})
	noError(t, err, "Local")
	var wg sync.WaitGroup
	for _, w := range worlds {
		wg.Go(func() {
			c := w.Comm()
			gathered, blocks, exchanged := make([]int32, n), make([]int32, n), make([]int32, n)
			for i := range blocks {
				blocks[i] = int32(c.Rank()*n + i)
			}
			noError(t, mpi.Allgather(c, []int32{int32(c.Rank())}, gathered), "Allgather")
			noError(t, mpi.Alltoall(c, blocks, exchanged), "Alltoall")
			for i := range n {
				if gathered[i] != int32(i) || exchanged[i] != int32(i*n+c.Rank()) {
					t.Errorf("rank %d has %d and %d from rank %d", c.Rank(), gathered[i], exchanged[i], i)
					break
				}
			}
			w.Finalize()
		})
	}
	wg.Wait()
}
