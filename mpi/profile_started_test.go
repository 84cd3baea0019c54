package mpi_test

// Arrivals at nonblocking collectives: a rank arrives when it starts the call and leaves
// when it observes the completion.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// startedCalls are ways to start a collective and to observe its completion.
type startedCalls struct {
	sum, sums     []float64
	blocks, other []int32
	rows          []*mpi.Layout[int32]
	alltoall      *mpi.Persistent
	packed        *mpi.Persistent
	barriers      [2]*mpi.Persistent
}

func prepareCalls(c *mpi.Comm) (*startedCalls, error) {
	n := c.Size()
	s := &startedCalls{sum: make([]float64, 128), sums: make([]float64, 128), blocks: make([]int32, 3*n), other: make([]int32, 3*n)}
	for r := range n {
		l, err := mpi.Indexed[int32]([]int{3}, []int{3 * r})
		if err != nil {
			return nil, err
		}
		s.rows = append(s.rows, l)
	}
	s.alltoall = mpi.AlltoallInit(c, s.blocks, s.other)
	s.packed = mpi.AlltoallwInit(c, s.blocks, s.rows, s.other, s.rows)
	s.barriers = [2]*mpi.Persistent{c.BarrierInit(), c.BarrierInit()}
	return s, nil
}

// round makes each of the calls once.
func (s *startedCalls) round(c *mpi.Comm) error {
	if _, err := mpi.Ialltoall(c, s.blocks, s.other).Wait(); err != nil {
		return err
	}
	sums := mpi.Iallreduce(c, s.sum, s.sums, mpi.Sum)
	for {
		_, done, err := sums.Test()
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	r := mpi.Ialltoallw(c, s.blocks, s.rows, s.other, s.rows)
	if _, err := r.WaitContext(gone); err != nil { // it gave up, and was not found over
		if _, err := r.Wait(); err != nil {
			return err
		}
	}
	reqs := mpi.StartAll([]*mpi.Persistent{s.alltoall}, nil)
	if err := mpi.WaitAll(reqs...); err != nil {
		return err
	}
	reqs = []mpi.Request{{}, s.packed.Start()}
	if _, _, err := mpi.WaitAny(reqs...); err != nil {
		return err
	}
	// Started in another order on every other rank: each is a separate call.
	first := c.Rank() % 2
	reqs = []mpi.Request{s.barriers[first].Start(), s.barriers[1-first].Start()}
	err := mpi.WaitAll(reqs...)
	return err
}

func TestArrivalsOfCallsThatDoNotWait(t *testing.T) {
	const ranks, calls, away = 4, 8, 20 * time.Millisecond
	all := arrivalsOf(t, ranks, func(c *mpi.Comm) error {
		s, err := prepareCalls(c)
		if err != nil {
			return err
		}
		for range calls {
			if err := lateRank(c, away); err != nil {
				return err
			}
			if err := s.round(c); err != nil {
				return err
			}
		}
		_ = c.Ibarrier() // nobody sees its end
		return c.Barrier()
	})
	if all.Lost != 0 {
		t.Errorf("%d records were lost", all.Lost)
	}
	found := map[string]prof.SiteArrivals{}
	for _, s := range all.Sites() {
		if old, twice := found[s.Routine]; twice {
			s.Calls += old.Calls
		}
		found[s.Routine] = s
	}
	for routine, bytes := range map[string]float64{"Ialltoall": 12, "Iallreduce": 1024, "Ialltoallw": 0, "AlltoallInit": 12, "AlltoallwInit": 0, "BarrierInit": 0} {
		want := calls
		if routine == "BarrierInit" {
			want *= 2
		}
		s := found[routine]
		if s.Calls != want || s.Bytes != bytes || !strings.HasPrefix(s.Site, "mpi/profile_started_test.go:") {
			t.Errorf("%d calls of %s with %g bytes at %s; want %d, %g, this file", s.Calls, routine, s.Bytes, s.Site, want, bytes)
		}
		if s.InCall <= 0 || s.Tail <= 0 {
			t.Errorf("%+v cannot be", s)
		}
	}
	if _, is := found["Ibarrier"]; is {
		t.Error("a call whose end nobody has seen is in the profile")
	}
	// The first call of a round has a late rank: the others arrive at once and complete when
	// it has arrived.
	first := found["Ialltoall"]
	if worst := time.Duration(first.Worst); worst < away/2 || worst > time.Minute {
		t.Errorf("the ranks come to Ialltoall %v apart, want %v", worst, away)
	}
	if in := time.Duration(first.InCall); in < away/4 {
		t.Errorf("a rank is in Ialltoall for %v, though all but one wait %v for the last", in, away)
	}
	if !strings.Contains(all.Text(), "Ialltoall") {
		t.Errorf("the text lacks Ialltoall:\n%s", all.Text())
	}
}

// TestStartedAndWaitedAreCountedApart checks separate sampling of blocking and nonblocking
// calls: otherwise a program that alternates between them could lose all records of one.
func TestStartedAndWaitedAreCountedApart(t *testing.T) {
	const calls = 4000
	all := arrivalsOf(t, 2, func(c *mpi.Comm) error {
		p := c.BarrierInit()
		for range calls {
			if err := c.Barrier(); err != nil {
				return err
			}
			if _, err := c.Ibarrier().Wait(); err != nil {
				return err
			}
			if _, err := p.Start().Wait(); err != nil {
				return err
			}
		}
		return nil
	})
	found := map[string]int{}
	for _, s := range all.Sites() {
		found[s.Routine] = s.Calls
	}
	for _, routine := range []string{"Barrier", "Ibarrier", "BarrierInit"} {
		if n := found[routine]; n < calls*9/10 || n > calls*11/10 {
			t.Errorf("%d calls of %s, want about %d: %v", n, routine, calls, found)
		}
	}
	if len(all.Calls) >= 3*calls/2 {
		t.Errorf("%d of %d calls were recorded", len(all.Calls), 3*calls)
	}
}

// TestManyPreparedAreThinnedOut checks a program that repeatedly prepares a persistent
// collective for one start.
func TestManyPreparedAreThinnedOut(t *testing.T) {
	const calls = 3000
	all := arrivalsOf(t, 2, func(c *mpi.Comm) error {
		for range calls {
			if _, err := c.BarrierInit().Start().Wait(); err != nil {
				return err
			}
		}
		return nil
	})
	wantThinnedOut(t, all, calls)
}

func TestRecordingAStartedCallAllocatesNothing(t *testing.T) {
	profiled(t, 2, &mpi.Config{Profile: "arrivals:" + filepath.Join(t.TempDir(), "x.json")}, nil, func(c *mpi.Comm) error {
		if c.Rank() != 0 {
			return nil
		}
		var failed error
		// Memory is allocated for a thousand records at a time, so the mean is far below 1.
		if got := testing.AllocsPerRun(1500, func() { failed = mpi.RecordStarted(c) }); got != 0 || failed != nil {
			return fmt.Errorf("recording a call allocates %g times, and ends with %v", got, failed)
		}
		return nil
	})
}
