package mpi_test

import (
	"fmt"

	"github.com/muster-mpi/muster/mpi"
)

// A large receive buffer that is used repeatedly.
func ExampleAlloc() {
	onRanks(2, func(world *mpi.Comm) error {
		field, err := mpi.Alloc[float64](world, 1<<20)
		if err != nil {
			return err
		}
		for step := range 3 {
			if world.Rank() == 0 {
				field[1<<20-1] = float64(step)
				err = mpi.Send(world, field, 1, step)
			} else {
				_, err = mpi.Recv(world, field, 0, step)
			}
			if err != nil {
				return err
			}
		}
		if world.Rank() == 1 {
			fmt.Println("last element:", field[1<<20-1])
		}
		return mpi.Free(world, field)
	})
	// Output: last element: 2
}
