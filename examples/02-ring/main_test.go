package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestRing(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		if err := run(world, &out); err != nil {
			t.Fatal(err)
		}
		n, want := world.Size(), ""
		if world.Rank() == 0 {
			want = fmt.Sprintf("the token went through %d ranks and brings %d\n", n, n*(n-1)/2)
		}
		if out.String() != want {
			t.Errorf("rank %d says %q, want %q", world.Rank(), out.String(), want)
		}
	})
}
