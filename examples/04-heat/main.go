// Heat simulates the heat distribution of a metal plate, one side of which is kept hot.
//
// The plate is a grid of temperatures; in each step a point gets the mean of its four
// neighbors. Each rank owns a strip of columns. To compute the columns at its edges a
// rank needs those of its neighbors, so it keeps a copy of each: a ghost column on the
// left and one on the right. Before each step the ranks exchange them.
//
// The example shows two features. A column of a grid that is stored row by row is not
// contiguous; a Layout describes its elements. The first and the last rank have a
// neighbor on one side only; the other one is ProcNull, and sending to it does nothing,
// so that no rank is a special case.
//
//	muster run -n 4 ./heat
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const (
	rows    = 32
	columns = 60 // of the whole plate
	steps   = 500
	hot     = 100.0
)

func main() {
	mpi.Main(func(world *mpi.Comm) error { return run(world, os.Stdout) })
}

func run(world *mpi.Comm, out io.Writer) error {
	p, err := newPlate(world)
	if err != nil {
		return err
	}
	for range steps {
		if err := p.exchange(world); err != nil {
			return err
		}
		p.step()
	}
	mean, err := p.mean(world)
	if err != nil || world.Rank() != 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "after %d steps the mean temperature is %.6f\n", steps, mean)
	return err
}

// plate is a rank's strip: its own columns between two ghost columns.
type plate struct {
	width       int // of a row in memory: own columns + 2
	first       int // number of the first own column on the whole plate
	now, next   []float64
	column      *mpi.Layout[float64]
	left, right int // ranks
}

func newPlate(world *mpi.Comm) (*plate, error) {
	rank, size := world.Rank(), world.Size()
	first, end := rank*columns/size, (rank+1)*columns/size
	p := &plate{width: end - first + 2, first: first, left: rank - 1, right: rank + 1}
	if p.left < 0 {
		p.left = mpi.ProcNull
	}
	if p.right == size {
		p.right = mpi.ProcNull
	}
	p.now, p.next = make([]float64, rows*p.width), make([]float64, rows*p.width)
	for c := range p.width {
		p.now[c], p.next[c] = hot, hot // the first row is kept hot
	}
	var err error
	p.column, err = mpi.Vector[float64](rows, 1, p.width)
	return p, err
}

// exchange fills the ghost columns. The receives are posted first, so that the ranks do
// not deadlock.
func (p *plate) exchange(world *mpi.Comm) error {
	const toLeft, toRight = 1, 2
	last := p.width - 1
	err := mpi.WaitAll(
		mpi.IrecvLayout(world, p.now[0:], p.column, p.left, toRight),
		mpi.IrecvLayout(world, p.now[last:], p.column, p.right, toLeft),
		mpi.IsendLayout(world, p.now[1:], p.column, p.left, toLeft),
		mpi.IsendLayout(world, p.now[last-1:], p.column, p.right, toRight),
	)
	return err
}

// step computes the rank's own columns; the rim of the plate does not change.
func (p *plate) step() {
	for r := 1; r < rows-1; r++ {
		for c := 1; c < p.width-1; c++ {
			if at := p.first + c - 1; at == 0 || at == columns-1 {
				continue
			}
			i := r*p.width + c
			p.next[i] = (p.now[i-1] + p.now[i+1] + p.now[i-p.width] + p.now[i+p.width]) / 4
		}
	}
	p.now, p.next = p.next, p.now
}

func (p *plate) mean(world *mpi.Comm) (float64, error) {
	sum := []float64{0}
	for r := range rows {
		for c := 1; c < p.width-1; c++ {
			sum[0] += p.now[r*p.width+c]
		}
	}
	err := mpi.Allreduce(world, sum, sum, mpi.Sum)
	return sum[0] / (rows * columns), err
}
