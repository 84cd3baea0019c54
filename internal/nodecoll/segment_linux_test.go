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

// attach rejects the address of another file or of an older build's segment.
func TestWrongSegment(t *testing.T) {
	cfg := &Config{Rank: 1, Size: 2, Dir: t.TempDir(), NoMemfd: true}
	made, err := createShared(cfg, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer made.release()
	defer made.forget()
	short := cfg.Dir + "/short"
	if err := os.WriteFile(short, []byte("not a segment"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		made.address: "not that of a segment", // rank 0 has not formatted it
		"nonsense":   "not the address",
		strings.Replace(made.address, " 7 ", " 8 ", 1): "not that of a segment",
		"1 1 7 " + short:           "need",
		"1 1 7 " + cfg.Dir + "/no": "no such file",
	} {
		if m, err := attach(cfg, address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that contains %q", address, err, want)
			m.release()
		}
	}
	made.seg.head.format(7, 2)
	m, err := attach(cfg, made.address)
	if err != nil {
		t.Fatalf("the segment itself: %v", err)
	}
	if err := m.release(); err != nil {
		t.Error(err)
	}
}
