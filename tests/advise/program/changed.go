package main

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// changed are the programs after the change that the advice suggests.
var changed = map[string]func(*mpi.Comm) error{
	"imbalance": runBalanced, "serial": serialChanged, "gather": gatherChanged, "burst": burstChanged, "wait": runOverlapped, "blocking": runOverlapped,
	"late": lateChanged, "placement": placement, "exchange": exchangeChanged, "scalars": scalarsChanged, "barrier": barrierChanged, "thirds": thirdsChanged,
}

// sumAfter computes and adds up.
func sumAfter(world *mpi.Comm, d time.Duration) error {
	sum := []float64{1}
	for range rounds {
		compute(d)
		if err := mpi.Allreduce(world, sum, sum, mpi.Max); err != nil {
			return err
		}
	}
	return nil
}

func runBalanced(world *mpi.Comm) error   { return sumAfter(world, 1750*time.Microsecond) }
func thirdsChanged(world *mpi.Comm) error { return sumAfter(world, 2250*time.Microsecond) }

func serialChanged(world *mpi.Comm) error {
	data := make([]byte, 256<<10)
	for range rounds {
		if err := mpi.Bcast(world, data, 0); err != nil {
			return err
		}
	}
	return nil
}

func gatherChanged(world *mpi.Comm) error {
	data, all := make([]byte, 256<<10), make([]byte, world.Size()*256<<10)
	for range rounds {
		if err := mpi.Gather(world, data, all, 0); err != nil {
			return err
		}
	}
	return nil
}

func burstChanged(world *mpi.Comm) error {
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

func runOverlapped(world *mpi.Comm) error {
	out, in := make([]byte, 4<<20), make([]byte, 4<<20)
	for range rounds {
		a, b := mpi.Irecv(world, in, neighbor(world), 0), mpi.Isend(world, out, neighbor(world), 0)
		compute(2 * time.Millisecond)
		if err := mpi.WaitAll(a, b); err != nil {
			return err
		}
	}
	return nil
}

func lateChanged(world *mpi.Comm) error {
	data := make([]byte, 1<<20)
	for range rounds {
		if world.Rank()%2 == 0 {
			if err := mpi.Send(world, data, neighbor(world), 0); err != nil {
				return err
			}
			continue
		}
		r := mpi.Irecv(world, data, neighbor(world), 0)
		compute(3 * time.Millisecond)
		if err := mpi.WaitAll(r); err != nil {
			return err
		}
	}
	return nil
}

func exchangeChanged(world *mpi.Comm) error {
	out, in := make([]byte, 64*world.Size()), make([]byte, 64*world.Size())
	for range 10 * rounds {
		if err := mpi.Alltoall(world, out, in); err != nil {
			return err
		}
	}
	return nil
}

func scalarsChanged(world *mpi.Comm) error {
	for range rounds {
		compute(time.Millisecond)
		sum := make([]float64, 100)
		if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}

func barrierChanged(world *mpi.Comm) error {
	sum := []float64{1}
	for range 10 * rounds {
		if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}
