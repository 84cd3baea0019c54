package mpi_test

import (
	"fmt"

	"github.com/muster-mpi/muster/mpi"
)

// A rank continues its work while a sum is computed.
func ExampleIallreduce() {
	onRanks(4, func(world *mpi.Comm) error {
		parts, sums := []int{world.Rank(), 1}, make([]int, 2)
		r := mpi.Iallreduce(world, parts, sums, mpi.Sum)
		squares := 0
		for i := range 1000 {
			squares += i * i
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(sums, squares)
		}
		return nil
	})
	// Output: [6 4] 332833500
}

// A loop that makes the same call each time uses a persistent operation.
func ExampleAllreduceInit() {
	onRanks(3, func(world *mpi.Comm) error {
		x := []float64{1}
		largest := mpi.AllreduceInit(world, nil, x, mpi.Max) // in place
		for step := range 4 {
			x[0] += float64(world.Rank() * step)
			if _, err := largest.Start().Wait(); err != nil {
				return err
			}
		}
		if world.Rank() == 0 {
			fmt.Println(x[0])
		}
		return nil
	})
	// Output: 13
}

// Each rank has another number of letters; rank 0 collects them one after the other.
func ExampleGatherv() {
	onRanks(3, func(world *mpi.Comm) error {
		mine := make([]byte, world.Rank()+1)
		for i := range mine {
			mine[i] = byte('a' + world.Rank())
		}
		counts := []int{1, 2, 3} // used at the root only
		all := make([]byte, 6)
		if err := mpi.Gatherv(world, mine, all, counts, nil, 0); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(string(all))
		}
		return nil
	})
	// Output: abbccc
}
