package bench

// Stalls: rounds of a collective that take much longer than the others although nothing is
// lost. peers/loops/stalls.c has the same loop for other libraries.
//
// The time of a round is that of the rank that was longest in it. A stalled round took more
// than stallFactor times the median. Rounds follow each other without a barrier: an alltoall
// lets no rank run ahead by more than one round.
//
// The figure cpu is the processor time of all ranks for one message. Where ranks share
// cores, hardly any of it is spent waiting: a rank that waits yields to one that works.

import (
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

const (
	stallFactor = 5
	// stallLimit is a time that no round may exceed.
	stallLimit  = 20 * time.Millisecond
	stallRounds = 10_000
)

// StallCauses lists the counters that explain stalls. A counter that no device of the job
// has is 0.
func StallCauses() []prof.Name {
	return []prof.Name{
		"datagrams.dropped", "datagrams.retransmitted", "segments.retransmitted", "connections.made",
		"thread.takeovers", "thread.needless", prof.Waits, prof.WaitYields, prof.WaitParks, prof.MessagesNoCredit,
	}
}

// stalls: alltoall round by round.
func stalls(c *mpi.Comm, p *Params, emit func(Result)) error {
	rounds := p.Iterations
	if rounds == 0 {
		rounds = stallRounds
	}
	for _, size := range p.Sizes {
		in, _ := buffers(size * c.Size())
		_, out := buffers(size * c.Size())
		warmup := p.Warmup
		if warmup == 0 {
			warmup = max(rounds/10, 10)
		}
		for range warmup {
			if err := mpi.Alltoall(c, in, out); err != nil {
				return err
			}
		}
		before := mpi.Profile(c)
		used, _ := cputime.Used()
		times := make([]float64, rounds)
		last := time.Now()
		for i := range times {
			if err := mpi.Alltoall(c, in, out); err != nil {
				return err
			}
			now := time.Now()
			times[i], last = micros(now.Sub(last)), now
		}
		usedAfter, _ := cputime.Used()
		after := mpi.Profile(c)
		if err := mpi.Allreduce(c, times, times, mpi.Max[float64]()); err != nil {
			return err
		}
		slices.Sort(times)
		for _, r := range stallFigures(size, times) {
			emit(r)
		}
		names := StallCauses()
		causes := make([]float64, len(names), len(names)+1)
		for i, name := range names {
			causes[i] = float64(after.Of(name) - before.Of(name))
		}
		causes = append(causes, micros(usedAfter-used)/float64(rounds*c.Size()*max(c.Size()-1, 1)))
		if err := mpi.Allreduce(c, causes, causes, mpi.Sum[float64]()); err != nil {
			return err
		}
		for i, name := range names {
			emit(single(size, string(name), "events", causes[i]))
		}
		emit(single(size, "cpu", "us", causes[len(names)]))
	}
	return nil
}

// single is a secondary figure without a distribution.
func single(size int, metric, unit string, v float64) Result {
	return Result{Size: size, Metric: metric, Unit: unit, Value: v, Min: v, P50: v, P99: v, Beside: true}
}

// stallFigures returns the figures of rounds, given their times in ascending order.
func stallFigures(size int, times []float64) []Result {
	n := len(times)
	mid := (times[(n-1)/2] + times[n/2]) / 2
	above := func(limit float64) float64 {
		at, _ := slices.BinarySearchFunc(times, limit, func(t, limit float64) int {
			if t <= limit {
				return -1
			}
			return 1
		})
		return float64(n - at)
	}
	return []Result{
		{Size: size, Metric: "round", Unit: "us", Value: mid, Min: times[0], P50: mid, P99: times[(n-1)*99/100]},
		single(size, "round-p99", "us", times[(n-1)*99/100]),
		single(size, "round-max", "us", times[n-1]),
		single(size, "stalled", "rounds", above(stallFactor*mid)),
		single(size, "above-limit", "rounds", above(micros(stallLimit))),
	}
}
