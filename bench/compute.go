package bench

// A computation of a chosen length, as between a non-blocking call and Wait. It makes no
// library call and no system call, and works in registers, so it does not use the caches
// that a transfer needs.

import (
	"slices"
	"time"
)

type work struct {
	state      uint64
	loopMicros float64 // time of one iteration of the loop
	readMicros float64 // cost of reading the clock
}

// newWork calibrates the loop. The fastest of many tries counts, because other load on the
// core only makes it slower.
func newWork() *work {
	const tries, iterations = 50, 20000
	w := &work{state: 88172645463325252, loopMicros: 1, readMicros: 1}
	for range tries {
		start := time.Now()
		w.run(iterations)
		w.loopMicros = min(w.loopMicros, micros(time.Since(start))/iterations)
		start = time.Now()
		w.readMicros = min(w.readMicros, micros(time.Since(start)))
	}
	return w
}

// iterations returns the number of iterations that take us microseconds.
func (w *work) iterations(us float64) int { return int(us/w.loopMicros + .5) }

// run computes: each iteration needs the result of the previous one. It is not inlined
// so that it takes the same time wherever it is called.
//
//go:noinline
func (w *work) run(iterations int) {
	x := w.state
	for range iterations {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	w.state = x
}

// measure is run, and returns its time in µs without that of the clock.
func (w *work) measure(iterations int) float64 {
	start := time.Now()
	w.run(iterations)
	return max(0, micros(time.Since(start))-w.readMicros)
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// middle returns a result whose value is the median, so that an outlier does not count.
// The value of samples is the mean.
func middle(r Result, values []float64) Result {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	r.Value, r.Min, r.P50, r.P99 = Median(sorted), sorted[0], Median(sorted), sorted[min(n*99/100, n-1)]
	return r
}

// average returns a result whose value is the mean, for figures that are either 0 or 100.
func average(r Result, values []float64) Result {
	r = middle(r, values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	r.Value = sum / float64(len(values))
	return r
}

// Median returns the median of values, of which there is at least one.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
