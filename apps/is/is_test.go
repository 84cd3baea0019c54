package is

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestVerifies covers more ranks than fill their buckets evenly.
func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4, 16}, func(t *testing.T, world *mpi.Comm) {
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
			t.Error("Run accepts 3 ranks; IS needs a power of two")
		}
	})
}
