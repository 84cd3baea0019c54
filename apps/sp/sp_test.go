package sp

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestVerifies compares class S with the values of the specification: one cell, and two per
// rank, where the next rank of a dimension is also the previous one.
func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 4}, func(t *testing.T, c *mpi.Comm) {
		result, err := Run(c, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

// TestRejects: a number of ranks that is no square, and a class that does not exist.
func TestRejects(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if _, err := Run(c, 'S'); err == nil {
			t.Error("2 ranks were accepted")
		}
	})
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		if _, err := Run(c, 'Z'); err == nil {
			t.Error("class Z was accepted")
		}
	})
}
