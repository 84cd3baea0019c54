package bench

// How much of a transfer can be hidden behind computation, on the send and on the
// receive side, with either side first (P2 6, T1 3.6.1 and 4.4.1).
//
// The computation takes 0.25, 0.5 and 0.9 of the time of the transfer. Each sample has the
// transfer without computation, the transfer with computation and the computation alone,
// next to each other, because the speed of a machine changes within a measurement:
//
//	hidden = (alone + without - with) / alone
//
// The figure of a scenario is the median of the longest computation, and Min the worst
// sample. P2's growing computation (growth.go) is a second figure: it ends at the first
// disturbances, so it shows less than what was hidden where times scatter by 10 %.
//
// Between hosts the bounds of both sides are measured beside them (overlap_bare.go).

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

func overlapBenchmarks() []Benchmark {
	return []Benchmark{{Name: "overlap", Title: "Overlap of Transfer and Computation", Doc: "share of a transfer that a computation behind the non-blocking call can hide, either side, either side first", Ranks: 2,
		Sizes: overlapSizes, Metric: "overlap", Unit: "%", Column: "Overlap (%)", Run: overlap, Protocols: true}}
}

func overlap(c *mpi.Comm, p *Params, emit func(Result)) error {
	w := newWork()
	bare, err := openBounds(c)
	if err != nil {
		return err
	}
	defer bare.close()
	for _, size := range p.Sizes {
		for _, s := range scenarios() {
			if err := overlapSide(newTransfer(c, s, size), s.String(), w, p, emit); err != nil {
				return err
			}
		}
		if bare == nil {
			continue
		}
		for _, side := range []scenario{{send: false}, {send: true}} {
			if err := overlapSide(bare.transfer(c, side, size), side.side()+"/bare-tcp", w, p, setBeside(emit)); err != nil {
				return err
			}
		}
	}
	return nil
}

// setBeside marks results that are no figures of ours.
func setBeside(emit func(Result)) func(Result) {
	return func(r Result) { r.Beside = true; emit(r) }
}

func overlapSide(t *transfer, name string, w *work, p *Params, emit func(Result)) error {
	if t.c.Rank() == 1 {
		return t.serve(func() error { return t.afterAwake(p.Touch) })
	}
	return overlapOf(t, name, w, p, emit)
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
func overlapOf(t *transfer, name string, w *work, p *Params, emit func(Result)) error {
	warmup, n := p.iterations(len(t.buf), 400, 31)
	o := overlapRun{transfer: t, w: w, touch: p.Touch}
	if err := o.sample(warmup, 0); err != nil {
		return err
	}
	size, l0 := len(t.buf), Median(o.without)
	for _, share := range hiddenShares {
		if err := o.sample(max(n, fewestHidden), w.iterations(share*l0)); err != nil {
			return err
		}
		r := Result{Size: size, Metric: name, Unit: "%"}
		if share != slices.Max(hiddenShares) {
			r.Metric, r.Beside = fmt.Sprintf("%s/hidden-%g", name, share*100), true
		}
		emit(middle(r, o.hiddenShares()))
	}
	if t.bare != nil { // P2 has no such figure
		return t.order(0)
	}
	best, err := grow(l0, func(c float64) (step, error) {
		err := o.sample(n, w.iterations(c))
		return step{Median(o.without), Median(o.alone), Median(o.with)}, err
	})
	if err != nil {
		return err
	}
	if err := t.order(0); err != nil {
		return err
	}
	emit(single(size, name+"/growing", "%", best.overlap()*100))
	emit(single(size, name+"/latency", "us", best.l0))
	return nil
}

// hiddenShares are the lengths of the computations as shares of the transfer.
var hiddenShares = []float64{0.25, 0.5, 0.9}

// fewestHidden is the smallest number of samples of such a computation.
const fewestHidden = 15

// hiddenShares returns the share of the computation that did not lengthen the transfer, by
// sample, in percent. The computation alone was timed twice for each sample.
func (o *overlapRun) hiddenShares() []float64 {
	shares := make([]float64, len(o.with))
	for i := range shares {
		alone := (o.alone[2*i] + o.alone[2*i+1]) / 2
		shares[i] = (alone + o.without[i] - o.with[i]) / alone * 100
	}
	return shares
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
			// Before each transfer, so that the cable was idle for as long before both: what
			// limits a cable may send faster after a pause (a token bucket).
			o.alone = append(o.alone, o.w.measure(loop))
			var err error
			if times[computes], err = once(loop * computes); err != nil {
				return err
			}
		}
		o.without, o.with = append(o.without, times[0]), append(o.with, times[1])
	}
	return nil
}
