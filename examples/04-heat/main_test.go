package main

import (
	"math"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// alone computes the plate serially.
func alone() [rows][columns]float64 {
	var now [rows][columns]float64
	for c := range columns {
		now[0][c] = hot
	}
	for range steps {
		next := now
		for r := 1; r < rows-1; r++ {
			for c := 1; c < columns-1; c++ {
				next[r][c] = (now[r][c-1] + now[r][c+1] + now[r-1][c] + now[r+1][c]) / 4
			}
		}
		now = next
	}
	return now
}

func TestMatchesSerialPlate(t *testing.T) {
	want := alone()
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		p, err := newPlate(world)
		if err != nil {
			t.Fatal(err)
		}
		for range steps {
			if err := p.exchange(world); err != nil {
				t.Fatal(err)
			}
			p.step()
		}
		for r := range rows {
			for c := 1; c < p.width-1; c++ {
				if got, want := p.now[r*p.width+c], want[r][p.first+c-1]; math.Abs(got-want) > 1e-12 {
					t.Fatalf("rank %d: row %d, column %d is %v, want %v", world.Rank(), r, p.first+c-1, got, want)
				}
			}
		}
	})
}

func TestOutput(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		if err := run(world, &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "mean temperature is "); got != (world.Rank() == 0) {
			t.Errorf("rank %d prints %q", world.Rank(), out.String())
		}
	})
}
