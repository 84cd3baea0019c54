// Hello runs as several ranks, and each prints its number.
//
// A parallel program is one program that runs as several processes at once. Each
// process is a rank, with its own number; Size is the number of ranks. Ranks share no
// memory: they exchange data by messages.
//
//	go build -o hello ./examples/01-hello
//	muster run -n 4 ./hello
//
// The lines appear in any order, because the ranks do not wait for each other.
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

func run(world *mpi.Comm, out io.Writer) error {
	_, err := fmt.Fprintf(out, "hello from rank %d of %d\n", world.Rank(), world.Size())
	return err
}
