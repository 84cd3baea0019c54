package mpi

// Collectives that serve first who has arrived, with ranks that come at random
// times, over hosts and over one: every byte must be right, whoever is late. The
// matrix has the same algorithms with ranks that come together.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
)

// papKinds have arrival-aware forms.
var papKinds = []coll.Kind{coll.Alltoall, coll.Allgather, coll.Bcast, coll.Reduce, coll.Allreduce}

func TestArrivalAwareWithLateRanks(t *testing.T) {
	for _, place := range []struct{ ranks, perHost int }{{2, 1}, {5, 2}, {9, 9}, {17, 4}} {
		for _, form := range []string{"pap_direct", "pap_shm_direct"} {
			t.Run(fmt.Sprintf("%s/%d ranks, %d a host", form, place.ranks, place.perHost), func(t *testing.T) {
				runOnHosts(t, place.ranks, place.perHost, true, &wire{}, func(c *Comm) error {
					var want string
					for _, kind := range papKinds {
						want += fmt.Sprintf(",%s=%s", kind, form)
					}
					table, err := forced(want[1:])
					if err != nil {
						return err
					}
					c.w.tuning = table
					return lateCalls(c, 2)
				})
			})
		}
	}
}

// lateCalls makes all kinds of calls with several lengths. In each, a rank comes at
// once, a little later, or much later.
func lateCalls(c *Comm, rounds int) error {
	random := rand.New(rand.NewPCG(uint64(c.rank), 11))
	for round := range rounds {
		for _, n := range []int{1, 700, 9_000} { // the last by rendezvous on all devices
			for _, kind := range papKinds {
				switch random.IntN(4) {
				case 0:
					time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
				case 1:
					time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
				}
				if err := lateCall(c, kind, n, (round+n)%c.size); err != nil {
					return fmt.Errorf("%s of %d elements in round %d: %w", kind, n, round, err)
				}
			}
		}
	}
	return nil
}

// lateCall makes one call and compares what has come with its definition. Element i
// of what rank a gives for rank b is a function of the three.
func lateCall(c *Comm, kind coll.Kind, n, root int) error {
	item := func(a, b, i int) int64 { return int64(a)<<40 + int64(b)<<20 + int64(i) }
	fill := func(a, b int) []int64 {
		s := make([]int64, n)
		for i := range s {
			s[i] = item(a, b, i)
		}
		return s
	}
	var in, out, want []int64
	var err error
	switch kind {
	case coll.Alltoall:
		for r := range c.size {
			in, want = append(in, fill(c.rank, r)...), append(want, fill(r, c.rank)...)
		}
		out = make([]int64, n*c.size)
		err = Alltoall(c, in, out)
	case coll.Allgather:
		for r := range c.size {
			want = append(want, fill(r, 0)...)
		}
		out = make([]int64, n*c.size)
		err = Allgather(c, fill(c.rank, 0), out)
	case coll.Bcast:
		out, want = fill(c.rank, 0), fill(root, 0)
		err = Bcast(c, out, root)
	default:
		in, out, want = fill(c.rank, 0), make([]int64, n), make([]int64, n)
		for i := range want {
			want[i] = item(c.size*(c.size-1)/2, 0, i*c.size)
		}
		if kind == coll.Allreduce {
			err = Allreduce(c, in, out, Sum[int64]())
		} else {
			if err = Reduce(c, in, out, Sum[int64](), root); c.rank != root {
				want = out
			}
		}
	}
	if err != nil {
		return err
	}
	if !slices.Equal(out, want) {
		at := 0
		for out[at] == want[at] {
			at++
		}
		return fmt.Errorf("element %d is %#x, must be %#x", at, out[at], want[at])
	}
	return nil
}

// TestArrivalAwareOvertakes: a rank whose port is taken by a peer that does not come
// serves those who are there. The late ranks wait until that is done.
func TestArrivalAwareOvertakes(t *testing.T) {
	const ranks, n = 6, 20_000
	runOnHosts(t, ranks, 1, true, &wire{}, func(c *Comm) error {
		table, err := forced("alltoall=pap_direct:ports=1")
		if err != nil {
			return err
		}
		c.w.tuning = table
		in, out := make([]int64, n*ranks), make([]int64, n*ranks)
		for i := range in {
			in[i] = int64(c.rank*ranks + i/n)
		}
		var told [1]byte
		if c.rank == 1 || c.rank == 2 { // those whom rank 0 serves first
			if _, err := Recv(c, told[:], 0, 0); err != nil {
				return err
			}
		}
		r := Ialltoall(c, in, out)
		if c.rank == 0 {
			for overtaken := uint64(0); overtaken < 3; { // by the sends to 3, 4 and 5
				if _, done, err := r.Test(); done || err != nil {
					return fmt.Errorf("the alltoall has ended without ranks 1 and 2: %v", err)
				}
				c.e.Lock()
				overtaken = c.e.Overtaken()
				c.e.Unlock()
			}
			for _, late := range []int{1, 2} {
				if err := Send(c, told[:], late, 0); err != nil {
					return err
				}
			}
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		for i, v := range out {
			if v != int64(i/n*ranks+c.rank) {
				return fmt.Errorf("element %d is %d", i, v)
			}
		}
		return nil
	})
}

// TestBecomesAware: direct alltoall turns aware on ranks that wait for a late one,
// each for itself, and the results stay right while it does.
func TestBecomesAware(t *testing.T) {
	const ranks, calls = 5, 24
	late := 20 * time.Millisecond // the last rank's own
	var aware atomic.Int32
	runOnHosts(t, ranks, 1, true, &wire{}, func(c *Comm) error {
		table, err := forced("alltoall=direct:ports=1")
		if err != nil {
			return err
		}
		c.w.tuning = table // like a tuning table; Config.Collective would mean direct and nothing else
		for i := range calls {
			if c.rank == ranks-1 && i > 0 {
				time.Sleep(late)
			}
			began := time.Now()
			if err := lateCall(c, coll.Alltoall, 5_000, 0); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
			if c.rank == ranks-1 && i == 0 {
				late = max(late, 4*time.Since(began)) // late is who comes later than a call takes here
			}
		}
		f := c.plans.last[coll.Alltoall].aware
		if f == nil {
			return fmt.Errorf("the plan has no aware form")
		}
		if f.graph != nil {
			aware.Add(1)
		}
		return nil
	})
	if aware.Load() == 0 {
		t.Errorf("no rank became aware in %d calls, though rank %d came %v late to each", calls, ranks-1, late)
	}
}

// TestNamedIsNotAdaptive: who names an algorithm gets that one.
func TestNamedIsNotAdaptive(t *testing.T) {
	worlds, err := Local(6, &Config{Collective: "alltoall=direct:ports=1"})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, len(worlds))
	for _, w := range worlds {
		go func() {
			err := lateCall(w.Comm(), coll.Alltoall, 20_000, 0)
			if err == nil && w.Comm().plans.last[coll.Alltoall].aware != nil {
				err = fmt.Errorf("direct was named, but may become aware")
			}
			errs <- errors.Join(err, w.Finalize())
		}()
	}
	for range worlds {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestArrivalAwareWithADeadRank: receives that have offered their buffers are taken
// back, and every rank is told who is gone.
func TestArrivalAwareWithADeadRank(t *testing.T) {
	const ranks = 6
	for _, form := range []string{"pap_direct:ports=1", "pap_shm_direct"} {
		t.Run(form, func(t *testing.T) {
			worlds, err := Local(ranks, &Config{Collective: "alltoall=" + form})
			if err != nil {
				t.Fatal(err)
			}
			errs := make(chan error, ranks)
			for _, w := range worlds[:ranks-1] {
				go func() { errs <- lateCall(w.Comm(), coll.Alltoall, 9_000, 0) }()
			}
			time.Sleep(5 * time.Millisecond) // most are in the call by now; any order is right
			LeaveLocal(worlds, ranks-1, "it was told to")
			for range ranks - 1 {
				select {
				case err := <-errs:
					if !errors.Is(err, ErrProcAborted) {
						t.Errorf("a rank ends with %v, want an error that says that a rank is gone", err)
					}
				case <-time.After(60 * time.Second):
					t.Fatal("a rank still waits for the one that is gone")
				}
			}
		})
	}
}
