package bench

// How much of a transfer can be hidden behind computation, on the send and on the
// receive side, with either side first (P2 6, T1 3.6.1 and 4.4.1).
//
// The transfer without computation, the transfer with computation and the computation
// alone alternate, and each time is a median, because the speed of a machine changes
// within a measurement.

import (
	"github.com/muster-mpi/muster/mpi"
)

func overlap(c *mpi.Comm, p *Params, emit func(Result)) error {
	w := newWork()
	for _, size := range p.Sizes {
		for _, s := range scenarios() {
			t := newTransfer(c, s, size)
			if c.Rank() == 1 {
				if err := t.serve(func() error { return t.afterAwake(p.Touch) }); err != nil {
					return err
				}
				continue
			}
			if err := overlapOf(t, s, w, p, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// afterAwake is the part of rank 1 in one transfer.
func (t *transfer) afterAwake(touch bool) error {
	if touch && t.sends {
		fill(t.buf, t.buf[0]+1)
	}
	if err := t.awake(); err != nil {
		return err
	}
	_, err := t.run(nil, 0)
	return err
}

// overlapOf is rank 0 in one scenario.
func overlapOf(t *transfer, s scenario, w *work, p *Params, emit func(Result)) error {
	warmup, n := p.iterations(len(t.buf), 400, 31)
	o := overlapRun{transfer: t, w: w, touch: p.Touch}
	if err := o.sample(warmup, 0); err != nil {
		return err
	}
	best, err := grow(median(o.without), func(c float64) (step, error) {
		err := o.sample(n, w.iterations(c))
		return step{median(o.without), median(o.alone), median(o.with)}, err
	})
	if err != nil {
		return err
	}
	if err := t.order(0); err != nil {
		return err
	}
	share := best.overlap() * 100
	size := len(t.buf)
	emit(Result{Size: size, Metric: s.String(), Unit: "%", Value: share, Min: share, P50: share, P99: share})
	emit(Result{Size: size, Metric: s.String() + "/latency", Unit: "us", Beside: true, Value: best.l0, Min: best.l0, P50: best.l0, P99: best.l0})
	return nil
}

type overlapRun struct {
	*transfer
	w     *work
	touch bool
	// Times of the last call of sample.
	without, alone, with []float64
}

// sample times n transfers without computation, n transfers with computation, and the
// computation alone before each of them.
func (o *overlapRun) sample(n, loop int) error {
	o.without, o.alone, o.with = o.without[:0], o.alone[:0], o.with[:0]
	if err := o.order(2 * n); err != nil {
		return err
	}
	once := func(loop int) (float64, error) {
		if o.touch && o.sends {
			fill(o.buf, o.buf[0]+1)
		}
		if err := o.awake(); err != nil {
			return 0, err
		}
		return o.run(o.w, loop)
	}
	for range n {
		// The order is random: successive transfers differ, because they alternate between
		// slots of rings and caches, by more than the length of a short computation.
		var times [2]float64
		first := int(o.w.state >> 40 & 1)
		for _, computes := range [2]int{first, 1 - first} {
			// Before each transfer, so that the cable was idle for as long before both: that of
			// a lab then runs unlimited for up to 2 ms (internal/lab/rate.go), and the first
			// transfer would be shorter than the second by more than what grow tolerates.
			o.alone = append(o.alone, o.w.timed(loop))
			var err error
			if times[computes], err = once(loop * computes); err != nil {
				return err
			}
		}
		o.without, o.with = append(o.without, times[0]), append(o.with, times[1])
	}
	return nil
}
