package nodecoll

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

// formMapped forms the team of one rank on a mapped segment, as processes do.
func (s testRank) formMapped(dir string, noMemfd bool) (*Team, error) {
	return Form(Config{Rank: s.rank, Size: s.size, Driver: s, Exchange: s, NoMemfd: noMemfd, Dir: dir})
}

// Ranks map the segment instead of sharing it, and sleep early, so that they sleep and wake
// by plain stores and membarrier where the kernel supports it.
func TestMappedSegment(t *testing.T) {
	for name, noMemfd := range map[string]bool{"memfd": false, "file": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			g := newRig(3)
			g.yields = 2
			var wg sync.WaitGroup
			for r := range g.size {
				wg.Go(func() {
					team, err := testRank{g, r}.formMapped(dir, noMemfd)
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
						return
					}
					c := newCheck(t, team)
					for i := range 300 {
						v := []int64{int64(r)}
						c.ok(Allreduce(team, "Allreduce", v, v, sum, 1, true), "Allreduce")
						if v[0] != 3 {
							t.Errorf("rank %d, call %d: the sum is %d", r, i, v[0])
						}
						data := make([]byte, 100*i)
						if r == i%3 {
							copy(data, filled(len(data), i))
						}
						c.ok(team.Bcast("Bcast", data, i%3), "Bcast")
						c.equal(data, filled(len(data), i), "Bcast %d", i)
					}
					c.ok(team.Close(), "Close")
					if err := team.Barrier("Barrier"); !errors.Is(err, errClosed) {
						t.Errorf("a call after Close returns %v", err)
					}
				})
			}
			wg.Wait()
			if s, w := g.sleeps.Load(), g.woken.Load(); s != w || s == 0 {
				t.Errorf("%d sleeps, %d wake-ups: they must be equal, and some", s, w)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("%v is left in the directory", left)
			}
		})
	}
}

// If the segment cannot be created, all ranks continue without a team.
func TestSegmentCreateFails(t *testing.T) {
	g := newRig(2)
	reported := make(chan error, 2)
	for r := range 2 {
		go func() {
			_, err := testRank{g, r}.formMapped("/nowhere/at/all", true)
			reported <- err
		}()
	}
	for range 2 {
		var u *Unavailable
		if err := <-reported; !errors.As(err, &u) || u.Rank != 0 || !strings.Contains(u.Why, "nowhere") {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestUnformattedSegment checks that a rank rejects memory that rank 0 has not made a segment
// of this version.
func TestUnformattedSegment(t *testing.T) {
	seg := layOut(make([]byte, segmentBytes(2)), 2)
	if err := seg.head.check(2); err == nil || !strings.Contains(err.Error(), "not that of a segment") {
		t.Errorf("unformatted memory: %v", err)
	}
	seg.head.format(2)
	if err := seg.head.check(2); err != nil {
		t.Errorf("the segment itself: %v", err)
	}
	if seg.head.check(3) == nil {
		t.Error("a segment of 2 ranks is accepted for 3")
	}
}
