package engine

import (
	"testing"

	"github.com/muster-mpi/muster/internal/p2p"
)

func TestSleepers(t *testing.T) {
	var s waits
	a, b, c := s.get(), s.get(), s.get()
	s.addSleeper(a, false)
	s.addSleeper(b, true)
	s.addSleeper(c, false)
	if !s.any() || s.probers != 1 || b.Pending != probing {
		t.Errorf("three sleepers, one of which probes: any %v, %d probers, pending %d", s.any(), s.probers, b.Pending)
	}
	s.removeSleeper(b, true)
	if s.sleepers != c || c.Next != a || a.Next != nil || b.Next != nil || s.probers != 0 {
		t.Error("the sleeper in the middle is not removed")
	}
	s.removeSleeper(c, false)
	s.removeSleeper(a, false)
	if s.any() {
		t.Error("there are sleepers left")
	}
	a.Ready <- struct{}{}
	s.put(a)
	if again := s.get(); again != a || len(again.Ready) != 0 {
		t.Error("a waiter is not reused, or has a late signal")
	}
}

// Collectives are found by the operation that represents them, also when others have ended.
func TestActiveCollectives(t *testing.T) {
	var s collectives
	var all [4]*Collective
	for i := range all {
		all[i] = &Collective{progress: progress{whole: new(p2p.Xfer)}}
		s.add(all[i])
	}
	for _, i := range []int{1, 3, 0, 2} {
		s.remove(all[i])
		if s.find(all[i].progress.whole) != nil {
			t.Errorf("collective %d is found after its end", i)
		}
		for at, co := range s.active {
			if co.index != at || s.find(co.progress.whole) != co {
				t.Errorf("the collective at %d has index %d", at, co.index)
			}
		}
	}
}

func TestBrokenIsFirstError(t *testing.T) {
	var s collectives
	if s.err(4) != nil {
		t.Error("an error without a failure")
	}
	first := &BrokenError{Err: ErrStale}
	s.fail(4, first)
	s.fail(4, &BrokenError{Err: ErrShared})
	if s.err(4) != error(first) || s.err(5) != nil {
		t.Errorf("context 4 has error %v, context 5 %v", s.err(4), s.err(5))
	}
}
