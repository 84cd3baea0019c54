// Sort sorts keys that are distributed over all ranks, so that in the end rank 0 has the
// smallest keys and the last rank the largest: a sample sort (Shi and Schaeffer 1992).
//
//	sort locally    each rank sorts its keys, and picks a sample at regular distances
//	splitters       Allgather collects the samples; every rank chooses the same splitters
//	exchange        Alltoall sends how many keys follow, Alltoallv the keys
//	merge           each rank sorts what it has received, which is a range of the keys
//
// With regular samples no rank gets more than twice its share, unless keys are equal.
//
//	muster run -n 4 ./sort
package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

const keys = 200_000 // of each rank

func main() {
	mpi.Main(func(world *mpi.Comm) error { return run(world, os.Stdout) })
}

func run(world *mpi.Comm, out io.Writer) error {
	random := rand.New(rand.NewPCG(uint64(world.Rank()), 1))
	mine := make([]uint64, keys)
	for i := range mine {
		mine[i] = random.Uint64()
	}
	sorted, err := distributedSort(world, mine)
	if err != nil {
		return err
	}
	if err := verify(world, sorted); err != nil {
		return err
	}
	most := []int{len(sorted)}
	if err := mpi.Reduce(world, most, most, mpi.Max, 0); err != nil || world.Rank() != 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "%d keys are sorted; a rank has at most %.2f times its share\n", keys*world.Size(), float64(most[0])/keys)
	return err
}

// distributedSort returns the rank's part of the sorted keys of all ranks.
func distributedSort(world *mpi.Comm, mine []uint64) ([]uint64, error) {
	size := world.Size()
	slices.Sort(mine)
	sample := make([]uint64, size)
	for i := range sample {
		sample[i] = mine[i*len(mine)/size]
	}
	all := make([]uint64, size*size)
	if err := mpi.Allgather(world, sample, all); err != nil {
		return nil, err
	}
	slices.Sort(all)

	// Rank r gets the keys from the r-th splitter up to the next.
	send, begin := make([]int, size), 0
	for r := range size {
		end := len(mine)
		if r < size-1 {
			end, _ = slices.BinarySearch(mine, all[(r+1)*size])
		}
		send[r], begin = end-begin, end
	}
	receive := make([]int, size)
	if err := mpi.Alltoall(world, send, receive); err != nil {
		return nil, err
	}
	total := 0
	for _, n := range receive {
		total += n
	}
	got := make([]uint64, total)
	if err := mpi.Alltoallv(world, mine, send, nil, got, receive, nil); err != nil {
		return nil, err
	}
	slices.Sort(got)
	return got, nil
}

// verify checks that no key is lost, and that none is smaller than those of the ranks before.
func verify(world *mpi.Comm, sorted []uint64) error {
	total := []int{len(sorted)}
	if err := mpi.Allreduce(world, total, total, mpi.Sum); err != nil {
		return err
	}
	if total[0] != keys*world.Size() {
		return fmt.Errorf("%d keys, want %d", total[0], keys*world.Size())
	}
	largest, before := []uint64{0}, []uint64{0}
	if len(sorted) > 0 {
		largest[0] = sorted[len(sorted)-1]
	}
	if err := mpi.Exscan(world, largest, before, mpi.Max); err != nil {
		return err
	}
	if world.Rank() > 0 && len(sorted) > 0 && sorted[0] < before[0] || !slices.IsSorted(sorted) {
		return errors.New("the keys are not sorted")
	}
	return nil
}
