package flow

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestExchange compares the ghost points of all cells with what their neighbors have, for
// cells of different sizes: one, four and nine ranks, 10 points.
func TestExchange(t *testing.T) {
	mpitest.Sizes(t, []int{1, 4, 9}, func(t *testing.T, c *mpi.Comm) {
		g, err := NewGrid(c, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range g.Cells() {
			clear(cell.U)
			cell.fill(0, Exact)
		}
		if err := g.exchange(); err != nil {
			t.Fatal(err)
		}
		for _, cell := range g.Cells() {
			for d := range 3 {
				for p := -2; p < cell.Size[d]+2; p++ {
					if at := cell.Axes[d].First + p; at < 0 || at >= 10 {
						continue
					}
					// A point of the middle of the face, not of its edges.
					var index [3]int
					for e := range 3 {
						index[e] = cell.Size[e] / 2
					}
					index[d] = p
					got, want := cell.U[cell.At(index[0], index[1], index[2])], Exact(cell.position(index[0], index[1], index[2]))
					if got != want {
						t.Errorf("cell %d, dimension %d, point %d: got %v, want %v", cell.Index, d, p, got, want)
					}
				}
			}
		}
	})
}

// TestSlabs: all cells of a slab, on all ranks together, are different, so that they are all
// cells of the slab.
func TestSlabs(t *testing.T) {
	mpitest.Run(t, 9, func(t *testing.T, c *mpi.Comm) {
		g, err := NewGrid(c, 9)
		if err != nil {
			t.Fatal(err)
		}
		for d := range 3 {
			for slab, cell := range g.Slabs[d] {
				if got := cell.Axes[d].First; got != 3*slab {
					t.Errorf("dimension %d: the cell of slab %d starts at %d", d, slab, got)
				}
				mine := []int{cell.Axes[(d+1)%3].First/3 + cell.Axes[(d+2)%3].First}
				all := make([]int, 9)
				if err := mpi.Allgather(c, mine, all); err != nil {
					t.Fatal(err)
				}
				seen := map[int]bool{}
				for _, v := range all {
					seen[v] = true
				}
				if len(seen) != 9 {
					t.Errorf("dimension %d, slab %d: the ranks have the cells %v", d, slab, all)
				}
			}
		}
	})
}

func TestNewGridRejects(t *testing.T) {
	mpitest.Run(t, 4, func(t *testing.T, c *mpi.Comm) {
		if _, err := NewGrid(c, 5); err == nil {
			t.Error("5 points were divided into two cells")
		}
	})
}
