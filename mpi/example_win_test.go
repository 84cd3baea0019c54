package mpi_test

import (
	"fmt"
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

// Every rank writes its number into the memory of rank 0, without a call of rank 0.
func ExampleWin_Put() {
	worlds, err := mpi.Local(3, nil) // or mpi.Main, under muster run
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, w := range worlds {
		wg.Go(func() {
			c := w.Comm()
			win, err := mpi.AllocateWin[int](c, c.Size())
			if err != nil {
				fmt.Println(err)
				return
			}
			win.Fence()
			win.Put([]int{10 * c.Rank()}, 0, c.Rank())
			win.Fence()
			if c.Rank() == 0 {
				fmt.Println(win.Memory())
			}
			win.Free()
			w.Finalize()
		})
	}
	wg.Wait()
	// Output: [0 10 20]
}
