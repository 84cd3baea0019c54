package bench

import (
	"errors"
	"math"
	"testing"
)

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

func TestOverlapDefinition(t *testing.T) {
	for _, c := range []struct {
		name string
		step
		want float64
	}{
		{"all of the computation is hidden", step{l0: 100, cm: 80, lm: 100}, 0.8},
		{"all of the transfer is hidden", step{l0: 100, cm: 100, lm: 100}, 1},
		{"nothing is hidden", step{l0: 100, cm: 9, lm: 109}, 0},
		{"half is hidden", step{l0: 100, cm: 10, lm: 105}, 0.05},
		{"longer than both", step{l0: 100, cm: 5, lm: 109}, -0.04},
		{"a computation longer than what can be hidden", step{l0: 100, cm: 95, lm: 105}, 0.9},
	} {
		if got := c.overlap(); !near(got, c.want, 1e-12) {
			t.Errorf("%s: %+v overlaps by %v, want %v", c.name, c.step, got, c.want)
		}
	}
}

// model is a transfer that takes t1 in the call, t2 in the background and t3 in Wait
// (figure 3 of P2).
type model struct{ t1, t2, t3 float64 }

func (m model) measure(c float64) step {
	return step{l0: m.t1 + m.t2 + m.t3, cm: c, lm: m.t1 + max(c, m.t2) + m.t3}
}

func TestGrowthEndsAtTenPercent(t *testing.T) {
	for _, c := range []struct {
		model
		want float64
	}{
		{model{0, 100, 0}, 1},
		{model{10, 80, 10}, 0.8},
		{model{50, 0, 50}, 0},
		{model{5, 92, 3}, 0.92},
	} {
		var asked []float64
		l0 := c.t1 + c.t2 + c.t3
		last, err := grow(l0, func(work float64) (step, error) {
			asked = append(asked, work)
			return c.measure(work), nil
		})
		if err != nil || !near(last.overlap(), c.want, 1e-9) || !last.tolerable() {
			t.Errorf("%+v: the overlap is %v (%+v), %v; want %v", c.model, last.overlap(), last, err, c.want)
		}
		// The step behind the last is the first that is too long.
		if next := c.measure(last.cm * growBy); next.tolerable() {
			t.Errorf("%+v: the growth ended at %+v though %+v is tolerable", c.model, last, next)
		}
		for i := 1; i < len(asked); i++ {
			if !near(asked[i], asked[i-1]*1.1, 1e-9) {
				t.Errorf("%+v: after a computation of %v came one of %v, want 10 %% more", c.model, asked[i-1], asked[i])
			}
		}
	}
}

func TestGrowthSurvivesOneDisturbance(t *testing.T) {
	m, n := model{0, 100, 0}, 0
	last, err := grow(100, func(c float64) (step, error) {
		s := m.measure(c)
		if n++; n == 1 || n == 10 || n == 11 {
			s.lm += 50
		}
		return s, nil
	})
	if err != nil || !near(last.overlap(), 1, 1e-9) {
		t.Errorf("the overlap is %v, %v; want all of it in spite of three disturbances", last.overlap(), err)
	}
}

func TestGrowthAlwaysEnds(t *testing.T) {
	for name, measure := range map[string]func(float64) (step, error){
		"always too long": func(c float64) (step, error) { return step{100, c, 200}, nil },
		"never too long":  func(c float64) (step, error) { return step{100, c, 100}, nil },
		"no number":       func(c float64) (step, error) { return step{math.NaN(), c, math.NaN()}, nil },
	} {
		n := 0
		if _, err := grow(100, func(c float64) (step, error) { n++; return measure(c) }); err != nil || n > mostSteps {
			t.Errorf("%s: %d steps, %v", name, n, err)
		}
	}
	broken := errors.New("the link is down")
	if _, err := grow(100, func(float64) (step, error) { return step{}, broken }); !errors.Is(err, broken) {
		t.Errorf("a failed measurement gave %v", err)
	}
}

func TestProgressDuringDelay(t *testing.T) {
	for _, c := range []struct {
		name                     string
		l0, delay, delayed, want float64
	}{
		{"everything", 100, 500, 500, 1},
		{"nothing: all of it comes on top of the delay", 100, 500, 600, 0},
		{"a quarter is left", 100, 500, 525, 0.75},
		{"it did not wait for the delay at all", 100, 500, 100, 1},
		{"longer than without the delay", 100, 500, 610, -0.1},
	} {
		if got := doneMeanwhile(c.l0, c.delay, c.delayed); !near(got, c.want, 1e-12) {
			t.Errorf("%s: %v of it was done, want %v", c.name, got, c.want)
		}
	}
}

func TestComputationTime(t *testing.T) {
	w := newWork()
	if w.loopMicros <= 0 || w.loopMicros > 0.1 {
		t.Fatalf("an iteration of the loop takes %v µs", w.loopMicros)
	}
	const want = 200.0
	best := math.Inf(1)
	for range 50 {
		best = min(best, w.measure(w.iterations(want)))
	}
	// Other load on the machine can only make it longer, never shorter.
	if best < want*0.7 || best > want*5 {
		t.Errorf("a computation of %v µs took %v µs at best", want, best)
	}
}
