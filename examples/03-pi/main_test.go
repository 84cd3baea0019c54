package main

import (
	"math"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestPi(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		pi, err := compute(world, 100_000)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(pi-math.Pi) > 1e-9 {
			t.Errorf("rank %d of %d finds %.12f, want %.12f", world.Rank(), world.Size(), pi, math.Pi)
		}
	})
}

func TestOutput(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		if err := run(world, &out); err != nil {
			t.Fatal(err)
		}
		if want := [2]string{"π is about 3.1415926536\n", ""}[world.Rank()]; out.String() != want {
			t.Errorf("rank %d prints %q, want %q", world.Rank(), out.String(), want)
		}
	})
}
