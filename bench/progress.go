package bench

// Independent progress: whether a transfer continues while the application makes no call
// (P2 7, T1 3.6.2 and 4.4.1). A delay longer than the transfer follows the non-blocking
// call, and three things are measured:
//
//   - how the time of the transfer grows, at the receiver: time on top of the delay is work
//     that was not done in it;
//   - how long Wait takes: the work left after the delay;
//   - the contents of the receive buffer during the delay, without a call: whether the
//     last byte arrives before the delay is over, and the share of the pages that
//     arrive during the delay. Pages present when it begins arrived within the call.
//
// Successive messages hold different values, so that they can be distinguished.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func progressBenchmarks() []Benchmark {
	return []Benchmark{{Name: "progress", Title: "Progress without Calls", Doc: "share of a transfer that is done during a delay behind the non-blocking call, either side, either side first", Ranks: 2,
		Sizes: overlapSizes, Metric: "progress", Unit: "%", Column: "Progress (%)", Run: progress, Protocols: true,
		Flags: []Flag{{Name: "delay", Help: "length of the delay, as a multiple of the transfer time without delay (default 5)", Value: func(p *Params) any { return &p.Delay }}},
		Validate: func(p *Params) error {
			if p.Delay != 0 && !(p.Delay > 1) {
				return fmt.Errorf("--delay %g: the delay must be longer than the transfer; use more than 1", p.Delay)
			}
			return nil
		}}}
}

const (
	looks    = 101 // into the buffer, over a delay
	pageSize = 4 << 10
)

func progress(c *mpi.Comm, p *Params, emit func(Result)) error {
	w := newWork()
	for _, size := range p.Sizes {
		for _, s := range scenarios() {
			r := progressRun{transfer: newTransfer(c, s, size), w: w}
			r.stamped = true
			if c.Rank() == 1 {
				if err := r.serve(func() error { return r.transferOnce(0) }); err != nil {
					return err
				}
				continue
			}
			if err := r.measure(s, p, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

type progressRun struct {
	*transfer
	w     *work
	value byte // of the message under way
	last  delayed
}

// delayed is one transfer with a delay; times in µs.
type delayed struct {
	latency  float64 // at the receiver
	delay    float64 // from the return of the non-blocking call to the call of Wait
	wait     float64
	lastByte bool    // it arrived before the delay was over
	inCall   float64 // share of the pages that arrived within the call
	pages    float64 // share of the pages that arrived during the delay
}

// measure is the part of rank 0 in one scenario.
func (r *progressRun) measure(s scenario, p *Params, emit func(Result)) error {
	size := len(r.buf)
	warmup, n := p.iterations(size, 200, 31)
	warmup = max(warmup, n/2)
	if err := r.order(warmup + 2*n); err != nil {
		return err
	}
	var base []float64
	for range warmup {
		if err := r.transferOnce(0); err != nil {
			return err
		}
		base = append(base, r.last.latency)
	}
	delay := r.w.iterations(p.delay() * Median(base[len(base)/2:])) // the first ones are cold
	var without, with, done, left, seen, inCall, pages []float64
	for range n {
		if err := r.transferOnce(0); err != nil {
			return err
		}
		without = append(without, r.last.latency)
		if err := r.transferOnce(delay); err != nil {
			return err
		}
		d := r.last
		with, left = append(with, d.latency), append(left, d.wait)
		inCall, pages = append(inCall, d.inCall*100), append(pages, d.pages*100)
		done = append(done, doneMeanwhile(Median(without), d.delay, d.latency)*100)
		seen = append(seen, 0)
		if d.lastByte {
			seen[len(seen)-1] = 100
		}
	}
	if err := r.order(0); err != nil {
		return err
	}
	l0 := Median(without)
	for i := range left {
		left[i] *= 100 / l0
	}
	emit(middle(Result{Size: size, Metric: s.String(), Unit: "%"}, done))
	emit(middle(Result{Size: size, Metric: s.String() + "/left", Unit: "%", Beside: true}, left))
	if !s.send {
		emit(average(Result{Size: size, Metric: s.String() + "/last-byte", Unit: "%", Beside: true}, seen))
		emit(average(Result{Size: size, Metric: s.String() + "/pages-in-call", Unit: "%", Beside: true}, inCall))
		emit(average(Result{Size: size, Metric: s.String() + "/pages", Unit: "%", Beside: true}, pages))
	}
	emit(middle(Result{Size: size, Metric: s.String() + "/latency", Unit: "us", Beside: true}, without))
	emit(middle(Result{Size: size, Metric: s.String() + "/delayed", Unit: "us", Beside: true}, with))
	return nil
}

// transferOnce makes one transfer, delayed by iterations of the computation. Then rank 1 sends its
// time, which is also the acknowledgement that the sender waits for.
func (r *progressRun) transferOnce(iterations int) error {
	r.value = r.value%250 + 1
	if r.sends {
		fill(r.buf, r.value)
	}
	if err := r.awake(); err != nil {
		return err
	}
	r.last = delayed{}
	start, req, err := r.begin()
	if err != nil {
		return err
	}
	if iterations > 0 {
		r.delay(iterations)
	}
	waiting := time.Now()
	if _, err := req.Wait(); err != nil {
		return err
	}
	now := time.Now()
	r.last.latency, r.last.delay, r.last.wait = micros(now.Sub(start)), micros(waiting.Sub(r.returned)), micros(now.Sub(waiting))
	reported := []float64{r.last.latency}
	if r.c.Rank() == 1 {
		return mpi.Send(r.c, reported, 0, reportTag)
	}
	if _, err := mpi.Recv(r.c, reported, 1, reportTag); err != nil {
		return err
	}
	if r.sends {
		r.last.latency = reported[0]
	}
	return nil
}

// delay computes; a receiver reads its buffer now and then.
func (r *progressRun) delay(iterations int) {
	if !r.sends {
		r.last.inCall = r.pagesThere()
	}
	each := iterations/looks + 1
	for range looks {
		r.w.run(each)
		if !r.sends && !r.last.lastByte {
			r.last.lastByte = holds(r.buf, len(r.buf)-1, r.value)
		}
	}
	if !r.sends {
		r.last.pages = r.pagesThere() - r.last.inCall
	}
}

// pagesThere returns the share of the pages whose last byte belongs to this message.
func (r *progressRun) pagesThere() float64 {
	there, all := 0, 0
	for end := len(r.buf); end > 0; end -= pageSize {
		all++
		if holds(r.buf, end-1, r.value) {
			there++
		}
	}
	return float64(there) / float64(max(all, 1))
}

// holds reads a byte that may be written at the same time. The race is intended: the byte
// must be read from memory each time.
//
//go:noinline
//go:norace
func holds(buf []byte, i int, value byte) bool { return i >= 0 && buf[i] == value }
