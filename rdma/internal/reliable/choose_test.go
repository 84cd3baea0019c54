package reliable

import (
	"math/rand/v2"
	"testing"
	"time"
)

// load is what is known about a path when something is to be sent.
type load struct {
	speed   float64
	backlog int
	open    bool // it delivers
	full    bool // its window is used up
}

// newLoaded returns a peer with n bytes to send and paths with the given loads.
func newLoaded(n int, preferred int, loads []load) *Peer[int] {
	pool := NewPool[int](Params{Single: 1380, Each: 1380, MaxRun: 44, AckEvery: 16, AckDelay: 200 * time.Microsecond, LongAckDelay: 8 * time.Millisecond})
	s := NewPeer(pool)
	s.AddPaths(len(loads))
	for i, l := range loads {
		p := s.path(i)
		if p.multi.state = left; l.open {
			p.multi.state = good
		}
		p.multi.tryAt = Never
		p.multi.rate, p.underWay = l.speed, l.backlog
		if p.cong.window = 1e9; l.full {
			p.cong.window, p.underWay = 1, max(l.backlog, 1)
		}
	}
	s.Prefer(preferred)
	s.Push(&Message[int]{Length: n})
	return &s
}

func TestPickPath(t *testing.T) {
	open := func(speed float64, backlog int) load { return load{speed: speed, backlog: backlog, open: true} }
	full := load{speed: 9, open: true, full: true}
	shut := load{speed: 9}
	for _, v := range []struct {
		name      string
		n         int
		paths     []load
		preferred int
		want      int
	}{
		{"the-preferred-of-equals", 100, []load{open(1, 0), open(1, 0)}, 1, 1},
		{"the-preferred-with-a-short-backlog", 100, []load{open(1, 0), open(1, stickiness/2)}, 1, 1},
		{"another-when-it-is-busy", 100, []load{open(1, 0), open(1, 2*stickiness)}, 1, 0},
		{"the-faster-one", 50_000, []load{open(1, 0), open(10, 0)}, 0, 1},
		{"the-faster-one-has-a-long-backlog", 50_000, []load{open(1, 0), open(2, 200_000)}, 1, 0},
		{"not-a-full-one", 1, []load{full, open(1, 1<<20)}, 0, 1},
		{"not-one-that-is-shut", 1, []load{shut, open(1, 1<<20)}, 0, 1},
		{"none", 1, []load{shut, full}, 0, -1},
	} {
		if got := newLoaded(v.n, v.preferred, v.paths).Pick(time.Second); got != v.want {
			t.Errorf("%s: path %d, expected %d", v.name, got, v.want)
		}
	}
}

// stripe sends all of n bytes, run by run, and returns what each path gets.
func stripe(t *testing.T, name string, n int, loads []load) []int {
	t.Helper()
	got := make([]int, len(loads))
	for rest := n; rest > 0; {
		s := newLoaded(rest, 0, loads)
		on := s.Pick(time.Second)
		if on < 0 || !loads[on].open {
			t.Fatalf("%s: no path gets the rest of %d bytes: %d of %+v", name, rest, on, loads)
		}
		one, ok := s.Next(time.Second, on, 0)
		if !ok || one.Length < 1 || one.Length > rest {
			t.Fatalf("%s: of %d bytes %d go to path %d", name, rest, one.Length, on)
		}
		got[on] += one.Length
		rest -= one.Length
		loads[on].backlog = s.path(on).underWay
	}
	return got
}

// maxStripe is what a run carries at most.
const maxStripe = 44 * 1380

// TestStripe sends a whole message and checks the share of each path.
func TestStripe(t *testing.T) {
	for _, v := range []struct {
		name  string
		size  int
		paths []load
		want  []int // bytes
	}{
		{"even", 1 << 20, []load{{speed: 1, open: true}, {speed: 1, open: true}}, []int{1 << 19, 1 << 19}},
		{"by-speed", 1 << 20, []load{{speed: 1, open: true}, {speed: 3, open: true}}, []int{1 << 18, 3 << 18}},
		{"backlog-counts", 600_000, []load{{speed: 1, backlog: 200_000, open: true}, {speed: 1, open: true}}, []int{200_000, 400_000}},
		{"too-little-to-share", minStripe + 100, []load{{speed: 1, open: true}, {speed: 1, open: true}}, []int{minStripe + 100, 0}},
		{"one-has-a-long-backlog", 100_000, []load{{speed: 1, backlog: 1 << 20, open: true}, {speed: 1, open: true}}, []int{0, 100_000}},
		{"one-is-shut", 100_000, []load{{speed: 5}, {speed: 1, open: true}}, []int{0, 100_000}},
		{"three", 900_000, []load{{speed: 1, open: true}, {speed: 2, open: true}, {speed: 6, open: true}}, []int{100_000, 200_000, 600_000}},
	} {
		got := stripe(t, v.name, v.size, v.paths)
		for i := range got {
			if d := got[i] - v.want[i]; d < -maxStripe/2 || d > maxStripe/2 {
				if v.want[0] != got[1] || v.want[1] != got[0] { // either of two equals may get all
					t.Errorf("%s: the paths get %v, expected about %v", v.name, got, v.want)
				}
				break
			}
		}
	}
}

// TestStripeEndsTogether: whatever the backlogs, a path that gets a run does not finish
// later than the others by more than a run, or by what is not worth sharing.
func TestStripeEndsTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		loads := make([]load, 2+random.IntN(MaxPaths-1))
		for i := range loads {
			loads[i] = load{speed: 0.1 + random.Float64(), backlog: random.IntN(300_000), open: random.IntN(5) > 0}
		}
		loads[0].open = true
		got := stripe(t, "random", 200_000+random.IntN(2_000_000), loads)
		first, last := 1e18, 0.0
		for i, l := range loads {
			if l.open {
				first = min(first, float64(l.backlog+2*minStripe)/l.speed)
			}
			if got[i] > 0 {
				last = max(last, (float64(l.backlog)-maxStripe)/l.speed)
			}
		}
		if last > first {
			t.Fatalf("a path that got a run finishes after at least %.0f ns, another after %.0f: %+v", last, first, loads)
		}
	}
}

func TestFullPathsWait(t *testing.T) {
	loads := []load{{speed: 1, open: true, full: true}, {speed: 1, open: true, full: true}}
	if on := newLoaded(1<<20, 0, loads).Pick(time.Second); on >= 0 {
		t.Errorf("path %d is picked although it is full", on)
	}
	loads[1].full = false
	if on := newLoaded(1<<20, 0, loads).Pick(time.Second); on != 1 {
		t.Errorf("path %d is picked, expected 1", on)
	}
}

// TestShortMessageStaysWhole: a message whose halves are not worth a second path is one
// segment, however many packets it has.
func TestShortMessageStaysWhole(t *testing.T) {
	for _, n := range []int{2_000, minStripe, minStripe + 100, 3 * minStripe / 2} {
		s := newLoaded(n, 0, []load{{speed: 1, open: true}, {speed: 1, open: true}})
		s.first, s.fresh = 1, 1 // the peer knows the address
		if one, ok := s.Next(time.Second, s.Pick(time.Second), 0); !ok || one.Length != n {
			t.Errorf("the first segment of %d bytes has %d", n, one.Length)
		}
	}
}
