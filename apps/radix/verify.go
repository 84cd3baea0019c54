package radix

import (
	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// verify checks that the keys are in ascending order on all ranks, and that they are the
// same keys as before.
func verify(c *mpi.Comm, before, after []uint32) ([]npb.Check, error) {
	disorder := 0
	for i := 1; i < len(after); i++ {
		if after[i-1] > after[i] {
			disorder++
		}
	}
	// The largest key of the ranks before this one; Exscan leaves it as it is on rank 0.
	below, largest := []uint32{0}, []uint32{0}
	if len(after) > 0 {
		largest[0] = after[len(after)-1]
	}
	if err := mpi.Exscan(c, largest, below, mpi.Max); err != nil {
		return nil, err
	}
	if len(after) > 0 && below[0] > after[0] {
		disorder++
	}
	sums := []uint64{uint64(disorder), checksum(before), checksum(after)}
	if err := mpi.Allreduce(c, sums, sums, mpi.Sum); err != nil {
		return nil, err
	}
	return []npb.Check{
		{Name: "Out of order", Got: float64(sums[0])},
		// A float64 holds 53 bits of a checksum.
		{Name: "Checksum", Got: float64(sums[2] >> 11), Want: float64(sums[1] >> 11)},
	}, nil
}

// checksum returns a sum that is the same for any order of the keys. The keys are mixed
// first (the finalizer of SplitMix64), because a plain sum does not notice that two keys
// changed in opposite directions.
func checksum(keys []uint32) uint64 {
	var sum uint64
	for _, k := range keys {
		x := uint64(k) + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		sum += x ^ x>>31
	}
	return sum
}
