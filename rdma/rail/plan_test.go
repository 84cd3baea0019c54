package rail

import (
	"math/rand/v2"
	"testing"
)

func TestPickRail(t *testing.T) {
	open := func(speed float64, backlog int) load { return load{speed: speed, backlog: backlog, open: true} }
	full := load{speed: 9, open: true, full: true}
	shut := load{speed: 9}
	for _, v := range []struct {
		name      string
		n         int
		rails     []load
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
		if got := pickRail(v.n, v.rails, v.preferred); got != v.want {
			t.Errorf("%s: rail %d, expected %d", v.name, got, v.want)
		}
	}
}

// TestStripe stripes a whole operation and checks the share of each rail.
func TestStripe(t *testing.T) {
	for _, v := range []struct {
		name  string
		size  int
		rails []load
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
		got := make([]int, len(v.rails))
		for left := v.size; left > 0; {
			rail, n := stripe(left, pieceSize, v.rails)
			if rail < 0 || n < 1 || n > pieceSize || n > left {
				t.Fatalf("%s: of %d bytes left a piece of %d goes to rail %d", v.name, left, n, rail)
			}
			got[rail] += n
			left -= n
			v.rails[rail].backlog += n
		}
		for i := range got {
			if d := got[i] - v.want[i]; d < -pieceSize/2 || d > pieceSize/2 {
				if v.want[0] != got[1] || v.want[1] != got[0] { // either of two equals may get all
					t.Errorf("%s: the rails get %v, expected about %v", v.name, got, v.want)
				}
				break
			}
		}
	}
}

// TestStripeEndsTogether: whatever the backlogs, a rail that gets a piece does not
// finish later than the others by more than a piece, or by what is not worth sharing.
func TestStripeEndsTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		rails := make([]load, 1+random.IntN(maxRails))
		for i := range rails {
			rails[i] = load{speed: 0.1 + random.Float64(), backlog: random.IntN(300_000), open: random.IntN(5) > 0}
		}
		rails[0].open = true
		got := make([]bool, len(rails))
		for left := 200_000 + random.IntN(2_000_000); left > 0; {
			rail, n := stripe(left, pieceSize, rails)
			if rail < 0 || !rails[rail].open {
				t.Fatalf("no rail gets the rest of %d bytes: %d of %+v", left, rail, rails)
			}
			rails[rail].backlog += n
			left -= n
			got[rail] = true
		}
		first, last := 1e18, 0.0
		for i, l := range rails {
			if l.open {
				first = min(first, float64(l.backlog+2*minStripe)/l.speed)
			}
			if got[i] {
				last = max(last, (float64(l.backlog)-pieceSize)/l.speed)
			}
		}
		if last > first {
			t.Fatalf("a rail that got a piece finishes after at least %.0f ns, another after %.0f: %+v", last, first, rails)
		}
	}
}

func TestStripeWaitsForFullRails(t *testing.T) {
	rails := []load{{speed: 1, open: true, full: true}, {speed: 1, open: true, full: true}}
	if rail, _ := stripe(1<<20, pieceSize, rails); rail >= 0 {
		t.Errorf("rail %d gets a piece although it is full", rail)
	}
	rails[1].full = false
	if rail, n := stripe(1<<20, pieceSize, rails); rail != 1 || n == 0 {
		t.Errorf("rail %d gets %d bytes, expected rail 1", rail, n)
	}
}
