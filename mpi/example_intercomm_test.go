package mpi_test

import (
	"fmt"

	"github.com/muster-mpi/muster/mpi"
)

// Two ranks produce and three consume. Ranks of the world 0 and 1 are one group,
// 2 to 4 the other; the leaders connect in the world. Then the first producer broadcasts
// to all consumers, and each group gets the sum of the other group's data.
func ExampleComm_IntercommCreate() {
	onRanks(5, func(world *mpi.Comm) error {
		producer := world.Rank() < 2
		colour, otherLeader := 1, 0
		if producer {
			colour, otherLeader = 0, 2
		}
		group, err := world.Split(colour, world.Rank())
		if err != nil {
			return err
		}
		inter, err := group.IntercommCreate(0, world, otherLeader, 0)
		if err != nil {
			return err
		}
		root := 0 // consumers name the root by its rank in the other group
		task := []int{0}
		if producer {
			root = mpi.ProcNull
			if group.Rank() == 0 {
				root, task[0] = mpi.Root, 42
			}
		}
		if err := mpi.Bcast(inter, task, root); err != nil {
			return err
		}
		sum := []int{0}
		if err := mpi.Allreduce(inter, []int{world.Rank()}, sum, mpi.Sum); err != nil {
			return err
		}
		if world.Rank() == 4 {
			fmt.Printf("consumer %d of %d: task %d, producers sum up to %d\n", inter.Rank(), inter.Size(), task[0], sum[0])
		}
		return nil
	})
	// Output: consumer 2 of 3: task 42, producers sum up to 1
}
