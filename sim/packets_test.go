package sim

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

// TestPacketsOfEveryAlgorithm runs all algorithms with real machines: they end, and a
// message of a schedule is an EAGER or an RTS.
func TestPacketsOfEveryAlgorithm(t *testing.T) {
	machine := Default()
	machine.Cores = 3
	for _, nodes := range []*coll.Topology{nil, Layout(13, 4, 2)} {
		for _, a := range coll.Algorithms() {
			if a.Kind == coll.Neighbors {
				continue
			}
			for _, bytes := range []int{8, 80 << 10} {
				s := shape(a.Kind, 13, bytes, nodes)
				if ok, _ := coll.Applicable(&a, &s); !ok {
					continue
				}
				want := totals(t, &a, s)
				x := simulate(t, Config{Machine: machine, Packets: &Packets{}, Calls: []Call{{Algorithm: &a, Params: a.Default(), Shape: s}}})
				if got := x.packets("eager") + x.packets("rts"); got != int64(want.Messages) {
					t.Errorf("%s by %s, %d bytes: %+v, want %d messages", a.Kind, a.Name, bytes, x.Packets, want.Messages)
				}
				if x.First > x.Mean || x.Mean > x.Last || x.Last <= 0 || x.Peaks.Links == 0 {
					t.Errorf("%s by %s: first %v, mean %v, last %v, %+v", a.Kind, a.Name, x.First, x.Mean, x.Last, x.Peaks)
				}
			}
		}
	}
}

func (x *Result) packets(kind string) int64 {
	for _, p := range x.Packets {
		if p.Kind == kind {
			return p.Count
		}
	}
	return 0
}

// TestPacketsEqualThoseOfAJob compares the packets by kind with the counters of a job whose
// ranks are goroutines, the ones that muster run --profile prints.
func TestPacketsEqualThoseOfAJob(t *testing.T) {
	const ranks = 6
	kinds := map[string]bool{}
	for _, c := range []struct {
		kind       coll.Kind
		algorithms string
		start      func(c *mpi.Comm, n int) mpi.Request
	}{
		{coll.Barrier, "dissemination", func(c *mpi.Comm, _ int) mpi.Request { return c.Ibarrier() }},
		{coll.Bcast, "binomial chain", func(c *mpi.Comm, n int) mpi.Request { return mpi.Ibcast(c, make([]float64, n/8), 0) }},
		{coll.Allreduce, "recursive-doubling ring rabenseifner", func(c *mpi.Comm, n int) mpi.Request {
			return mpi.Iallreduce(c, make([]float64, n/8), make([]float64, n/8), mpi.Sum)
		}},
		{coll.Allgather, "bruck ring", func(c *mpi.Comm, n int) mpi.Request {
			return mpi.Iallgather(c, make([]float64, n/8), make([]float64, ranks*n/8))
		}},
		{coll.Alltoall, "pairwise bruck direct", func(c *mpi.Comm, n int) mpi.Request {
			return mpi.Ialltoall(c, make([]float64, ranks*n/8), make([]float64, ranks*n/8))
		}},
	} {
		for name := range strings.FieldsSeq(c.algorithms) {
			a := find(t, c.kind, name)
			for _, bytes := range []int{8, 24 << 10, 320 << 10} {
				want, attr := packetsOfJob(t, ranks, fmt.Sprintf("%s=%s", c.kind, name), func(comm *mpi.Comm) mpi.Request { return c.start(comm, bytes) })
				m := plain()
				m.Near.Device = &attr
				x := simulate(t, Config{Machine: m, Packets: &Packets{}, Calls: []Call{{Algorithm: a, Params: a.Default(), Shape: shape(c.kind, ranks, bytes, nil)}}})
				got := map[string]int64{}
				for _, p := range x.Packets {
					got[p.Kind] = p.Count
					kinds[p.Kind] = true
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s by %s, %d bytes: the simulation has packets %v, the job %v", c.kind, name, bytes, got, want)
				}
			}
		}
	}
	for _, kind := range []string{"eager", "rts", "fin"} {
		if !kinds[kind] {
			t.Errorf("no case has %s packets: %v", kind, kinds)
		}
	}
}

// packetsOfJob runs one call and returns the packets by kind of all ranks, and the device.
func packetsOfJob(t *testing.T, ranks int, algorithm string, start func(c *mpi.Comm) mpi.Request) (map[string]int64, rdma.Attr) {
	t.Helper()
	worlds, err := mpi.Local(ranks, &mpi.Config{Collective: algorithm})
	if err != nil {
		t.Fatal(err)
	}
	attr, _, err := inspect.Packets(worlds[0].Comm(), 1)
	if err != nil {
		t.Fatal(err)
	}
	sum := map[string]int64{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, w := range worlds {
		all.Go(func() {
			before := w.Profile()
			if _, err := start(w.Comm()).Wait(); err != nil {
				t.Error(err)
			}
			after := w.Profile()
			mu.Lock()
			defer mu.Unlock()
			for name, n := range after.Values {
				if kind, ok := strings.CutPrefix(string(name), string(prof.PacketsSent(""))); ok && n > before.Values[name] {
					sum[kind] += int64(n - before.Values[name])
				}
			}
		})
	}
	all.Wait()
	for _, w := range worlds {
		all.Go(func() {
			if err := w.Finalize(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return sum, attr
}
