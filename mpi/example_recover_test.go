package mpi_test

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// The ranks add up numbers. Rank 2 fails after the checkpoint of step 5, and the others go on
// from there. A program calls mpi.Main(mpi.Recover(work)) and runs with "muster run --spares 1" or
// MUSTER_ON_FAILURE=return.
func ExampleRecover() {
	worlds, err := mpi.Local(3, &mpi.Config{OnFailure: "return"})
	if err != nil {
		fmt.Println(err)
		return
	}
	work := func(c *mpi.Comm, a mpi.Attempt) error {
		total := []int{0}
		step, parts, err := mpi.Restore[int](c)
		if err != nil {
			return err
		}
		if step > 0 {
			total = parts[0].Data[0]
		}
		if c.Rank() == 0 {
			fmt.Printf("attempt %d of %d ranks begins after step %d with %d; failed: %v\n", a.Number, c.Size(), step, total[0], a.Failed)
		}
		for step++; step <= 10; step++ {
			if a.Number == 1 && step == 8 && c.Rank() == 2 {
				inspect.FailLocal(worlds, 2, "a test")
				runtime.Goexit() // a failed process does nothing any more
			}
			sum := []int{0}
			if err := mpi.Allreduce(c, []int{step}, sum, mpi.Sum); err != nil {
				return err
			}
			total[0] += sum[0]
			if step%5 == 0 {
				if err := mpi.Checkpoint(c, step, total); err != nil {
					return err
				}
			}
		}
		if c.Rank() == 0 {
			fmt.Println("total", total[0])
		}
		return nil
	}
	var wg sync.WaitGroup
	for _, w := range worlds {
		wg.Go(func() {
			if err := mpi.Recover(work)(w.Comm()); err != nil {
				fmt.Println(err)
			}
			w.Finalize()
		})
	}
	wg.Wait()
	// Output:
	// attempt 1 of 3 ranks begins after step 0 with 0; failed: []
	// attempt 2 of 2 ranks begins after step 5 with 45; failed: [2]
	// total 125
}
