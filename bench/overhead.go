package bench

// The cost of speculation without benefit (T1 4.4.3). Five loops:
//
//   - plain: a ping-pong of blocking calls;
//   - tight: a ping-pong of non-blocking calls, each followed by Wait, where RTS and RTR
//     may cross;
//   - crossing: RTS and RTR always cross, because sender and receiver call at the same
//     time, so that every RTR is wasted;
//   - cg: both ranks receive, send and wait without computation, the pattern of NAS CG
//     that does not gain (T1 figure 4.18);
//   - wrong-guess: tight, with short messages into long buffers, where the receiver
//     predicts the wrong protocol each time.
//
// A sixth program sends mixed messages and counts the control packets
// (overhead_volume.go).
//
// The cost is one or two percent, and two jobs of the same program differ by ten. So all
// settings run in one job, each in a world of its own, and the worlds alternate batch by
// batch; a change is the median of the changes between adjacent batches.

import (
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

func overheadBenchmarks() []Benchmark {
	return []Benchmark{{Name: "rndv-overhead", Title: "Cost of Speculation without Benefit", Doc: "loops in which an RTR crosses an RTS, or the receiver predicts the wrong protocol", Ranks: 2,
		Sizes: []int{1 << 10, 8 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20}, Metric: "latency", Unit: "us", Column: "Latency (us)", Run: rendezvousOverhead, Alternating: overheadAlternating, Protocols: true,
		Variants: []string{"off", "auto", "spec"}}}
}

const (
	overheadTag = 17
	momentTag   = 18
	// lead is how far ahead the common start time is set: longer than the message that
	// announces it takes.
	lead = 3 * time.Microsecond
	// longBuffer makes a receiver expect a rendezvous.
	longBuffer = 1 << 20
)

// overheadLoop is one of the loops. make allocates its buffers in a world and returns a
// function that runs n iterations and returns at rank 0 the time of one in µs.
type overheadLoop struct {
	name string
	make func(c *mpi.Comm, size int) func(n int) (float64, error)
	// short messages only.
	short bool
}

func overheadLoops() []overheadLoop {
	return []overheadLoop{
		{name: "plain", make: plainRoundTrip},
		{name: "tight", make: func(c *mpi.Comm, size int) func(int) (float64, error) { return tightRoundTrip(c, size, size) }},
		{name: "crossing", make: crossing},
		{name: "cg", make: bothAtOnce},
		{name: "wrong-guess", make: func(c *mpi.Comm, size int) func(int) (float64, error) { return tightRoundTrip(c, size, longBuffer) }, short: true},
	}
}

func rendezvousOverhead(c *mpi.Comm, p *Params, emit func(Result)) error {
	return overheadAlternating([]*mpi.Comm{c}, p, func(_ int, r Result) { emit(r) })
}

func overheadAlternating(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	choices, err := inspect.Explain(worlds[0], 1-worlds[0].Rank())
	if err != nil {
		return err
	}
	for _, size := range p.Sizes {
		for _, loop := range overheadLoops() {
			if loop.short && !eager(choices, size) {
				continue
			}
			warmup, n := p.iterations(size, 10000, 200)
			times, err := loop.alternate(worlds, size, warmup, n)
			if err != nil {
				return err
			}
			for k := range worlds {
				r := Result{Size: size, Metric: loop.name, Unit: "us"}
				emit(k, middle(r, times[k]))
				if k > 0 {
					r.Unit, r.Against = "%", "the first"
					emit(k, middle(r, changes(times[0], times[k])))
				}
			}
		}
	}
	messages := mixedMessages
	if p.Iterations > 0 {
		messages = min(messages, p.Iterations)
	}
	return mixedVolume(worlds, messages, emit)
}

// eager reports whether messages of a size are sent by the eager protocol.
func eager(choices []inspect.Choice, size int) bool {
	for _, ch := range choices {
		if ch.Lo <= size && size <= ch.Hi {
			return ch.Protocol == "eager"
		}
	}
	return false
}

// alternate returns times in µs by world and batch.
func (l overheadLoop) alternate(worlds []*mpi.Comm, size, warmup, n int) ([][]float64, error) {
	run := make([]func(int) (float64, error), len(worlds))
	for k, c := range worlds {
		run[k] = l.make(c, size)
		if _, err := run[k](warmup); err != nil {
			return nil, err
		}
	}
	times := make([][]float64, len(worlds))
	count, each := batches(n)
	order := make([]int, len(worlds))
	for k := range order {
		order[k] = k
	}
	// All ranks draw the same order.
	chance := work{state: uint64(size) + 1}
	for range count {
		chance.run(3)
		if chance.state>>40&1 == 1 {
			slices.Reverse(order)
		}
		for _, k := range order {
			t, err := run[k](each)
			if err != nil {
				return nil, err
			}
			times[k] = append(times[k], t)
		}
	}
	return times, nil
}

// changes returns the changes from one row to another, in percent.
func changes(from, to []float64) []float64 {
	out := make([]float64, min(len(from), len(to)))
	for i := range out {
		out[i] = (to[i]/from[i] - 1) * 100
	}
	return out
}

// plainRoundTrip returns half of the round trip.
func plainRoundTrip(c *mpi.Comm, size int) func(int) (float64, error) {
	sbuf, rbuf := buffers(size)
	return func(n int) (float64, error) {
		start := time.Now()
		err := pingpong(c, sbuf, rbuf, overheadTag, n, false)
		return micros(time.Since(start)) / float64(2*n), err
	}
}

// tightRoundTrip returns half of the round trip of messages into a buffer that may be longer.
func tightRoundTrip(c *mpi.Comm, size, buffer int) func(int) (float64, error) {
	sbuf, _ := buffers(size)
	_, rbuf := buffers(buffer)
	peer := 1 - c.Rank()
	return func(n int) (float64, error) {
		start := time.Now()
		for i := range 2 * n {
			var req mpi.Request
			if c.Rank() == i%2 {
				req = mpi.Isend(c, sbuf, peer, overheadTag)
			} else {
				req = mpi.Irecv(c, rbuf, peer, overheadTag)
			}
			if _, err := req.Wait(); err != nil {
				return 0, err
			}
		}
		return micros(time.Since(start)) / float64(2*n), nil
	}
}

// bothAtOnce sends a message each way at the same time.
func bothAtOnce(c *mpi.Comm, size int) func(int) (float64, error) {
	sbuf, rbuf := buffers(size)
	peer := 1 - c.Rank()
	return func(n int) (float64, error) {
		start := time.Now()
		for range n {
			received := mpi.Irecv(c, rbuf, peer, overheadTag)
			if err := mpi.Send(c, sbuf, peer, overheadTag); err != nil {
				return 0, err
			}
			if _, err := received.Wait(); err != nil {
				return 0, err
			}
		}
		return micros(time.Since(start)) / float64(n), nil
	}
}

// crossing measures from the time of both calls to the end of the receive. It compares
// clocks, so both ranks must be on one host.
func crossing(c *mpi.Comm, size int) func(int) (float64, error) {
	sbuf, rbuf := buffers(size)
	moment, reported := []int64{0}, []float64{0}
	return func(n int) (float64, error) {
		var took []float64
		for i := range n {
			if c.Rank() == 0 {
				moment[0] = time.Now().Add(lead).UnixNano()
				if err := mpi.Send(c, moment, 1, momentTag); err != nil {
					return 0, err
				}
			} else if _, err := mpi.Recv(c, moment, 0, momentTag); err != nil {
				return 0, err
			}
			for time.Now().UnixNano() < moment[0] {
			}
			if c.Rank() == i%2 { // they alternate as sender
				if _, err := mpi.Isend(c, sbuf, 1-c.Rank(), overheadTag).Wait(); err != nil {
					return 0, err
				}
				continue
			}
			if _, err := mpi.Irecv(c, rbuf, 1-c.Rank(), overheadTag).Wait(); err != nil {
				return 0, err
			}
			took = append(took, float64(time.Now().UnixNano()-moment[0])/1e3)
		}
		if len(took) == 0 { // one iteration has one receiver
			took = []float64{0}
		}
		if c.Rank() == 1 {
			reported[0] = Median(took)
			return 0, mpi.Send(c, reported, 0, reportTag)
		}
		if _, err := mpi.Recv(c, reported, 1, reportTag); err != nil {
			return 0, err
		}
		if n == 1 {
			return reported[0], nil
		}
		return (reported[0] + Median(took)) / 2, nil
	}
}
