// Program has programs with one problem each, for the test of muster advise, and some without.
// The call that the advice should name has the comment "here". With "repaired" after its name, a
// program has the change that the advice suggests.
package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const rounds = 30

var programs = map[string]func(*mpi.Comm) error{
	"imbalance": imbalance, "serial": serial, "gather": gather, "burst": burst, "wait": wait, "blocking": blocking,
	"late": late, "placement": placement, "balance": balance, "overlap": overlap, "work": computeAlone,
	"halo": halo, "exchange": exchange, "scalars": scalars, "barrier": barrier, "thirds": thirds,
	"oversubscribed": shareCores, "columns": columns,
}

func main() {
	if len(os.Args) > 2 && os.Args[2] == "repaired" {
		mpi.Main(repaired[os.Args[1]])
		return
	}
	mpi.Main(programs[os.Args[1]])
}

// compute stands for a computation. It needs no core, so that ranks do not wait for each other's.
func compute(d time.Duration) { time.Sleep(d) }

func imbalance(world *mpi.Comm) error {
	sum := []float64{1}
	for range rounds {
		compute(time.Millisecond)
		if world.Rank() == 2 {
			compute(3 * time.Millisecond)
		}
		if err := mpi.Allreduce(world, sum, sum, mpi.Max); err != nil { // here
			return err
		}
	}
	return nil
}

func serial(world *mpi.Comm) error {
	data := make([]byte, 256<<10)
	for range rounds {
		if world.Rank() == 0 {
			for r := 1; r < world.Size(); r++ {
				if err := mpi.Send(world, data, r, 0); err != nil { // here
					return err
				}
			}
		} else if _, err := mpi.Recv(world, data, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// gather adds up what all ranks have at rank 0.
func gather(world *mpi.Comm) error {
	data, sum := make([]float64, 32<<10), make([]float64, 32<<10)
	for range rounds {
		if world.Rank() != 0 {
			if err := mpi.Send(world, data, 0, 0); err != nil {
				return err
			}
			continue
		}
		for r := 1; r < world.Size(); r++ {
			if _, err := mpi.Recv(world, data, r, 0); err != nil { // here
				return err
			}
			for i := range sum {
				sum[i] += data[i]
			}
		}
	}
	return nil
}

func burst(world *mpi.Comm) error {
	data := []float64{1}
	for range rounds {
		for range 1000 {
			var err error
			switch world.Rank() {
			case 0:
				err = mpi.Send(world, data, 1, 0) // here
			case 1:
				_, err = mpi.Recv(world, data, 0, 0)
			}
			if err != nil {
				return err
			}
		}
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	return nil
}

// neighbor differs in the last bit.
func neighbor(world *mpi.Comm) int { return world.Rank() ^ 1 }

// opposite is the rank that is farthest away: on another host.
func opposite(world *mpi.Comm) int { return (world.Rank() + world.Size()/2) % world.Size() }

func wait(world *mpi.Comm) error {
	out, in := make([]byte, 1<<20), make([]byte, 1<<20)
	for range rounds {
		a, b := mpi.Irecv(world, in, opposite(world), 0), mpi.Isend(world, out, opposite(world), 0)
		if err := mpi.WaitAll(a, b); err != nil { // here
			return err
		}
		compute(4 * time.Millisecond)
	}
	return nil
}

func blocking(world *mpi.Comm) error {
	out, in := make([]byte, 1<<20), make([]byte, 1<<20)
	for range rounds {
		if _, err := mpi.Sendrecv(world, out, opposite(world), 0, in, opposite(world), 0); err != nil { // here
			return err
		}
		compute(4 * time.Millisecond)
	}
	return nil
}

func late(world *mpi.Comm) error {
	data := make([]byte, 1<<20)
	for range rounds {
		var err error
		if world.Rank()%2 == 0 {
			err = mpi.Send(world, data, neighbor(world), 0)
		} else {
			compute(3 * time.Millisecond)
			_, err = mpi.Recv(world, data, neighbor(world), 0) // here
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// placement exchanges with a rank on another host.
func placement(world *mpi.Comm) error {
	out, in := make([]byte, 64<<10), make([]byte, 64<<10)
	far := opposite(world)
	for range rounds {
		if _, err := mpi.Sendrecv(world, out, far, 0, in, far, 0); err != nil {
			return err
		}
	}
	return nil
}

func balance(world *mpi.Comm) error {
	sum := []float64{1}
	for range rounds {
		compute(5 * time.Millisecond)
		if err := mpi.Allreduce(world, sum, sum, mpi.Max); err != nil {
			return err
		}
	}
	return nil
}

func overlap(world *mpi.Comm) error {
	out, in := make([]byte, 64<<10), make([]byte, 64<<10)
	for range rounds {
		a, b := mpi.Irecv(world, in, neighbor(world), 0), mpi.Isend(world, out, neighbor(world), 0)
		compute(5 * time.Millisecond)
		if err := mpi.WaitAll(a, b); err != nil {
			return err
		}
	}
	return nil
}

func computeAlone(world *mpi.Comm) error {
	compute(100 * time.Millisecond)
	return world.Barrier()
}

// halo exchanges with the neighbors in a grid of 4 × 4, whose neighbors are on different hosts if
// each four ranks in a row share one. Rank 0 prints the bytes that go from host to host.
func halo(world *mpi.Comm) error {
	const width, length = 4, 32 << 10
	if world.Size() != width*width {
		return errors.New("halo needs 16 ranks")
	}
	rankAt := make([]int, width*width) // by cell in the grid
	var onHost [width]int
	for cell := range rankAt {
		host := (cell%width + 2*(cell/width)) % width
		rankAt[cell] = host*width + onHost[host]
		onHost[host]++
	}
	cell := slices.Index(rankAt, world.Rank())
	var neighbors []int
	for _, to := range []struct{ x, y int }{{-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
		if x, y := cell%width+to.x, cell/width+to.y; x >= 0 && x < width && y >= 0 && y < width {
			neighbors = append(neighbors, rankAt[y*width+x])
		}
	}
	hosts, err := hostsOf(world)
	if err != nil {
		return err
	}
	far, in, out := []int64{0}, make([]byte, len(neighbors)*length), make([]byte, length)
	for range rounds {
		var started []mpi.Request
		for i, n := range neighbors {
			started = append(started, mpi.Irecv(world, in[i*length:(i+1)*length], n, 0), mpi.Isend(world, out, n, 0))
			if hosts[n] != hosts[world.Rank()] {
				far[0] += length
			}
		}
		if err := mpi.WaitAll(started...); err != nil {
			return err
		}
	}
	if err := mpi.Allreduce(world, far, far, mpi.Sum); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Println(far[0])
	}
	return nil
}

// hostsOf returns the name of the host of each rank, by a hash.
func hostsOf(world *mpi.Comm) ([]uint32, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	h := fnv.New32()
	h.Write([]byte(name))
	all := make([]uint32, world.Size())
	return all, mpi.Allgather(world, []uint32{h.Sum32()}, all)
}

// exchange sends each other rank a short message.
func exchange(world *mpi.Comm) error {
	out, in, n := make([]byte, 64), make([]byte, 64), world.Size()
	for range 10 * rounds {
		for step := 1; step < n; step++ {
			to, from := (world.Rank()+step)%n, (world.Rank()+n-step)%n
			if _, err := mpi.Sendrecv(world, out, to, 0, in, from, 0); err != nil { // here
				return err
			}
		}
	}
	return nil
}

// scalars adds up numbers one by one.
func scalars(world *mpi.Comm) error {
	for range rounds {
		compute(time.Millisecond)
		for range 100 {
			sum := []float64{1}
			if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil { // here
				return err
			}
		}
	}
	return nil
}

// barrier synchronizes before a call that does so itself.
func barrier(world *mpi.Comm) error {
	sum := []float64{1}
	for range 10 * rounds {
		if err := world.Barrier(); err != nil { // here
			return err
		}
		if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}

// thirds divides its work into three parts.
func thirds(world *mpi.Comm) error {
	sum := []float64{1}
	for range rounds {
		if world.Rank() < 3 {
			compute(3 * time.Millisecond)
		}
		if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil { // here
			return err
		}
	}
	return nil
}

// shareCores computes on a core, with little communication.
func shareCores(world *mpi.Comm) error {
	data, sum := make([]byte, 1<<20), []uint64{0}
	h := fnv.New64()
	for range rounds {
		for range 4 {
			h.Write(data)
		}
		sum[0] = h.Sum64()
		if err := mpi.Allreduce(world, sum, sum, mpi.Max); err != nil { // here
			return err
		}
	}
	return nil
}

// The matrix of which columns exchanges a column.
const width = 1024

// columns exchanges columns of a matrix with a neighbor.
func columns(world *mpi.Comm) error {
	matrix, edge := make([]float64, width*width), make([]float64, width)
	column, err := mpi.Vector[float64](width, 1, width)
	if err != nil {
		return err
	}
	for range 10 * rounds {
		received := mpi.Irecv(world, edge, neighbor(world), 0)
		if err := mpi.SendLayout(world, matrix, column, neighbor(world), 0); err != nil { // here
			return err
		}
		if _, err := received.Wait(); err != nil {
			return err
		}
	}
	return nil
}
