package mpi_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestMemoryPerRankDoesNotGrow checks that what a rank keeps without windows on one node
// depends only on the logarithm of the size of the job: on its number of peers in a collective.
func TestMemoryPerRankDoesNotGrow(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("starts goroutines as ranks")
	}
	few, many := heapPerRank(t, 200), heapPerRank(t, 2000)
	t.Logf("%d bytes a rank of 200, %d of 2000", few, many)
	if limit := few + few/10; many > limit {
		t.Errorf("a rank of 2000 keeps %d bytes, a rank of 200 %d; want at most %d", many, few, limit)
	}
}

// heapPerRank returns the bytes on the heap for each of n ranks after their first collectives.
func heapPerRank(t *testing.T, n int) int {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	worlds, err := mpi.Local(n, nil)
	noError(t, err, "Local")
	defer func() {
		var wg sync.WaitGroup
		for _, w := range worlds {
			wg.Go(func() { w.Finalize() })
		}
		wg.Wait()
	}()
	kept := make([]*mpi.Comm, n)
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Go(func() {
			c := w.Comm()
			noError(t, mpi.Barrier(c), "Barrier")
			sum := []int64{0}
			noError(t, mpi.Allreduce(c, []int64{1}, sum, mpi.Sum[int64]()), "Allreduce")
			odd, err := c.Split(c.Rank()%2, -c.Rank())
			noError(t, err, "Split")
			if sum[0] != int64(n) || odd.Size() != n/2 || odd.Rank() != n/2-1-c.Rank()/2 {
				t.Errorf("rank %d: the sum is %d, and rank %d of %d after Split", c.Rank(), sum[0], odd.Rank(), odd.Size())
			}
			kept[i] = odd
		})
	}
	wg.Wait()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int(after.HeapAlloc-before.HeapAlloc) / n
}

// Above 1,024 ranks, schedules that are as long as the number of ranks are generated while
// they run (sched.Generator).
func TestGeneratedSchedules(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("starts goroutines as ranks")
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
