package bench

// The communication memory of a rank (P3). Every rank sends to every other, often enough
// to get an RDMA ring or a connection, and all ranks count before any leaves.

import (
	"fmt"
	"os"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

const memoryTag = 5

// memoryRounds is how often every rank sends to every other: enough to get a ring.
const memoryRounds = 100

// memory: communication memory of a rank after all have sent to all.
func memory(c *mpi.Comm, p *Params, emit func(Result)) error {
	rounds := p.Iterations
	if rounds == 0 {
		rounds = memoryRounds
	}
	if err := everybody(c, rounds); err != nil {
		return err
	}
	mine := mpi.Profile(c)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("bench: memory counts descriptors in /proc, which this system lacks: %w", err)
	}
	figures := []memoryFigure{
		{"memory", "KiB", float64(mine.Values[prof.MemoryTotal]) / 1024},
		{"kernel", "KiB", float64(mine.Values[prof.MemoryKernel]) / 1024},
		{"descriptors", "", float64(len(files))},
		{"connections", "", float64(mine.Values["connections.rc"])},
		{"rings", "", float64(mine.Values["peers.rings"])},
		{"low-water", "", float64(mine.Values["receive.low-water"])},
		{"memory-and-kernel", "KiB", float64(mine.Values[prof.MemoryTotal]+mine.Values[prof.MemoryKernel]) / 1024},
	}
	for _, name := range prof.MemoryParts() {
		figures = append(figures, memoryFigure{string(name), "KiB", float64(mine.Values[name]) / 1024})
	}
	for _, m := range figures {
		most, least := []float64{m.value}, []float64{m.value}
		if err := mpi.Allreduce(c, most, most, mpi.Max[float64]()); err != nil {
			return err
		}
		if err := mpi.Allreduce(c, least, least, mpi.Min[float64]()); err != nil {
			return err
		}
		r := Result{Metric: m.metric, Unit: m.unit, Value: most[0], Min: least[0], P50: most[0], P99: most[0]}
		r.Beside = m.metric != "memory"
		emit(r)
	}
	return nil
}

// memoryFigure is a figure of one rank.
type memoryFigure struct {
	metric, unit string
	value        float64
}

// everybody sends from every rank to every other: in round r to the rank r further on, so
// that no rank gets many messages at once.
func everybody(c *mpi.Comm, rounds int) error {
	size, me := c.Size(), c.Rank()
	out, in := make([]byte, 1<<10), make([]byte, 1<<10)
	for range rounds {
		for step := 1; step < size; step++ {
			if _, err := mpi.Sendrecv(c, out, (me+step)%size, memoryTag, in, (me-step+size)%size, memoryTag); err != nil {
				return err
			}
		}
	}
	return mpi.Barrier(c)
}

// multipair: each rank of the first half exchanges with one of the second, all at once.
func multipair(c *mpi.Comm, p *Params, emit func(Result)) error {
	half := c.Size() / 2
	if 2*half != c.Size() {
		return fmt.Errorf("bench: multipair wants an even number of ranks, not %d", c.Size())
	}
	// Rank 0 of each pair is in the first half.
	pair, err := c.Split(c.Rank()%half, c.Rank()/half)
	if err != nil {
		return err
	}
	defer pair.Free()
	for _, size := range p.Sizes {
		if err := mpi.Barrier(c); err != nil {
			return err
		}
		s, err := stream(pair, p, size, true)
		if err != nil {
			return err
		}
		// The pairs run concurrently, so the rates add up.
		mean := []float64{1 / s.mean(), 1 / s.quantile(1), 1 / s.quantile(.5), 1 / s.quantile(.01)}
		if pair.Rank() != 0 {
			clear(mean)
		}
		if err := mpi.Allreduce(c, mean, mean, mpi.Sum[float64]()); err != nil {
			return err
		}
		moved := 2 * float64(size*p.window())
		emit(Result{Size: size, Value: mean[0] * moved, Min: mean[1] * moved, P50: mean[2] * moved, P99: mean[3] * moved})
	}
	return nil
}
