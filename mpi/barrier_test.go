package mpi_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestBarrierWithLateRanks uses more ranks than cores, some of them later than a
// waiting rank polls before it sleeps: no rank may pass before all have entered, and
// all must be woken.
func TestBarrierWithLateRanks(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("counts in memory that processes do not share")
	}
	for _, n := range []int{2, 7, 16} {
		var came atomic.Int64
		mpitest.Run(t, n, func(t *testing.T, c *mpi.Comm) {
			for k := 1; k <= 30; k++ {
				if (k*7+c.Rank()*3)%n == 0 {
					time.Sleep(time.Duration(k%6) * 2 * time.Millisecond) // late in real time: the others sleep in the kernel
				}
				came.Add(1)
				if err := c.Barrier(); err != nil {
					t.Errorf("rank %d, barrier %d: %v", c.Rank(), k, err)
					return
				}
				if got := came.Load(); got < int64(k*n) {
					t.Errorf("rank %d passed barrier %d when %d of %d had come", c.Rank(), k, got, k*n)
					return
				}
			}
		})
	}
}
