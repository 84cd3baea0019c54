package cg

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestVerifies covers one rank, square grids and grids of twice as many columns as rows.
func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4, 8}, func(t *testing.T, world *mpi.Comm) {
		result, err := Run(world, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

func TestRejectsThreeRanks(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, world *mpi.Comm) {
		if _, err := Run(world, 'S'); err == nil {
			t.Error("Run accepts 3 ranks; the grid needs a power of two")
		}
	})
}
