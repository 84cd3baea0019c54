// Hello starts as several ranks, and each says who it is.
//
// A parallel program is one program that runs several times at once. Each copy is
// a rank, with a number of its own; Size is how many there are. Nothing is shared
// between ranks: what one wants to know of another must be sent.
//
//	go build -o hello ./examples/01-hello
//	muster run -n 4 ./hello
//
// The lines come in any order, since the ranks do not wait for each other.
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
