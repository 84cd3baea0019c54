package ep

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestVerifies uses a number of ranks that does not divide the batches.
func TestVerifies(t *testing.T) {
	if testing.Short() {
		t.Skip("generates 2²⁴ pairs")
	}
	mpitest.Sizes(t, []int{3}, func(t *testing.T, world *mpi.Comm) {
		result, err := Run(world, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}
