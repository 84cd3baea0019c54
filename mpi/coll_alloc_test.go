package mpi_test

// In the steady state, collectives allocate nothing: neither persistent ones, nor
// blocking ones that have been called before with the same shape.

import (
	"maps"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// byMessages keeps small collectives out of shared memory.
const byMessages = "barrier=dissemination,bcast=binomial,gather=binomial,scatter=binomial,allgather=ring,alltoall=pairwise," +
	"reduce=binomial,allreduce=recursive-doubling,reduce-scatter=pairwise,scan=recursive-doubling,exscan=recursive-doubling"

// byArrival serves arrived ranks first, where there is such an algorithm.
const byArrival = "bcast=pap_direct,allgather=pap_shm_direct,alltoall=pap_direct,reduce=pap_shm_direct,allreduce=pap_direct"

func TestCollectivesAllocateNothing(t *testing.T) {
	unchecked(t)
	if race.Enabled {
		t.Skip("the race detector makes this slow, and allocates itself")
	}
	for name, cfg := range map[string]*mpi.Config{"messages": {Collective: byMessages}, "arrival": {Collective: byArrival}, "default": nil} {
		t.Run(name, func(t *testing.T) {
			mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
				for _, n := range []int{1, 1 << 10, 1 << 17} {
					rounds := 250
					if n > 1<<16 {
						rounds = 150 // a window of ten calls is too short to tell the runtime's allocations from ours
					}
					collectivesAllocateNothing(t, c, n, rounds)
				}
			})
		})
	}
}

func collectivesAllocateNothing(t *testing.T, c *mpi.Comm, n, rounds int) {
	in, out := make([]float64, n), make([]float64, n)
	wide, wide2 := make([]float64, n*c.Size()), make([]float64, n*c.Size())
	counts := []int{n, n}
	sum := mpi.Sum[float64]
	calls := map[string]func() error{
		"Barrier":            c.Barrier,
		"Bcast":              func() error { return mpi.Bcast(c, in, 0) },
		"Gather":             func() error { return mpi.Gather(c, in, wide, 1) },
		"Scatter":            func() error { return mpi.Scatter(c, wide, out, 1) },
		"Allgather":          func() error { return mpi.Allgather(c, in, wide) },
		"Allgatherv":         func() error { return mpi.Allgatherv(c, in, wide, counts, nil) },
		"Alltoall":           func() error { return mpi.Alltoall(c, wide, wide2) },
		"Alltoallv":          func() error { return mpi.Alltoallv(c, wide, counts, nil, wide2, counts, nil) },
		"Reduce":             func() error { return mpi.Reduce(c, in, out, sum, 0) },
		"Allreduce":          func() error { return mpi.Allreduce(c, in, out, mpi.Sum) },
		"Allreduce in place": func() error { return mpi.Allreduce(c, nil, out, mpi.Max) },
		"ReduceScatterBlock": func() error { return mpi.ReduceScatterBlock(c, wide, out, sum) },
		"Scan":               func() error { return mpi.Scan(c, in, out, sum) },
	}
	for _, name := range sortedNames(calls) {
		mallocs(t, c, name, 8*n, rounds, func([]byte) {
			if err := calls[name](); err != nil {
				t.Fatal(err)
			}
		})
	}
	ps := []*mpi.Persistent{
		c.BarrierInit(), mpi.BcastInit(c, in, 1), mpi.AllgatherInit(c, in, wide), mpi.AlltoallInit(c, wide, wide2),
		mpi.AllreduceInit(c, in, out, mpi.Sum), mpi.AlltoallvInit(c, wide, counts, nil, wide2, counts, nil),
	}
	reqs := make([]mpi.Request, 0, len(ps))
	mallocs(t, c, "persistent collectives", 8*n, rounds, func([]byte) {
		for _, p := range ps { // their buffers overlap, so one after the other
			reqs = append(reqs[:0], p.Start())
			if err := mpi.WaitAll(reqs...); err != nil {
				t.Fatal(err)
			}
		}
	})
	mallocs(t, c, "Iallreduce and Wait", 8*n, rounds, func([]byte) {
		if _, err := mpi.Iallreduce(c, in, out, mpi.Sum).Wait(); err != nil {
			t.Fatal(err)
		}
	})
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
