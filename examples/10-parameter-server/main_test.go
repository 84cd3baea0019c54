package main

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestFindsParameters includes shards of different lengths.
func TestFindsParameters(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4}, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		far, err := run(world, &out)
		if err != nil {
			t.Fatal(err)
		}
		if far > 0.05 {
			t.Errorf("a parameter is wrong by %v", far)
		}
		if printed := strings.HasPrefix(out.String(), "after 2000 batches"); printed != (world.Rank() == 0) {
			t.Errorf("rank %d prints %q", world.Rank(), out.String())
		}
	})
}
