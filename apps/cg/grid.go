package cg

import (
	"errors"
	"math/bits"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// span is a range of rows or columns, without its end.
type span struct{ first, end int }

func (s span) len() int         { return s.end - s.first }
func (s span) has(i int32) bool { return int(i) >= s.first && int(i) < s.end }

// grid is the rank's part of the distribution. The grid is square, or has twice as many
// columns as rows; then two columns of ranks have the halves of the block that one would
// have in a square grid.
type grid struct {
	clock npb.Clock
	rows  span // of the matrix, in this rank's block
	cols  span
	half  []int // lengths of the halves of a block of rows; one, in a square grid

	c         *mpi.Comm
	row       *mpi.Comm // the ranks of the same row
	pair      *mpi.Comm // two ranks that share a block of rows; one rank, in a square grid
	same      *mpi.Comm // those of the row that have the same half
	transpose int       // the rank that has the result of this rank's columns

	w      []float64 // result of the rank's block: elements of its rows
	part   []float64 // their sum over the row, as far as the transpose rank needs it
	number []float64
}

func newGrid(c *mpi.Comm, n int) (*grid, error) {
	if err := npb.CheckPowerOfTwo(c.Size()); err != nil {
		return nil, err
	}
	down, across := shape(c.Size())
	halves := across / down
	r, col := c.Rank()/across, c.Rank()%across

	g := &grid{c: c, rows: block(n, down, r), half: make([]int, halves), number: make([]float64, 2)}
	for i := range g.half {
		g.half[i] = halfOf(g.rows, halves, i).len()
	}
	// The columns of the rank are the rows of its transpose, or one half of them.
	g.cols = halfOf(block(n, down, col/halves), halves, col%halves)
	g.transpose = col/halves*across + r*halves + col%halves
	g.w = make([]float64, g.rows.len())
	g.part = g.w
	if halves > 1 {
		g.part = make([]float64, g.half[col%halves])
	}
	var err error
	if g.row, err = c.Split(r, col); err != nil {
		return nil, err
	}
	if g.pair, err = g.row.Split(col/halves, col); err != nil {
		return nil, err
	}
	g.same, err = g.row.Split(col%halves, col)
	return g, err
}

// shape returns the rows and the columns of the grid for a power of two.
func shape(ranks int) (down, across int) {
	log2 := bits.Len(uint(ranks)) - 1
	down = 1 << (log2 / 2)
	return down, ranks / down
}

// block returns part i of n rows in parts of nearly equal length.
func block(n, parts, i int) span { return span{n * i / parts, n * (i + 1) / parts} }

func halfOf(s span, halves, i int) span {
	b := block(s.len(), halves, i)
	return span{s.first + b.first, s.first + b.end}
}

// free releases the communicators.
func (g *grid) free() error { return errors.Join(g.same.Free(), g.pair.Free(), g.row.Free()) }

// reduce adds up w over the ranks of a row and stores the elements that belong to this
// rank's columns in out. Ranks that share a block need one half of the sum each, so they
// exchange halves first, and all further messages are half as long.
func (g *grid) reduce(out []float64) error {
	g.clock.EnterMPI()
	defer g.clock.LeaveMPI()
	if len(g.half) > 1 {
		if err := mpi.ReduceScatter(g.pair, g.w, g.part, g.half, mpi.Sum); err != nil {
			return err
		}
	}
	if g.same.Size() > 1 {
		if err := mpi.Allreduce(g.same, g.part, g.part, mpi.Sum); err != nil {
			return err
		}
	}
	if g.transpose == g.c.Rank() {
		copy(out, g.part)
		return nil
	}
	_, err := mpi.Sendrecv(g.c, g.part, g.transpose, 0, out, g.transpose, 0)
	return err
}

// sum adds up a number over the ranks of a row, which together have a whole vector.
func (g *grid) sum(v float64) (float64, error) {
	g.number[0] = v
	err := g.reduceNumbers(g.number[:1])
	return g.number[0], err
}

func (g *grid) sum2(v, w float64) (float64, float64, error) {
	g.number[0], g.number[1] = v, w
	err := g.reduceNumbers(g.number)
	return g.number[0], g.number[1], err
}

func (g *grid) reduceNumbers(v []float64) error {
	g.clock.EnterMPI()
	defer g.clock.LeaveMPI()
	return mpi.Allreduce(g.row, v, v, mpi.Sum)
}
