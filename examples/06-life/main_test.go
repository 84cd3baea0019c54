package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// alone plays the game serially.
func alone() (now [height][width]byte, alive int) {
	for _, cell := range start {
		now[cell[0]][cell[1]] = 1
	}
	for range generations {
		var next [height][width]byte
		for r := range height {
			for c := range width {
				n := 0
				for dr := -1; dr <= 1; dr++ {
					for dc := -1; dc <= 1; dc++ {
						if dr != 0 || dc != 0 {
							n += int(now[(r+dr+height)%height][(c+dc+width)%width])
						}
					}
				}
				if n == 3 || n == 2 && now[r][c] == 1 {
					next[r][c] = 1
				}
			}
		}
		now = next
	}
	for r := range now {
		for _, v := range now[r] {
			alive += int(v)
		}
	}
	return now, alive
}

// With 1, 2 and 3 ranks a dimension of the grid has one or two ranks, which are their
// own neighbors, or each other's on both sides.
func TestMatchesSerialGame(t *testing.T) {
	want, alive := alone()
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5, 6}, func(t *testing.T, world *mpi.Comm) {
		f, err := newField(world)
		if err != nil {
			t.Fatal(err)
		}
		for range generations {
			if err := f.exchange(); err != nil {
				t.Fatal(err)
			}
			f.step()
		}
		for r := range f.rows {
			for c := range f.cols {
				if got, want := f.now[(r+1)*f.stride+c+1], want[f.row+r][f.col+c]; got != want {
					t.Fatalf("rank %d: the cell in row %d, column %d is %d, want %d", world.Rank(), f.row+r, f.col+c, got, want)
				}
			}
		}
	})
	mpitest.Run(t, 4, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		if err := run(world, &out); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("after %d generations %d cells live\n", generations, alive)
		printed := []int{0}
		if got := out.String(); got == want {
			printed[0] = 1
		} else if got != "" {
			t.Errorf("rank %d prints %q, want %q", world.Rank(), got, want)
		}
		if err := mpi.Allreduce(world, printed, printed, mpi.Sum); err != nil {
			t.Fatal(err)
		}
		if printed[0] != 1 {
			t.Errorf("%d ranks print the result, want one", printed[0])
		}
	})
}
