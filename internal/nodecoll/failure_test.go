package nodecoll

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
)

// All ranks can map the segment, or all do without, and know who could not.
func TestOneCannotMap(t *testing.T) {
	for _, who := range []int{1, 3} {
		g := newRig(4)
		g.rejects = who + 1
		reported := make(chan error, 4)
		for r := range 4 {
			go func() {
				team, err := testRank{g, r}.form(false)
				if team != nil {
					err = errors.New("there is a team")
				}
				reported <- err
			}()
		}
		for range 4 {
			var u *Unavailable
			if err := <-reported; !errors.As(err, &u) || u.Rank != who || !strings.Contains(u.Why, "no segment") {
				t.Errorf("rank %d cannot map the segment, and the error is %v", who, err)
			}
		}
		if n := len(g.host.segments); n != 0 {
			t.Errorf("%d segments are still known to the host", n)
		}
	}
}

// A rank dies in the middle: the others return an error that names it, whether
// they look, sleep or wait for room, and so does every later call.
func TestRankDies(t *testing.T) {
	calls := map[string]func(t *Team) error{
		"Barrier": func(t *Team) error { return t.Barrier("Barrier") },
		"Bcast from it": func(t *Team) error {
			return t.Bcast("Bcast", make([]byte, 8), 2)
		},
		"Bcast to it": func(t *Team) error {
			for range 2 * depth {
				if err := t.Bcast("Bcast", make([]byte, 8), t.Rank()%2); err != nil {
					return err
				}
			}
			return nil
		},
		"Allreduce": func(t *Team) error {
			v := make([]affine, 5000)
			return Allreduce(t, "Allreduce", v, v, combineAffine, false)
		},
	}
	for name, fn := range calls {
		for _, asleep := range []bool{false, true} {
			g := newRig(3)
			g.yields = 1 << 30
			if asleep {
				g.yields = 10
			}
			g.run(t, false, func(t testing.TB, team *Team) {
				if err := team.Barrier("Barrier"); err != nil {
					t.Error(err)
				}
				if team.Rank() == 2 {
					time.Sleep(20 * time.Millisecond)
					g.dead.Store(2 + 1)
					return
				}
				for range 2 {
					if err := fn(team); !errors.Is(err, errDied) || !strings.Contains(err.Error(), "rank 2") {
						t.Errorf("%s: rank %d got %v", name, team.Rank(), err)
					}
				}
			})
		}
	}
}

// Ranks in different calls: all are reported, also those who sleep, and nobody waits for
// ever. Calls that all ranks have returned from are seen in the next exchange.
func TestOutOfStep(t *testing.T) {
	for name, fn := range map[string]func(t *Team) error{
		"kinds": func(t *Team) error {
			if t.Rank() == 1 {
				time.Sleep(20 * time.Millisecond)
				return t.Allgather("Allgather", make([]byte, 8), make([]byte, 24), 8)
			}
			return t.Barrier("Barrier")
		},
		"lengths": func(t *Team) error {
			n := 8
			if t.Rank() == 1 {
				n = 16
			}
			return t.Bcast("Bcast", make([]byte, n), 0)
		},
		"roots": func(t *Team) error { return t.Bcast("Bcast", make([]byte, 8), min(t.Rank(), 1)) },
		"operands": func(t *Team) error {
			v := make([]affine, 8+8*(t.Rank()&1))
			return Allreduce(t, "Allreduce", v, v, combineAffine, false)
		},
		"rounds": func(t *Team) error {
			n := 10 * mostBytes
			if t.Rank() == 1 {
				time.Sleep(20 * time.Millisecond)
				n = 8
			}
			if err := t.Bcast("Bcast", make([]byte, n), 0); err != nil {
				return err
			}
			return t.Barrier("Barrier")
		},
	} {
		for _, yields := range []int{3, 1 << 30} {
			g := newRig(3)
			g.yields = yields
			var reported atomic.Int32
			g.run(t, false, func(t testing.TB, team *Team) {
				err := fn(team)
				if err == nil {
					err = team.Barrier("Barrier")
				}
				var m *Mismatch
				if !errors.As(err, &m) {
					t.Errorf("%s: rank %d got %v", name, team.Rank(), err)
					return
				}
				if m.Rank != 1 && m.Peer != 1 && name != "roots" {
					t.Errorf("%s: the error does not name rank 1: %v", name, err)
				}
				if m.Number == 0 {
					t.Errorf("%s: the error does not name the calls: %v", name, err)
				}
				if name == "kinds" && m.Mine.Kind() != coll.Allgather && m.Theirs.Kind() != coll.Allgather {
					t.Errorf("the error does not name the call of rank 1: %v", err)
				}
				reported.Add(1)
			})
			if reported.Load() != 3 {
				t.Errorf("%s: %d of 3 ranks were reported", name, reported.Load())
			}
		}
	}
}

// A rank finds a word in the segment that no rank writes: it reports ranks out of step,
// and wakes nobody in the name of a rank that does not exist.
func TestDamagedSegment(t *testing.T) {
	g := newRig(2)
	g.run(t, false, func(t testing.TB, team *Team) {
		if team.Rank() == 1 {
			return
		}
		other := &team.seg.sections[1]
		other.asleep.Store(1 << 31)
		other.cells[1%depth].word.publish(15<<60 | 1)
		err := team.Barrier("Barrier")
		var m *Mismatch
		if !errors.As(err, &m) || !strings.Contains(err.Error(), "kind 14") {
			t.Errorf("the segment is damaged, and the error is %v", err)
		}
		if v := other.asleep.Load(); v != 1<<31 {
			t.Errorf("somebody was woken in the name of rank %d", 1<<31-1)
		}
	})
}

// A rank that is many calls behind, which the others have made without the team, is
// late and nothing else, whatever the bits of its numbers.
func TestFarBehind(t *testing.T) {
	newRig(2).run(t, false, func(t testing.TB, team *Team) {
		if err := team.Barrier("Barrier"); err != nil {
			t.Error(err)
		}
		for i := range 300 {
			if team.Rank() == 1 {
				time.Sleep(50 * time.Microsecond)
			}
			team.past.Add(coll.MakeCall(coll.Kind(i%10), coll.Blocking, coll.NoRoot, i))
		}
		if err := team.Barrier("Barrier"); err != nil {
			t.Errorf("rank %d: %v", team.Rank(), err)
		}
	})
}
