package mpi_test

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
)

const copiedBytes = 128 << 20

// largeProgram sends the same bytes from rank 0 to rank 1 in small messages and in a
// large one, and prints the processor time of both ranks for each.
func largeProgram(world *mpi.Comm) error {
	buf := make([]byte, copiedBytes)
	for i := range buf {
		buf[i] = 1
	}
	var took [2]float64
	for i, piece := range []int{16 << 10, copiedBytes} {
		if err := world.Barrier(); err != nil {
			return err
		}
		begin, _ := cputime.Used()
		for at := 0; at < len(buf); at += piece {
			var err error
			if world.Rank() == 0 {
				err = mpi.Send(world, buf[at:at+piece], 1, 0)
			} else {
				_, err = mpi.Recv(world, buf[at:at+piece], 0, 0)
			}
			if err != nil {
				return err
			}
		}
		now, _ := cputime.Used()
		took[i] = (now - begin).Seconds()
	}
	sum := make([]float64, 2)
	if err := mpi.Reduce(world, took[:], sum, mpi.Sum, 0); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Printf("processor seconds: %.3f in small messages, %.3f in a large one\n", sum[0], sum[1])
	}
	return nil
}
