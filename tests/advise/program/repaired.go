package main

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// repaired are the programs with what the advice suggests. That of placement is a flag of muster
// run.
var repaired = map[string]func(*mpi.Comm) error{
	"imbalance": balancedWork, "serial": broadcast, "gather": reduceAtRoot, "burst": oneMessage, "wait": computeMeanwhile, "blocking": computeMeanwhile,
	"late": postFirst, "placement": placement, "exchange": exchangeByAlltoall, "scalars": oneAllreduce, "barrier": noBarrier, "thirds": quarters,
	"columns": edges,
}

// balancedWork divides the work of imbalance among all ranks.
func balancedWork(world *mpi.Comm) error {
	sum := []float64{1}
	for range rounds {
		compute(time.Millisecond + 3*time.Millisecond/time.Duration(world.Size()))
		if err := mpi.Allreduce(world, sum, sum, mpi.Max); err != nil {
			return err
		}
	}
	return nil
}

func broadcast(world *mpi.Comm) error {
	data := make([]byte, 256<<10)
	for range rounds {
		if err := mpi.Bcast(world, data, 0); err != nil {
			return err
		}
	}
	return nil
}

func reduceAtRoot(world *mpi.Comm) error {
	data, sum := make([]float64, 32<<10), make([]float64, 32<<10)
	for range rounds {
		if err := mpi.Reduce(world, data, sum, mpi.Sum, 0); err != nil {
			return err
		}
	}
	return nil
}

func oneMessage(world *mpi.Comm) error {
	data := make([]float64, 1000)
	for range rounds {
		var err error
		switch world.Rank() {
		case 0:
			err = mpi.Send(world, data, 1, 0)
		case 1:
			_, err = mpi.Recv(world, data, 0, 0)
		}
		if err != nil {
			return err
		}
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	return nil
}

func computeMeanwhile(world *mpi.Comm) error {
	out, in := make([]byte, 1<<20), make([]byte, 1<<20)
	for range rounds {
		a, b := mpi.Irecv(world, in, opposite(world), 0), mpi.Isend(world, out, opposite(world), 0)
		compute(4 * time.Millisecond)
		if err := mpi.WaitAll(a, b); err != nil {
			return err
		}
	}
	return nil
}

func postFirst(world *mpi.Comm) error {
	data := make([]byte, 1<<20)
	for range rounds {
		if world.Rank()%2 == 0 {
			if err := mpi.Send(world, data, neighbor(world), 0); err != nil {
				return err
			}
			continue
		}
		received := mpi.Irecv(world, data, neighbor(world), 0)
		compute(3 * time.Millisecond)
		if _, err := received.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func exchangeByAlltoall(world *mpi.Comm) error {
	out, in := make([]byte, 64*world.Size()), make([]byte, 64*world.Size())
	for range 10 * rounds {
		if err := mpi.Alltoall(world, out, in); err != nil {
			return err
		}
	}
	return nil
}

func oneAllreduce(world *mpi.Comm) error {
	sums := make([]float64, 100)
	for range rounds {
		compute(time.Millisecond)
		if err := mpi.Allreduce(world, sums, sums, mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}

func noBarrier(world *mpi.Comm) error {
	sum := []float64{1}
	for range 10 * rounds {
		if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}

// quarters divides the work of thirds among four ranks.
func quarters(world *mpi.Comm) error {
	sum := []float64{1}
	for range rounds {
		if world.Rank() < 4 {
			compute(3 * 3 * time.Millisecond / 4)
		}
		if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}

// edges has the column that it sends in a slice of its own.
func edges(world *mpi.Comm) error {
	out, in := make([]float64, width), make([]float64, width)
	for range 10 * rounds {
		received := mpi.Irecv(world, in, neighbor(world), 0)
		if err := mpi.Send(world, out, neighbor(world), 0); err != nil {
			return err
		}
		if _, err := received.Wait(); err != nil {
			return err
		}
	}
	return nil
}
