// Heat simulates the heat distribution of a metal plate, one side of which is kept hot. It
// writes checkpoints, from which a later run continues, also with another number of ranks.
//
// The plate is a grid of temperatures; in each step a point gets the mean of its four
// neighbors. Each rank owns a strip of columns. To compute the columns at its edges a
// rank needs those of its neighbors, so it keeps a copy of each: a ghost column on the
// left and one on the right. Before each step the ranks exchange them. A column of a grid
// that is stored row by row is not contiguous; a Layout describes its elements.
//
//	muster run -n 4 ./heat -checkpoint plate.ckpt
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const (
	rows, columns = 32, 60 // of the whole plate
	steps, every  = 500, 100
	hot           = 100.0
)

func main() {
	file := flag.String("checkpoint", "", "file to continue from and to write every 100 steps; all hosts must share it")
	flag.Parse()
	mpi.Main(func(world *mpi.Comm) error { return run(world, *file, os.Stdout) })
}

func run(world *mpi.Comm, file string, out io.Writer) error {
	p, err := newPlate(world)
	if err == nil && file != "" {
		err = p.load(file)
	}
	for err == nil && p.done < steps {
		if err = p.step(); err == nil && file != "" && p.done%every == 0 {
			err = p.save(file)
		}
	}
	if err != nil {
		return err
	}
	sum := []float64{0}
	for r := range rows {
		for _, v := range p.own(r) {
			sum[0] += v
		}
	}
	if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil || world.Rank() != 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "after %d steps the mean temperature is %.6f\n", p.done, sum[0]/(rows*columns))
	return err
}

// plate is a rank's strip: its own columns between two ghost columns.
type plate struct {
	world        *mpi.Comm
	width, first int // of a row in memory: own columns + 2; number of the first own column
	done         int // steps
	now, next    []float64
	column       *mpi.Layout[float64]
	left, right  int // ranks
}

func newPlate(world *mpi.Comm) (p *plate, err error) {
	rank, size := world.Rank(), world.Size()
	first, end := rank*columns/size, (rank+1)*columns/size
	p = &plate{world: world, width: end - first + 2, first: first, left: rank - 1, right: rank + 1}
	if rank == 0 {
		p.left = mpi.ProcNull // sending to it does nothing, so no rank is a special case
	}
	if rank == size-1 {
		p.right = mpi.ProcNull
	}
	p.now, p.next = make([]float64, rows*p.width), make([]float64, rows*p.width)
	for c := range p.width {
		p.now[c], p.next[c] = hot, hot // the first row is kept hot
	}
	p.column, err = mpi.Vector[float64](rows, 1, p.width)
	return p, err
}

// step fills the ghost columns and computes the own ones; the rim of the plate does not change.
func (p *plate) step() error {
	const toLeft, toRight = 1, 2
	last := p.width - 1
	if err := mpi.WaitAll( // the receives are posted first, so that the ranks do not deadlock
		mpi.IrecvLayout(p.world, p.now[0:], p.column, p.left, toRight),
		mpi.IrecvLayout(p.world, p.now[last:], p.column, p.right, toLeft),
		mpi.IsendLayout(p.world, p.now[1:], p.column, p.left, toLeft),
		mpi.IsendLayout(p.world, p.now[last-1:], p.column, p.right, toRight),
	); err != nil {
		return err
	}
	for r := 1; r < rows-1; r++ {
		for c := max(1, 2-p.first); c < min(last, columns-p.first); c++ {
			i := r*p.width + c
			p.next[i] = (p.now[i-1] + p.now[i+1] + p.now[i-p.width] + p.now[i+p.width]) / 4
		}
	}
	p.now, p.next, p.done = p.next, p.now, p.done+1
	return nil
}

// own returns the rank's columns of a row, and at where they are in a checkpoint: behind the
// number of steps.
func (p *plate) own(row int) []float64 { return p.now[row*p.width+1 : (row+1)*p.width-1] }
func (p *plate) at(row int) int64      { return int64(8 * (1 + row*columns + p.first)) }

// save lets all ranks write their columns into a new file. It replaces the last one when it is
// complete, so that a failure leaves a checkpoint.
func (p *plate) save(file string) error {
	f, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE, 0o666)
	err = errors.Join(err, binary.Write(f, binary.LittleEndian, int64(p.done)))
	for r := 0; r < rows && err == nil; r++ {
		err = binary.Write(io.NewOffsetWriter(f, p.at(r)), binary.LittleEndian, p.own(r))
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = p.world.Barrier()
	}
	if err == nil && p.world.Rank() == 0 {
		err = os.Rename(file+".new", file)
	}
	return err
}

// load continues from a checkpoint, if there is one.
func (p *plate) load(file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for r := 0; r < rows && err == nil; r++ {
		_, err = binary.Decode(text[min(int(p.at(r)), len(text)):], binary.LittleEndian, p.own(r))
	}
	copy(p.next, p.now)
	if err == nil {
		p.done = int(binary.LittleEndian.Uint64(text))
	}
	return err
}
