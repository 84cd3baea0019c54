// Parameter-server fits a line in many dimensions by asynchronous gradient descent. The
// parameters are in windows, a shard in the memory of each rank. A worker reads all shards,
// computes a step from some of its samples, and adds the step to the shards: no rank waits
// for another, and a slow one delays nobody.
//
// The accesses are atomic for each element: GetAccumulate with NoOp reads, and Accumulate with
// Sum adds, also when several workers do so at once.
//
// Compare 08-training, where all ranks make each step together.
//
//	muster run -n 4 ./parameter-server
package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const (
	dimensions = 40
	batches    = 2000 // of all ranks together
	batch      = 32
	rate       = 0.02
)

func main() {
	mpi.Main(func(world *mpi.Comm) error {
		_, err := run(world, os.Stdout)
		return err
	})
}

// run returns how far the parameters are from the right ones.
func run(world *mpi.Comm, out io.Writer) (far float64, err error) {
	shards, err := mpi.AllocateWin[float64](world, shardEnd(world, world.Rank())-shardEnd(world, world.Rank()-1))
	if err != nil {
		return 0, err
	}
	w := &worker{world: world, shards: shards, parameters: make([]float64, dimensions), step: make([]float64, dimensions)}
	// Shared locks on all windows for the whole time: the accesses are atomic.
	if err := shards.LockAll(); err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(uint64(world.Rank()), 1))
	for n := world.Rank(); n < batches; n += world.Size() {
		if err := w.work(random); err != nil {
			return 0, err
		}
	}
	if err := world.Barrier(); err != nil { // all steps are added
		return 0, err
	}
	if err := w.read(); err != nil {
		return 0, err
	}
	for i, p := range w.parameters {
		far = max(far, math.Abs(p-right(i)))
	}
	if err := shards.UnlockAll(); err != nil {
		return 0, err
	}
	if world.Rank() == 0 {
		fmt.Fprintf(out, "after %d batches the %d parameters are within %.3f of the right ones\n", batches, dimensions, far)
	}
	return far, shards.Free()
}

// shardEnd is the first parameter that is not in the shards of the ranks up to r.
func shardEnd(world *mpi.Comm, r int) int { return (r + 1) * dimensions / world.Size() }

// right is the parameter that the workers have to find.
func right(i int) float64 { return math.Cos(float64(i)) }

type worker struct {
	world            *mpi.Comm
	shards           *mpi.Win[float64]
	parameters, step []float64
}

// eachShard calls a function with the part of all parameters that a rank has, and flushes.
func (w *worker) eachShard(access func(rank, begin, end int) error) error {
	for r := range w.world.Size() {
		if err := access(r, shardEnd(w.world, r-1), shardEnd(w.world, r)); err != nil {
			return err
		}
	}
	return w.shards.FlushAll()
}

func (w *worker) read() error {
	return w.eachShard(func(rank, begin, end int) error {
		return w.shards.GetAccumulate(nil, w.parameters[begin:end], rank, 0, mpi.NoOp)
	})
}

// work makes a step for a batch of samples: the mean of the gradients of (p·x - y)²/2.
func (w *worker) work(random *rand.Rand) error {
	if err := w.read(); err != nil {
		return err
	}
	clear(w.step)
	x := make([]float64, dimensions)
	for range batch {
		wrong := 0.1 * random.NormFloat64() // the noise of y
		for i := range x {
			x[i] = random.NormFloat64()
			wrong += (w.parameters[i] - right(i)) * x[i]
		}
		for i := range x {
			w.step[i] -= rate * wrong * x[i] / batch
		}
	}
	return w.eachShard(func(rank, begin, end int) error {
		return w.shards.Accumulate(w.step[begin:end], rank, 0, mpi.Sum)
	})
}
