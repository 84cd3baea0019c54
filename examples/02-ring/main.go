// Ring passes a token from rank to rank until it is back at rank 0. Each rank adds its
// number to it.
//
// Send and Recv transfer slices: of numbers here, of any type without pointers in
// general. The number after the rank is the tag, which distinguishes messages of
// different kinds; there is only one kind here. Rank 0 sends first and receives last, so
// that the ranks do not deadlock. It uses Isend, which does not wait: Send may wait for
// the receiver, and if there is only one rank, that is the sender itself.
//
//	muster run -n 4 ./ring
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
	rank, size := world.Rank(), world.Size()
	next, prev := (rank+1)%size, (rank+size-1)%size
	token := []int{0}
	if rank > 0 {
		if _, err := mpi.Recv(world, token, prev, 0); err != nil {
			return err
		}
	}
	token[0] += rank
	sent := mpi.Isend(world, token, next, 0)
	if rank > 0 {
		_, err := sent.Wait()
		return err
	}
	back := []int{0}
	if _, err := mpi.Recv(world, back, prev, 0); err != nil {
		return err
	}
	if _, err := sent.Wait(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "the token went through %d ranks and brings %d\n", size, back[0])
	return err
}
