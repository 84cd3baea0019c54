package bench

// The communication memory of a rank (P3). Every rank sends to every other, often enough
// to get an RDMA ring or a connection, and all ranks count before any leaves.

import (
	"fmt"
	"os"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

func memoryBenchmarks() []Benchmark {
	return []Benchmark{{Name: "memory", Title: "Communication Memory of a Rank", Doc: "memory, descriptors and connections of a rank after every rank has sent to every other; without -n for 2 to 64 ranks", Ranks: 2, AnyRanks: true,
		Metric: "memory", Unit: "KiB", Column: "most of any rank (KiB)", Run: memory, Devices: true,
		Variants: []string{"rd", "ud", "hybrid", "hybrid-rings", "rc", "rc-few"},
		Sweep:    &Sweep{Ranks: []int{2, 4, 8, 16, 32, 64}, Columns: []string{"memory (KiB)", "kernel (KiB)", "descriptors", "connections", "rings", "low-water"}}}}
}

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
	mine := c.World().Profile()
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
		{"receive-and-rings", "KiB", float64(mine.Values[prof.Name(rdma.MemoryReceive)]+mine.Values[prof.Name(rdma.MemoryRings)]) / 1024},
		{"memory-and-kernel", "KiB", float64(mine.Values[prof.MemoryTotal]+mine.Values[prof.MemoryKernel]) / 1024},
	}
	for _, name := range prof.MemoryParts() {
		figures = append(figures, memoryFigure{string(name), "KiB", float64(mine.Values[name]) / 1024})
	}
	for _, m := range figures {
		most, least := []float64{m.value}, []float64{m.value}
		if err := mpi.Allreduce(c, most, most, mpi.Max); err != nil {
			return err
		}
		if err := mpi.Allreduce(c, least, least, mpi.Min); err != nil {
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
	return c.Barrier()
}
