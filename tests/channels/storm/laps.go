package main

// Laps of long collectives, with every byte checked, until the standard input of rank 0
// ends. The algorithms are those that the library chooses.

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// lapSizes are the lengths of a block or vector, one in each lap.
var lapSizes = []int{64 << 10, 256 << 10, 1 << 20}

// lapCollectives are the calls of a lap.
var lapCollectives = []struct {
	name string
	call func(c *mpi.Comm, n, bytes int) (time.Duration, error)
}{{"allreduce", checkedAllreduce}, {"alltoall", checkedAlltoall}, {"bcast", checkedBcast}, {"allgather", checkedAllgather}}

// runLaps makes the calls and prints, at rank 0, the longest call of each lap.
func runLaps(c *mpi.Comm) error {
	ended := make(chan error, 1)
	if c.Rank() == 0 {
		go func() {
			_, err := io.Copy(io.Discard, os.Stdin)
			ended <- err
		}()
	}
	for lap := 0; ; lap++ {
		last, err := inputEnded(c, ended)
		if err != nil || last {
			return err
		}
		bytes := lapSizes[lap%len(lapSizes)]
		longest := []int64{0}
		for _, k := range lapCollectives {
			took, err := k.call(c, lap, bytes)
			if err != nil {
				return fmt.Errorf("%s of %d bytes in lap %d: %w", k.name, bytes, lap, err)
			}
			longest[0] = max(longest[0], int64(took))
		}
		all := []int64{0}
		if err := mpi.Reduce(c, longest, all, mpi.Max, 0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Printf("lap of %d bytes, longest call %v\n", bytes, time.Duration(all[0]))
		}
	}
}

// inputEnded reports to all ranks whether the input of rank 0 has ended.
func inputEnded(c *mpi.Comm, ended <-chan error) (last bool, err error) {
	select {
	case err = <-ended:
		last = true
	default:
	}
	if err != nil {
		return false, err
	}
	return mpi.BcastValue(c, last, 0)
}

// measureCall makes a call and returns the time that it took.
func measureCall(call func() error) (time.Duration, error) {
	start := time.Now()
	err := call()
	return time.Since(start), err
}
