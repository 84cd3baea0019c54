package nodecoll

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
)

// If one rank cannot map the segment, no rank has a team, and all name that rank.
func TestOneCannotMap(t *testing.T) {
	for _, who := range []int{1, 3} {
		g := newRig(4)
		g.rejects = who + 1
		reported := make(chan error, 4)
		for r := range 4 {
			go func() {
				team, err := testRank{g, r}.form(false)
				if team != nil {
					err = errors.New("Form returned a team")
				}
				reported <- err
			}()
		}
		for range 4 {
			var u *Unavailable
			if err := <-reported; !errors.As(err, &u) || u.Rank != who || !strings.Contains(u.Why, "no segment") {
				t.Errorf("rank %d cannot map the segment: error %v", who, err)
			}
		}
		if n := len(g.host.regions); n != 0 {
			t.Errorf("%d segments are still known to the host", n)
		}
	}
}

// When a rank dies, the others return an error that names it, whether they spin, sleep or
// wait for room, and so does every later call.
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
			return Allreduce(t, "Allreduce", v, v, combineAffine, 1, false)
		},
	}
	for name, fn := range calls {
		for _, asleep := range []bool{false, true} {
			g := newRig(3)
			g.yields = 1 << 30
			if asleep {
				g.yields = 10
			}
			var left sync.WaitGroup // the first barrier
			left.Add(3)
			g.run(t, false, func(t testing.TB, team *Team) {
				if err := team.Barrier("Barrier"); err != nil {
					t.Error(err)
				}
				left.Done()
				if team.Rank() == 2 {
					left.Wait() // else another rank may still be in it
					g.untilPolled(100)
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

// Ranks make different calls: all ranks get the error, also sleeping ones, and none waits
// for ever. A difference in calls that all ranks have returned from is detected in the next
// exchange.
func TestOutOfStep(t *testing.T) {
	for name, fn := range map[string]func(g *rig, t *Team) error{
		"kinds": func(g *rig, t *Team) error {
			if t.Rank() == 1 {
				g.untilPolled(20)
				return t.Allgather("Allgather", make([]byte, 8), make([]byte, 24), 8)
			}
			return t.Barrier("Barrier")
		},
		"lengths": func(_ *rig, t *Team) error {
			n := 8
			if t.Rank() == 1 {
				n = 16
			}
			return t.Bcast("Bcast", make([]byte, n), 0)
		},
		"roots": func(_ *rig, t *Team) error { return t.Bcast("Bcast", make([]byte, 8), min(t.Rank(), 1)) },
		"operands": func(_ *rig, t *Team) error {
			v := make([]affine, 8+8*(t.Rank()&1))
			return Allreduce(t, "Allreduce", v, v, combineAffine, 1, false)
		},
		"rounds": func(g *rig, t *Team) error {
			n := 10 * mostBytes
			if t.Rank() == 1 {
				g.untilPolled(20)
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
				err := fn(g, team)
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
				t.Errorf("%s: %d of 3 ranks report the mismatch", name, reported.Load())
			}
		}
	}
}

// A rank that finds an invalid word in the segment reports a mismatch, and wakes no rank
// with an invalid name.
func TestDamagedSegment(t *testing.T) {
	g := newRig(2)
	g.run(t, false, func(t testing.TB, team *Team) {
		if team.Rank() == 1 {
			return
		}
		other := &team.seg.sections[1]
		other.asleep.Store(1 << 31)
		other.cells[1%depth].word.Publish(15<<60 | 1)
		err := team.Barrier("Barrier")
		var m *Mismatch
		if !errors.As(err, &m) || !strings.Contains(err.Error(), "kind 14") {
			t.Errorf("damaged segment: error %v", err)
		}
		if v := other.asleep.Load(); v != 1<<31 {
			t.Errorf("a rank was woken with the name %d", 1<<31-1)
		}
	})
}

// A rank that is many calls behind, which the others have made without the team, is only
// late, whatever the bits of its call numbers.
func TestFarBehind(t *testing.T) {
	newRig(2).run(t, false, func(t testing.TB, team *Team) {
		if err := team.Barrier("Barrier"); err != nil {
			t.Error(err)
		}
		for i := range 300 {
			if team.Rank() == 1 {
				time.Sleep(50 * time.Microsecond) // let rank 0 compare while this rank is behind
			}
			team.past.Add(coll.MakeCall(coll.Kind(i%10), coll.Blocking, coll.NoRoot, i))
		}
		if err := team.Barrier("Barrier"); err != nil {
			t.Errorf("rank %d: %v", team.Rank(), err)
		}
	})
}
