package radix

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4}, func(t *testing.T, c *mpi.Comm) {
		result, err := Run(c, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

// TestSorts compares with a sort of all keys on one rank: shares that differ in length, more
// ranks than one group of receives, and keys that all have the same digits.
func TestSorts(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3, 7}, func(t *testing.T, c *mpi.Comm) {
		for _, limit := range []uint32{1, 5, 1 << 12, 1 << keyBits} {
			s := newSorter(c, 1001)
			s.clock = new(npb.Clock)
			for i := range s.keys {
				s.keys[i] %= limit
			}
			all, counts := make([]uint32, s.n), make([]int, c.Size())
			for rank := range counts {
				first, end := s.share(rank)
				counts[rank] = end - first
			}
			if err := mpi.Allgatherv(c, s.keys, all, counts, nil); err != nil {
				t.Fatal(err)
			}
			slices.Sort(all)
			if err := s.sort(); err != nil {
				t.Fatal(err)
			}
			if first, end := s.share(c.Rank()); !slices.Equal(s.keys, all[first:end]) {
				t.Errorf("keys below %d: the keys of rank %d are not those of a sequential sort", limit, c.Rank())
			}
		}
	})
}

// TestVerifyFindsFaults plants faults in sorted keys.
func TestVerifyFindsFaults(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		base := uint32(c.Rank()) * 4
		sorted := []uint32{base, base + 1, base + 2, base + 3}
		for _, fault := range []struct {
			name  string
			plant func(keys []uint32)
		}{
			{"none", func([]uint32) {}},
			{"two keys exchanged", func(k []uint32) { k[1], k[2] = k[2], k[1] }},
			{"ranks exchanged", func(k []uint32) {
				for i := range k {
					k[i] = 4 - base + uint32(i)
				}
			}},
			{"changed keys", func(k []uint32) { k[1], k[2] = k[1]-1, k[2]+1 }},
		} {
			keys := slices.Clone(sorted)
			fault.plant(keys)
			checks, err := verify(c, sorted, keys)
			if err != nil {
				t.Fatal(err)
			}
			result := npb.Result{Checks: checks}
			if want := fault.name == "none"; result.Verified() != want {
				t.Errorf("fault %s: verified %v, want %v", fault.name, !want, want)
			}
		}
	})
}
