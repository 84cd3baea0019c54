// 06-life plays Conway's game of life on a torus, a field without edges.
//
// The ranks form a periodic grid. Each owns a block of the field with a rim of ghost
// cells around it, copies of its neighbors' outermost cells. Before each generation
// the ranks exchange ghost cells: columns with the ranks to the left and right, then
// rows, ghost cells included, with those above and below. The corners are thus
// exchanged as well.
//
// The example shows three features. The library chooses the shape of the grid
// (DimsCreate) and puts neighbors onto the same node (Near). Sub splits the grid into
// its rows and columns, and NeighborAlltoallw exchanges with both neighbors there in
// one call, with layouts that describe the cells. The exchange is the same in every
// generation, so it is a persistent operation, prepared once and then started.
//
//	muster run -n 4 ./06-life
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const (
	height, width = 48, 64 // of the whole field
	generations   = 200
)

// start is the cells that are alive at the beginning: the R-pentomino, which evolves for
// a long time, and a glider.
var start = [][2]int{
	{20, 31}, {20, 32}, {21, 30}, {21, 31}, {22, 31},
	{40, 2}, {41, 3}, {42, 1}, {42, 2}, {42, 3},
}

func main() {
	mpi.Main(func(world *mpi.Comm) error { return run(world, os.Stdout) })
}

func run(world *mpi.Comm, out io.Writer) error {
	f, err := newField(world)
	if err != nil {
		return err
	}
	for range generations {
		if err := f.exchange(); err != nil {
			return err
		}
		f.step()
	}
	alive := []int{f.alive()}
	if err := mpi.Reduce(f.grid.Comm, alive, alive, mpi.Sum, 0); err != nil || f.grid.Rank() != 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "after %d generations %d cells live\n", generations, alive[0])
	return err
}

// field is a rank's block, in rows of stride cells: its own cells with a rim of ghost
// cells.
type field struct {
	grid       *mpi.Cart
	row, col   int // of the first own cell on the whole field
	rows, cols int // own cells
	stride     int
	now, next  []byte
	ghosts     [2]*mpi.Persistent // of columns, of rows
}

func newField(world *mpi.Comm) (*field, error) {
	dims, err := mpi.DimsCreate(world.Size(), []int{0, 0})
	if err != nil {
		return nil, err
	}
	grid, err := world.CartCreate(dims, []bool{true, true}, mpi.Near)
	if err != nil {
		return nil, err
	}
	f := &field{grid: grid}
	at := grid.MyCoords()
	f.row, f.rows = share(height, at[0], dims[0])
	f.col, f.cols = share(width, at[1], dims[1])
	f.stride = f.cols + 2
	f.now, f.next = make([]byte, (f.rows+2)*f.stride), make([]byte, (f.rows+2)*f.stride)
	for _, cell := range start {
		if r, c := cell[0]-f.row, cell[1]-f.col; r >= 0 && r < f.rows && c >= 0 && c < f.cols {
			f.now[(r+1)*f.stride+c+1] = 1
		}
	}
	return f, f.prepare()
}

// share returns the i-th of n parts of a length.
func share(length, i, n int) (first, count int) {
	first = i * length / n
	return first, (i+1)*length/n - first
}

// prepare creates the two persistent exchanges.
func (f *field) prepare() error {
	// The ranks in this row of the grid exchange columns to the left and right.
	columns := func(c int) (*mpi.Layout[byte], error) { return f.block(1, c, f.rows, 1) }
	// The ranks in this column of the grid exchange rows up and down.
	rows := func(r int) (*mpi.Layout[byte], error) { return f.block(r, 0, 1, f.stride) }
	for i, k := range []struct {
		keep []bool
		line func(int) (*mpi.Layout[byte], error)
		last int // of the own lines; the ghosts are 0 and last+1
	}{{[]bool{false, true}, columns, f.cols}, {[]bool{true, false}, rows, f.rows}} {
		ring, err := f.grid.Sub(k.keep)
		if err != nil {
			return err
		}
		var lines [4]*mpi.Layout[byte]
		for j, at := range [...]int{1, k.last, 0, k.last + 1} {
			if lines[j], err = k.line(at); err != nil {
				return err
			}
		}
		f.ghosts[i] = mpi.NeighborAlltoallwInit(ring, f.now, lines[:2], f.now, lines[2:])
	}
	return nil
}

// block returns the layout of some cells of the block, ghost cells included.
func (f *field) block(row, col, rows, cols int) (*mpi.Layout[byte], error) {
	return mpi.Subarray[byte]([]int{f.rows + 2, f.stride}, []int{rows, cols}, []int{row, col})
}

// exchange fills the ghost cells: the columns first, because the rows include their
// ends.
func (f *field) exchange() error {
	for _, g := range f.ghosts {
		if _, err := g.Start().Wait(); err != nil {
			return err
		}
	}
	return nil
}

// step computes the next generation of the rank's own cells. They are copied back,
// because the persistent exchanges use fixed buffers.
func (f *field) step() {
	for r := 1; r <= f.rows; r++ {
		for c := 1; c <= f.cols; c++ {
			n := byte(0)
			for _, above := range [...]int{(r - 1) * f.stride, r * f.stride, (r + 1) * f.stride} {
				n += f.now[above+c-1] + f.now[above+c] + f.now[above+c+1]
			}
			// n counts the cell itself. A cell survives with two or three neighbors, and
			// is born with three.
			self := f.now[r*f.stride+c]
			f.next[r*f.stride+c] = 0
			if n == 3 || n == 4 && self == 1 {
				f.next[r*f.stride+c] = 1
			}
		}
	}
	copy(f.now, f.next)
}

func (f *field) alive() int {
	n := 0
	for r := 1; r <= f.rows; r++ {
		for c := 1; c <= f.cols; c++ {
			n += int(f.now[r*f.stride+c])
		}
	}
	return n
}
