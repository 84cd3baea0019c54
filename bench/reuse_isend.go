package bench

// The gain of sending in place for non-blocking sends: Isend, the answer, Wait. On adapters
// such a send completes when the peer's adapter has acknowledged it. A blocking send would
// wait for that, so it copies there (decision 033), and benchmark reuse, which uses blocking
// sends, shows no gain. With Isend the completion arrives long before the answer.
//
// The worlds alternate every few messages. The messages are divided into rounds, and the gain
// is the median of the rounds' gains, so that other load for a while affects some rounds and
// not the figure. A third world copies too: its gain over the first is noise. The share of
// messages that were sent in place and the theoretical gain (T1 equation 5.6, P1
// equation 6) are reported as well.

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// isendWorlds are those of reuse, and a second one that copies.
var isendWorlds = []World{frequentWorlds[0], frequentWorlds[1], {"copy again", frequentWorlds[0].Settings}}

const (
	reuseIsendTag    = 32
	reuseIsendRounds = 15
)

func reuseIsendAlternating(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	for _, size := range p.Sizes {
		_, n := p.iterations(size, 6000, 1500)
		each := max(n/reuseIsendRounds, 1)
		bufs := make([][]byte, len(worlds))
		for k := range worlds {
			bufs[k] = make([]byte, size)
			fill(bufs[k], 1)
		}
		if _, err := isendTrips(worlds, bufs, max(p.Warmup, 2*reuseWarmup)); err != nil { // set up links, and use buffers often enough to be registered
			return err
		}
		peer := 1 - worlds[1].Rank()
		rows, before, err := inspect.FrequentBuffers(worlds[1], peer)
		if err != nil {
			return err
		}
		halves := make([][]float64, len(worlds)) // the median of each round
		for range reuseIsendRounds {
			times, err := isendTrips(worlds, bufs, each)
			if err != nil {
				return err
			}
			for k := range worlds {
				if len(times[k]) > 0 {
					halves[k] = append(halves[k], median(times[k]))
				}
			}
		}
		_, after, err := inspect.FrequentBuffers(worlds[1], peer)
		if err != nil {
			return err
		}
		if worlds[0].Rank() != 0 {
			continue // rank 0 has the clock
		}
		for k := range worlds {
			emit(k, middle(Result{Size: size}, halves[k]))
		}
		gain := middle(Result{Size: size, Metric: "gain", Unit: "%"}, savedBy(halves[0], halves[1]))
		emit(1, gain)
		emit(2, middle(Result{Size: size, Metric: "noise", Unit: "%"}, savedBy(halves[0], halves[2])))
		report := func(metric, unit string, v float64) {
			emit(1, Result{Size: size, Metric: metric, Unit: unit, Value: v, Min: v, P50: v, P99: v})
		}
		saved := 0.0 // where the rule does not register
		for _, r := range rows {
			if size >= r.Lo && size <= r.Hi && r.Isend > 0 {
				saved = r.Copy*float64(size)/(1.5*float64(r.Lo)) - r.Lookup // the row is valid for the middle of its range of lengths
			}
		}
		theory := saved / 1e3 / median(halves[0]) * 100
		report("theory", "%", theory)
		if theory > 0 {
			report("gain/theory", "x", gain.Value/theory)
		}
		direct, copied := float64(after.Direct-before.Direct), float64(after.Copied-before.Copied)
		report("direct", "%", direct/max(direct+copied, 1)*100)
	}
	return nil
}

// isendsPerBatch is the number of successive messages in one world. The first is not timed:
// the other rank may still wait for an ack in the previous world.
const isendsPerBatch = 9

// isendTrips returns half round trips in each world, in µs, of n timed messages; nothing at
// rank 1.
func isendTrips(worlds []*mpi.Comm, bufs [][]byte, n int) ([][]float64, error) {
	recv := make([]byte, len(bufs[0]))
	times := make([][]float64, len(worlds))
	for round := 0; round*(isendsPerBatch-1) < n; round++ {
		for j := range worlds {
			k := (j + round) % len(worlds) // none is always first
			var last mpi.Request
			for i := range isendsPerBatch {
				took, err := isendTrip(worlds[k], bufs[k], recv, &last)
				if err != nil {
					return nil, err
				}
				if i > 0 && worlds[k].Rank() == 0 {
					times[k] = append(times[k], micros(took)/2)
				}
			}
			if _, err := last.Wait(); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// isendTrip makes one round trip. last, the previous send, has completed by the time it is
// waited for: rank 0 waits outside of the measured time, rank 1 after it has received this
// message.
func isendTrip(c *mpi.Comm, buf, recv []byte, last *mpi.Request) (took time.Duration, err error) {
	if c.Rank() == 1 {
		if _, err = mpi.Recv(c, recv, 0, reuseIsendTag); err != nil {
			return 0, err
		}
	}
	if _, err = last.Wait(); err != nil {
		return 0, err
	}
	start := time.Now()
	*last = mpi.Isend(c, buf, 1-c.Rank(), reuseIsendTag)
	if c.Rank() == 0 {
		_, err = mpi.Recv(c, recv, 1, reuseIsendTag)
	}
	return time.Since(start), err
}

// savedBy returns what the second saves relative to the first, in percent, by round.
func savedBy(from, to []float64) []float64 {
	out := changes(from, to)
	for i := range out {
		out[i] = -out[i]
	}
	return out
}
