package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestEveryJobIsDoneOnce(t *testing.T) {
	total := int64(0)
	for n := range int64(jobs) {
		total += collatz(n + 1)
	}
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		if err := run(world, &out); err != nil {
			t.Fatal(err)
		}
		want := ""
		if world.Rank() == 0 {
			want = fmt.Sprintf("%d jobs took %d steps in all\n", jobs, total)
		}
		if out.String() != want {
			t.Errorf("rank %d prints %q, want %q", world.Rank(), out.String(), want)
		}
	})
}
