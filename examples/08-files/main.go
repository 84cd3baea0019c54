// Files simulates the heat distribution of a metal plate, as 04-heat does, and saves the plate in a
// file from time to time. A later job continues from the file, with any number of ranks.
//
// The plate is a grid that is cut into blocks, one for each rank of a two-dimensional arrangement. The rows of a
// block are not contiguous in the file; a view selects them, and all ranks write their blocks in one call.
// The file has the number of the step first, which is written last: a job that is interrupted while it
// writes leaves the other of two files.
//
//	muster run -n 4 ./files plate
//	muster run -n 6 ./files plate
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const (
	side  = 48 // of the plate
	steps = 200
	every = 50 // steps between two files
	hot   = 100.0
)

func main() {
	mpi.Main(func(world *mpi.Comm) error {
		if len(os.Args) != 2 {
			return fmt.Errorf("usage: files FILE")
		}
		return run(world, os.Args[1], os.Stdout)
	})
}

func run(world *mpi.Comm, name string, out io.Writer) error {
	p, err := newPlate(world)
	if err != nil {
		return err
	}
	if err := p.restore(name); err != nil {
		return err
	}
	first := p.done
	for p.done < first+steps {
		if err := p.step(); err != nil {
			return err
		}
		if p.done++; p.done%every == 0 {
			if err := p.save(name); err != nil {
				return err
			}
		}
	}
	sum := []float64{0}
	for r := 1; r <= p.rows; r++ {
		for _, v := range p.row(p.now, r)[1 : 1+p.cols] {
			sum[0] += v
		}
	}
	if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil || world.Rank() != 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "steps %d to %d: the mean temperature is %.6f\n", first, p.done, sum[0]/(side*side))
	return err
}

// plate is the block of a rank, with a row or column of its neighbors on each side.
type plate struct {
	grid        *mpi.Cart
	rows, cols  int // of the block
	top, left   int // its offset on the plate
	now, next   []float64
	done        int // steps
	block, edge *mpi.Layout[float64]
}

func newPlate(world *mpi.Comm) (*plate, error) {
	dims, err := mpi.DimsCreate(world.Size(), []int{0, 0})
	if err != nil {
		return nil, err
	}
	grid, err := world.CartCreate(dims, []bool{false, false}, nil)
	if err != nil {
		return nil, err
	}
	at := grid.MyCoords()
	p := &plate{grid: grid, top: at[0] * side / dims[0], left: at[1] * side / dims[1]}
	p.rows, p.cols = (at[0]+1)*side/dims[0]-p.top, (at[1]+1)*side/dims[1]-p.left
	p.now, p.next = make([]float64, (p.rows+2)*(p.cols+2)), make([]float64, (p.rows+2)*(p.cols+2))
	if p.block, err = mpi.Subarray[float64]([]int{side, side}, []int{p.rows, p.cols}, []int{p.top, p.left}); err != nil {
		return nil, err
	}
	p.edge, err = mpi.Vector[float64](p.rows, 1, p.cols+2)
	if at[0] == 0 { // above the plate it is hot
		for i := range p.row(p.now, 0) {
			p.now[i], p.next[i] = hot, hot
		}
	}
	return p, err
}

func (p *plate) row(of []float64, r int) []float64 { return of[r*(p.cols+2) : (r+1)*(p.cols+2)] }

// step exchanges the edges of the blocks, and computes each point as the mean of its neighbors.
func (p *plate) step() error {
	up, down, err := p.grid.Shift(0, 1)
	if err != nil {
		return err
	}
	left, right, err := p.grid.Shift(1, 1)
	if err != nil {
		return err
	}
	w := p.cols + 2
	err = mpi.WaitAll(
		mpi.Irecv(p.grid.Comm, p.row(p.now, 0), up, 0), mpi.Irecv(p.grid.Comm, p.row(p.now, p.rows+1), down, 1),
		mpi.Isend(p.grid.Comm, p.row(p.now, p.rows), down, 0), mpi.Isend(p.grid.Comm, p.row(p.now, 1), up, 1),
		mpi.IrecvLayout(p.grid.Comm, p.now[w:], p.edge, left, 2), mpi.IrecvLayout(p.grid.Comm, p.now[2*w-1:], p.edge, right, 3),
		mpi.IsendLayout(p.grid.Comm, p.now[2*w-2:], p.edge, right, 2), mpi.IsendLayout(p.grid.Comm, p.now[w+1:], p.edge, left, 3),
	)
	for r := 1; r <= p.rows; r++ {
		for c := 1; c <= p.cols; c++ {
			i := r*w + c
			p.next[i] = (p.now[i-1] + p.now[i+1] + p.now[i-w] + p.now[i+w]) / 4
		}
	}
	p.now, p.next = p.next, p.now
	return err
}

// inner returns the points of the block, without those of neighbors.
func (p *plate) inner() (points []float64) {
	for r := 1; r <= p.rows; r++ {
		points = append(points, p.row(p.now, r)[1:1+p.cols]...)
	}
	return points
}

// save writes the plate to one of two files, alternating.
func (p *plate) save(name string) error {
	f, err := p.grid.OpenFile(fmt.Sprint(name, ".", p.done/every%2), os.O_RDWR|os.O_CREATE, mpi.FileHints{})
	if err != nil {
		return err
	}
	steps, points, err := p.views(f)
	if err != nil {
		return err
	}
	if _, err = points.WriteAll(p.inner()); err != nil {
		return err
	}
	if err = f.Sync(); err != nil { // the points are in the file before their number
		return err
	}
	if p.grid.Rank() == 0 {
		if _, err = steps.Write([]int64{int64(p.done)}); err != nil {
			return err
		}
	}
	return f.Close()
}

// views returns the two parts of a file.
func (p *plate) views(f *mpi.File) (steps *mpi.FileView[int64], points *mpi.FileView[float64], err error) {
	if steps, err = mpi.OpenView[int64](f, 0, nil); err != nil {
		return nil, nil, err
	}
	points, err = mpi.OpenView(f, 8, p.block)
	return steps, points, err
}

// restore reads the file that was written last, if there is one.
func (p *plate) restore(name string) error {
	for _, half := range []string{".0", ".1"} {
		f, err := p.grid.OpenFile(name+half, os.O_RDONLY, mpi.FileHints{})
		if err != nil {
			continue // on all ranks
		}
		steps, points, err := p.views(f)
		if err != nil {
			return err
		}
		done := []int64{0}
		if _, err = steps.ReadAll(done); err != nil && err != io.EOF {
			return err
		}
		if int(done[0]) > p.done {
			block := make([]float64, p.rows*p.cols)
			if _, err = points.ReadAll(block); err != nil {
				return err
			}
			for r := range p.rows {
				copy(p.row(p.now, r+1)[1:], block[r*p.cols:(r+1)*p.cols])
			}
			p.done = int(done[0])
		}
		if err = f.Close(); err != nil {
			return err
		}
	}
	return nil
}
