package bench

// The gain of sending from where the data is for calls that go on: Isend, the answer, Wait.
// On adapters such a send ends when the peer's adapter has said so. A blocking send would
// wait for that, so it copies there (decision 033), and reuse, which sends blocking, shows
// nothing. Who goes on has the end long before the answer.
//
// The worlds alternate every few messages. The messages are cut into rounds, and the gain
// is the median of the rounds' gains, so that a machine that is busy for a while spoils some
// rounds and not the figure. A third world copies too: what it gains over the first is noise.
// How many of the messages really were sent from where they are is reported as well, and what
// theory promises (T1 equation 5.6, P1 equation 6).

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// isendWorlds are those of reuse, and the first once more.
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
		if _, err := isendTrips(worlds, bufs, max(p.Warmup, 2*reuseWarmup)); err != nil { // links, and the uses that earn a registration
			return err
		}
		peer := 1 - worlds[1].Rank()
		rows, before, err := mpi.FrequentUse(worlds[1], peer)
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
		_, after, err := mpi.FrequentUse(worlds[1], peer)
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
		saved := 0.0 // where the rule keeps off
		for _, r := range rows {
			if size >= r.Lo && size <= r.Hi && r.Isend > 0 {
				saved = r.Copy*float64(size)/(1.5*float64(r.Lo)) - r.Lookup // the row is for the middle of its lengths
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
// the other rank may still wait for an ack in the world before.
const isendsPerBatch = 9

// isendTrips is half round trips in each world, in µs, of n messages that are timed and
// more that are not; nothing at rank 1.
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

// isendTrip is a message there and back. The send before, last, has ended by the time that it
// is asked for: rank 0 does so outside of the time, rank 1 after it has waited for this message.
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

// savedBy is what the second saves of the first, in percent, round by round.
func savedBy(from, to []float64) []float64 {
	out := changes(from, to)
	for i := range out {
		out[i] = -out[i]
	}
	return out
}
