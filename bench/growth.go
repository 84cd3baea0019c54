package bench

// The definitions of overlap and progress (P2 6 and 7, T1 3.6). All times are in µs.

// step is an iteration m: the time of the transfer without (l0) and with (lm) a computation
// that takes cm alone.
type step struct{ l0, cm, lm float64 }

// overlap is equation 4 of P2: the part of the computation that did not lengthen the
// transfer, as a share of the transfer.
func (s step) overlap() float64 { return (s.cm - (s.lm - s.l0)) / s.l0 }

const (
	firstShare = 0.05 // of l0: the first computation
	growBy     = 1.1
	tolerated  = 1.1 // times l0
	// failures in a row end the growth; otherwise the first disturbance on a busy
	// machine would end it.
	failures = 3
	// mostSteps is never reached: a computation longer than the tolerated time cannot be
	// hidden in it.
	mostSteps = 80
)

func (s step) tolerable() bool { return s.lm < tolerated*s.l0 }

// grow enlarges the computation by 10 % per iteration and returns the last step that
// lengthened the transfer by less than 10 %: the largest m with lm < 1.1 l0. If there is
// none it returns the first, whose overlap is about zero.
func grow(l0 float64, measure func(c float64) (step, error)) (last step, err error) {
	c, failed := firstShare*l0, 0
	for m := range mostSteps {
		s, err := measure(c)
		if err != nil {
			return last, err
		}
		failed++
		if s.tolerable() {
			failed = 0
		}
		if m == 0 || failed == 0 {
			last = s
		}
		if failed == failures {
			break
		}
		c *= growBy
	}
	return last, nil
}

// doneMeanwhile returns the share of the transfer that was done during a delay. Time on
// top of the delay is work that was not done in it; a transfer that ended before the
// delay was done completely.
func doneMeanwhile(l0, delay, delayed float64) float64 {
	return 1 - max(0, delayed-delay)/l0
}
