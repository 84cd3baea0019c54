package mpi

// Collectives that serve arrived ranks first, with ranks that arrive at random times, on
// one and on several hosts: every byte must be correct. The matrix tests the same
// algorithms with ranks that arrive together.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/prof"
)

func TestArrivalAwareWithLateRanks(t *testing.T) {
	layouts := []struct{ ranks, perHost int }{{2, 1}, {5, 2}, {9, 9}, {17, 4}}
	if testing.Short() {
		layouts = layouts[:3] // the last takes longer than the others together
	}
	for _, layout := range layouts {
		for _, form := range []string{"pap_direct", "pap_shm_direct"} {
			t.Run(fmt.Sprintf("%s/%d ranks, %d a host", form, layout.ranks, layout.perHost), func(t *testing.T) {
				runOnHosts(t, layout.ranks, layout.perHost, true, &wire{}, func(c *Comm) error {
					var want string
					for _, kind := range papKinds {
						want += fmt.Sprintf(",%s=%s", kind, form)
					}
					d, err := c.DupWithCollective(want[1:])
					if err != nil {
						return err
					}
					return errors.Join(lateCalls(d, form), d.Free())
				})
			})
		}
	}
}

// lateCalls makes all forms of calls with several lengths. In each, a rank arrives at
// once, a little later, or much later. All use one algorithm, except for alltoallv, whose
// lengths the node leaders do not know.
func lateCalls(c *Comm, by string) error {
	random := rand.New(rand.NewPCG(uint64(c.rank), 11))
	for _, n := range []int{1, 700, 9_000} { // the last by rendezvous on all devices
		for _, form := range lateForms() {
			call := newLateCall(c, form, n, n%c.size)
			for range 2 {
				switch random.IntN(4) { // ranks arrive at random times
				case 0:
					time.Sleep(time.Duration(random.IntN(2000)) * time.Microsecond)
				case 1:
					time.Sleep(time.Duration(random.IntN(100)) * time.Microsecond)
				}
				if err := call.run(); err != nil {
					return fmt.Errorf("%v of %d elements: %w", form, n, err)
				}
			}
			want := by
			if form.v && form.kind == coll.Alltoall {
				want = "pap_direct"
			}
			if got := c.plans.last[form.kind].by.Algorithm.Name; got != want {
				return fmt.Errorf("%v of %d elements went by %s, not by %s", form, n, got, want)
			}
		}
	}
	return nil
}

// TestArrivalAwareOvertakes checks that a rank whose port is used for a late peer serves
// arrived ones. The late ranks wait until that is done.
func TestArrivalAwareOvertakes(t *testing.T) {
	const ranks, n = 6, 20_000
	runOnHosts(t, ranks, 1, true, &wire{}, func(c *Comm) error {
		table, err := parseForced("alltoall=pap_direct:ports=1")
		if err != nil {
			return err
		}
		c.w.tuning = table
		in, out := make([]int64, n*ranks), make([]int64, n*ranks)
		for i := range in {
			in[i] = int64(c.rank*ranks + i/n)
		}
		var token [1]byte
		if c.rank == 1 || c.rank == 2 { // those whom rank 0 serves first
			if _, err := Recv(c, token[:], 0, 0); err != nil {
				return err
			}
		}
		r := Ialltoall(c, in, out)
		if c.rank == 0 {
			for overtaken := uint64(0); overtaken < 3; { // by the sends to 3, 4 and 5
				if _, done, err := r.Test(); done || err != nil {
					return fmt.Errorf("the alltoall has ended without ranks 1 and 2: %v", err)
				}
				overtaken = c.e.Overtaken()
			}
			for _, late := range []int{1, 2} {
				if err := Send(c, token[:], late, 0); err != nil {
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

// TestBecomesAware checks that direct alltoall and allgather become arrival-aware on each
// rank that waits for a late one, and that results stay correct meanwhile.
func TestBecomesAware(t *testing.T) {
	for _, form := range lateForms() {
		if testing.Short() && form.way != "" {
			continue
		}
		// All ways are the same to the two kinds.
		if form.kind == coll.Alltoall || form.kind == coll.Allgather && form.way == "" {
			t.Run(form.String(), func(t *testing.T) { becomesAware(t, form) })
		}
	}
}

func becomesAware(t *testing.T, form lateForm) {
	const ranks, calls = 5, 24
	late := 20 * time.Millisecond // the last rank's own
	var aware atomic.Int32
	runOnHosts(t, ranks, 1, true, &wire{}, func(c *Comm) error {
		table, err := parseForced("alltoall=direct:ports=1,allgather=direct:ports=1")
		if err != nil {
			return err
		}
		c.w.tuning = table // like a tuning table; Config.Collective would mean direct and nothing else
		call := newLateCall(c, form, 5_000, 0)
		for i := range calls {
			if form.v && form.way != "Init" { // each has lengths of its own
				call = newLateCall(c, form, 5_000+i, 0)
			}
			if c.rank == ranks-1 && i > 0 {
				time.Sleep(late) // real time, which the profile measures
			}
			began := time.Now()
			if err := call.run(); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
			if c.rank == ranks-1 && i == 0 {
				late = max(late, 4*time.Since(began)) // late is who comes later than a call takes here
			}
		}
		if counters := c.World().Profile(); counters.Of(prof.CollectivesAware) > 0 {
			aware.Add(1)
		}
		return nil
	})
	if aware.Load() == 0 {
		t.Errorf("no rank became aware in %d calls, though rank %d came %v late to each", calls, ranks-1, late)
	}
}

// TestNamedIsNotAdaptive checks that an explicitly named algorithm is used unchanged.
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

// TestNamedForADuplicateIsNotAdaptive checks the same for an algorithm named for one
// communicator.
func TestNamedForADuplicateIsNotAdaptive(t *testing.T) {
	runOnHosts(t, 4, 2, true, &wire{}, func(c *Comm) error {
		d, err := c.DupWithCollective("alltoall=direct:ports=1")
		if err != nil {
			return err
		}
		for _, v := range []bool{false, true} {
			if err := newLateCall(d, lateForm{kind: coll.Alltoall, v: v}, 20_000, 0).run(); err != nil {
				return err
			}
			if d.plans.last[coll.Alltoall].aware != nil {
				return fmt.Errorf("direct was named, but may become aware")
			}
		}
		return d.Free()
	})
}

// TestArrivalAwareWithADeadRank checks that receives with offered buffers are cancelled,
// and that every rank gets an error that names the failed rank.
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
			time.Sleep(5 * time.Millisecond) // most ranks are in the call by now; any order is correct
			failLocal(worlds, ranks-1, "stopped by the test")
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

// TestArrivalAwareWithGrants lets fewer bytes be under way to a rank than the others send it.
func TestArrivalAwareWithGrants(t *testing.T) {
	runOnHosts(t, 5, 2, true, &wire{}, func(c *Comm) error {
		d, err := c.DupWithCollective("alltoall=pap_direct,allgather=pap_direct")
		if err != nil {
			return err
		}
		d.co.Grant = 10_000
		for _, n := range []int{700, 2_000, 9_000} {
			for range 3 {
				if c.rank == 1 {
					time.Sleep(time.Millisecond)
				}
				in, out := make([]int32, n*c.size), make([]int32, n*c.size)
				for i := range in {
					in[i] = int32(c.rank*1000 + i/n)
				}
				if err := Alltoall(d, in, out); err != nil {
					return err
				}
				for i, v := range out {
					if want := int32(i/n*1000 + c.rank); v != want {
						return fmt.Errorf("element %d of %d is %d, want %d", i, n, v, want)
					}
				}
			}
		}
		announced := slices.ContainsFunc(c.World().Profile().Sizes, func(s prof.SizeClass) bool {
			return s.From <= 8000 && s.To >= 8000 && s.Protocol != "eager"
		})
		if !announced {
			return fmt.Errorf("no message of 8000 bytes was announced: %+v", c.World().Profile().Sizes)
		}
		return d.Free()
	})
}
