package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestSorts(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		if err := run(world, &out); err != nil {
			t.Fatal(err)
		}
		if printed := strings.Contains(out.String(), "keys are sorted"); printed != (world.Rank() == 0) {
			t.Errorf("rank %d prints %q", world.Rank(), out.String())
		}
	})
}

// TestSortsFewAndEqualKeys compares with a sort of all keys on one rank.
func TestSortsFewAndEqualKeys(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4}, func(t *testing.T, world *mpi.Comm) {
		mine := []uint64{uint64(9 - world.Rank()), 5, 5, 5, uint64(world.Rank())}
		all := make([]uint64, len(mine)*world.Size())
		if err := mpi.Allgather(world, mine, all); err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		got, err := distributedSort(world, mine)
		if err != nil {
			t.Fatal(err)
		}
		counts := make([]int, world.Size())
		if err := mpi.Allgather(world, []int{len(got)}, counts); err != nil {
			t.Fatal(err)
		}
		first := 0
		for _, n := range counts[:world.Rank()] {
			first += n
		}
		if want := all[first : first+len(got)]; !slices.Equal(got, want) {
			t.Errorf("rank %d of %d has %v, want %v", world.Rank(), world.Size(), got, want)
		}
	})
}
