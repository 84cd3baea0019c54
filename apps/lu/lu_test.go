package lu

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestVerifies compares class S with the values of the specification: one rank, and grids of
// 2×1, 2×2 and 4×4 ranks, the last with three points each.
func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4, 16}, func(t *testing.T, c *mpi.Comm) {
		result, err := Run(c, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

// TestRejects: a number of ranks that leaves them too few points.
func TestRejects(t *testing.T) {
	mpitest.Run(t, 5, func(t *testing.T, c *mpi.Comm) {
		if _, err := Run(c, 'S'); err == nil {
			t.Error("12 points were divided among 5 ranks")
		}
	})
}
