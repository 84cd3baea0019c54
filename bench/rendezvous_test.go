package bench

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// measured runs a benchmark on two ranks and returns the results of rank 0 by metric.
func measured(t *testing.T, name string, p Params) map[string]Result {
	t.Helper()
	b, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Result{}
	mpitest.Run(t, b.Ranks, func(t *testing.T, c *mpi.Comm) {
		own := p
		err := b.Run(c, &own, func(r Result) {
			if c.Rank() == 0 {
				got[r.Metric] = r
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	for metric, r := range got {
		if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Unit == "us" && r.Value <= 0 {
			t.Errorf("%s of %s is %+v", metric, name, r)
		}
	}
	return got
}

func TestOverlapOfBothSidesAndOrders(t *testing.T) {
	got := measured(t, "overlap", Params{Sizes: []int{64 << 10}, Iterations: 3, Touch: true})
	for _, s := range scenarios() {
		if r, ok := got[s.String()]; !ok || r.Unit != "%" || r.Value > 150 || r.Beside || r.Min > r.Value {
			t.Errorf("the overlap %s is %+v, %v", s, r, ok)
		}
		for _, beside := range []string{"/hidden-25", "/hidden-50", "/growing"} {
			if r, ok := got[s.String()+beside]; !ok || r.Unit != "%" || !r.Beside {
				t.Errorf("%s%s is %+v, %v", s, beside, r, ok)
			}
		}
		if r, ok := got[s.String()+"/latency"]; !ok || r.Unit != "us" || !r.Beside {
			t.Errorf("the latency %s is %+v, %v", s, r, ok)
		}
	}
	if len(got) != 20 {
		t.Errorf("there are the figures %v", slices.Sorted(maps.Keys(got)))
	}
}

// A sample hides what the transfer with the computation is shorter than both one after the
// other.
func TestHiddenShare(t *testing.T) {
	o := overlapRun{alone: []float64{40, 60, 50, 50, 50, 50}, without: []float64{100, 100, 100}, with: []float64{100, 125, 150}}
	if got, want := o.hiddenShares(), []float64{100, 50, 0}; !slices.Equal(got, want) {
		t.Errorf("hidden %v %%, want %v", got, want)
	}
}

func TestProgressIsMeasuredTwice(t *testing.T) {
	got := measured(t, "progress", Params{Sizes: []int{64 << 10}, Iterations: 5, Delay: 2})
	for _, s := range scenarios() {
		base, delayed := got[s.String()+"/latency"], got[s.String()+"/delayed"]
		if done, ok := got[s.String()]; !ok || done.Value > 100 || base.Value <= 0 || delayed.Value <= 0 {
			t.Errorf("the progress %s is %+v of %+v and %+v, %v", s, done, base, delayed, ok)
		}
		for _, look := range []string{"/last-byte", "/pages-in-call", "/pages"} {
			r, looked := got[s.String()+look]
			if looked == s.send || r.Value < 0 || r.Value > 100+1e-9 {
				t.Errorf("%s%s is %+v, %v; want a share", s, look, r, looked)
			}
		}
	}
}

// A receiver that reads its buffer sees a message that has arrived, and only that.
func TestArrivedPages(t *testing.T) {
	for _, c := range []struct {
		size, come int
		lastByte   bool
		pages      float64
	}{
		{16 << 10, 0, false, 0},
		{16 << 10, 8 << 10, false, 0.5},
		{16 << 10, 16 << 10, true, 1},
		{100, 100, true, 1},
		{100, 99, false, 0},
	} {
		r := progressRun{transfer: &transfer{buf: make([]byte, c.size)}, w: newWork(), value: 7}
		fill(r.buf[:c.come], 7)
		r.delay(1000)
		if r.last.lastByte != c.lastByte || r.last.inCall != c.pages || r.last.pages != 0 {
			t.Errorf("of %d bytes %d had come before the delay, and it saw %+v", c.size, c.come, r.last)
		}
		r = progressRun{transfer: &transfer{buf: make([]byte, c.size)}, w: newWork(), value: 7}
		arrive := make(chan bool)
		go func() {
			<-arrive
			land(r.buf[:c.come], 7)
			close(arrive)
		}()
		arrive <- true
		r.delay(r.w.iterations(20000))
		<-arrive
		if r.last.inCall+r.last.pages != c.pages {
			t.Errorf("of %d bytes %d came by the end of the delay, and it saw %+v", c.size, c.come, r.last)
		}
	}
}

// land writes as a device does, invisible to the race detector.
//
//go:norace
func land(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func TestExchangeModelsAndRatios(t *testing.T) {
	got := measured(t, "exchange", Params{Sizes: []int{8 << 10}, Iterations: 40, Ratios: []float64{0.5, 4}, Communication: 20000})
	for _, model := range []string{"model-1", "model-2"} {
		// 20 µs of communication are half of the computation.
		if r, ok := got[model+"/0.5"]; !ok || r.Value < 20 || r.Ratio != 0.5 {
			t.Errorf("an iteration of %s with 40 µs of computation is %+v, %v", model, r, ok)
		}
		if _, ok := got[model+"/communication"]; !ok || len(got) != 6 {
			t.Errorf("there are the figures %v", slices.Sorted(maps.Keys(got)))
		}
	}
}

func TestPack(t *testing.T) {
	x := &partner{data: make([]byte, 2*(2500+packedRow)), out: make([]byte, 2500)}
	for i := range x.data {
		x.data[i] = byte(i / packedRow)
	}
	x.pack()
	for i, v := range x.out {
		if want := byte(2 * (i / packedRow)); v != want {
			t.Fatalf("byte %d comes from row %d, want %d", i, v, want)
		}
	}
}

func TestOverheadOfCrossingsAndWrongGuesses(t *testing.T) {
	got := measured(t, "rndv-overhead", Params{Sizes: []int{1 << 10}, Iterations: 20})
	if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != "cg crossing mixed/control plain tight wrong-guess" {
		t.Errorf("a short message has the figures %s", names)
	}
	// A long message is no wrong guess.
	got = measured(t, "rndv-overhead", Params{Sizes: []int{1 << 20}, Iterations: 5})
	if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != "cg crossing mixed/control plain tight" {
		t.Errorf("a long message has the figures %s", names)
	}
}
