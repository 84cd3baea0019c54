// Pi computes π as the area under 4/(1+x²) between 0 and 1, divided into strips.
//
// Each rank computes every size-th strip, and Allreduce adds the partial sums. It is a
// collective call: all ranks make it, and all get the result. The strips are assigned
// round-robin, so the work is balanced.
//
//	muster run -n 4 ./pi
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

func main() {
	mpi.Main(func(world *mpi.Comm) error { return run(world, os.Stdout) })
}

const strips = 10_000_000

func run(world *mpi.Comm, out io.Writer) error {
	pi, err := compute(world, strips)
	if err != nil || world.Rank() != 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "π is about %.10f\n", pi)
	return err
}

func compute(world *mpi.Comm, strips int) (float64, error) {
	width := 1 / float64(strips)
	sum := []float64{0}
	for i := world.Rank(); i < strips; i += world.Size() {
		x := (float64(i) + 0.5) * width
		sum[0] += 4 / (1 + x*x) * width
	}
	err := mpi.Allreduce(world, sum, sum, mpi.Sum)
	return sum[0], err
}
