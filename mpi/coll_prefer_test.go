package mpi_test

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

func TestDupAlgorithms(t *testing.T) {
	mpitest.Run(t, 4, func(t *testing.T, c *mpi.Comm) {
		algorithm := func(c *mpi.Comm) string {
			x, err := inspect.ExplainCollective(c, "alltoall", 64, 0)
			if err != nil {
				t.Fatal(err)
			}
			return x.Algorithm
		}
		before := algorithm(c)
		for _, want := range []string{"pairwise", "bruck"} {
			d, err := c.DupWithCollective("alltoall=" + want)
			if err != nil {
				t.Fatal(err)
			}
			again, err := d.Dup()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []*mpi.Comm{d, again} {
				if got := algorithm(d); got != want {
					t.Errorf("%s uses %s, want %s", d.Name(), got, want)
				}
				// In the segment of a host there would be no algorithm.
				for range 8 {
					in, out := []int32{1, 2, 3, 4}, make([]int32, 4)
					if err := mpi.Alltoall(d, in, out); err != nil {
						t.Fatal(err)
					}
					if mine := int32(d.Rank() + 1); out[0] != mine || out[3] != mine {
						t.Fatalf("rank %d got %v, want %d from all", d.Rank(), out, mine)
					}
				}
				if bytes, _ := inspect.NodeSegment(d); bytes != 0 {
					t.Errorf("%s works in a segment of %d bytes, not by messages", d.Name(), bytes)
				}
			}
		}
		if got := algorithm(c); got != before {
			t.Errorf("the communicator itself uses %s now, and %s before", got, before)
		}
		if _, err := c.DupWithCollective("alltoall=by-pigeon"); !errors.Is(err, mpi.ErrArg) {
			t.Errorf("an algorithm that is not there gives %v, want an error of class ErrArg", err)
		}
	})
}
