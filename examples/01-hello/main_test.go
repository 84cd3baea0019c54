package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestHello(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		if err := run(world, &out); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("hello from rank %d of %d\n", world.Rank(), world.Size()); out.String() != want {
			t.Errorf("rank %d says %q, want %q", world.Rank(), out.String(), want)
		}
	})
}
