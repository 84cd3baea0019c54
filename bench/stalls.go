package bench

// Stalls: rounds of a collective that take much longer than the others although nothing is
// lost. groups/loops/stalls.c has the same loop for other libraries.
//
// The time of a round is that of the rank that was longest in it. A stalled round took more
// than stallFactor times the median. Rounds follow each other without a barrier: an alltoall
// lets no rank run ahead by more than one round.
//
// Rounds that overlap a pause of a core (pauses.go) are not judged, because there the
// machine is the cause and not the library. They are listed: paused is their number,
// paused-stalled how many of them took more than stallFactor times the median of the
// others, and paused-max the longest.
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

func stallBenchmarks() []Benchmark {
	return []Benchmark{{Name: "stalls", Title: "Stalled Rounds of Alltoall", Doc: "rounds of alltoall one by one: median, p99, maximum, and the number above 5 times the median, with counters of their causes and the pauses of the machines themselves", Ranks: 16, AnyRanks: true,
		Sizes: []int{8 << 10}, Metric: "round", Unit: "us", Column: "Round (us)", Run: stalls}}
}

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
		"datagrams.dropped", "datagrams.probes", "datagrams.timeouts", "datagrams.retransmitted", "segments.retransmitted", "connections.made",
		"thread.takeovers", "thread.needless", prof.Waits, prof.WaitYields, prof.WaitParks, prof.MessagesNoCredit,
	}
}

// stalls: alltoall round by round.
func stalls(c *mpi.Comm, p *Params, emit func(Result)) error {
	rounds := p.Iterations
	if rounds == 0 {
		rounds = stallRounds
	}
	watches, err := firstOfMachine(c)
	if err != nil {
		return err
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
		before := c.World().Profile()
		used, _ := cputime.Used()
		var monitor *pauseMonitor
		if watches {
			monitor = watchPauses()
		}
		ends := make([]time.Time, rounds)
		began := time.Now()
		for i := range ends {
			if err = mpi.Alltoall(c, in, out); err != nil {
				break
			}
			ends[i] = time.Now()
		}
		var found []pause
		var stolen time.Duration
		if monitor != nil {
			found, stolen = monitor.stop()
		}
		if err != nil {
			return err
		}
		usedAfter, _ := cputime.Used()
		after := c.World().Profile()
		// The longest times, the marks of pauses, and the longest pause of all ranks.
		all := append(roundTimes(began, ends), pausedRounds(began, ends, found)...)
		all = append(all, micros(longestPause(found)))
		if err := mpi.Allreduce(c, all, all, mpi.Max); err != nil {
			return err
		}
		for _, r := range stallFigures(size, all[:rounds], all[rounds:2*rounds]) {
			emit(r)
		}
		emit(single(size, "pause-max", "us", all[2*rounds]))
		names := StallCauses()
		causes := make([]float64, len(names), len(names)+4)
		for i, name := range names {
			causes[i] = float64(after.Of(name) - before.Of(name))
		}
		without := 0.0 // monitors without priority
		if monitor != nil && !monitor.priority {
			without = 1
		}
		causes = append(causes, micros(usedAfter-used)/float64(rounds*c.Size()*max(c.Size()-1, 1)), float64(len(found)), micros(stolen), without)
		if err := mpi.Allreduce(c, causes, causes, mpi.Sum); err != nil {
			return err
		}
		for i, name := range names {
			emit(single(size, string(name), "events", causes[i]))
		}
		rest := causes[len(names):]
		emit(single(size, "cpu", "us", rest[0]))
		emit(single(size, "pauses", "events", rest[1]))
		emit(single(size, "stolen", "us", rest[2]))
		emit(single(size, "pauses-unprivileged", "machines", rest[3]))
	}
	return nil
}

// single is a secondary figure without a distribution.
func single(size int, metric, unit string, v float64) Result {
	return Result{Size: size, Metric: metric, Unit: unit, Value: v, Min: v, P50: v, P99: v, Beside: true}
}

// roundTimes returns the time of each round in microseconds.
func roundTimes(began time.Time, ends []time.Time) []float64 {
	times := make([]float64, len(ends))
	for i, end := range ends {
		times[i], began = micros(end.Sub(began)), end
	}
	return times
}

// stallFigures summarizes the rounds that overlap no pause, and lists the others. paused
// marks the rounds during which a core has paused.
func stallFigures(size int, times, paused []float64) []Result {
	var sorted, others []float64
	for i, t := range times {
		if paused[i] > 0 {
			others = append(others, t)
		} else {
			sorted = append(sorted, t)
		}
	}
	slices.Sort(sorted)
	if len(sorted) == 0 {
		sorted = []float64{0} // nothing can be judged
	}
	n := len(sorted)
	mid, p99 := (sorted[(n-1)/2]+sorted[n/2])/2, sorted[(n-1)*99/100]
	above := func(times []float64, limit float64) (count float64) {
		for _, t := range times {
			if t > limit {
				count++
			}
		}
		return count
	}
	return []Result{
		{Size: size, Metric: "round", Unit: "us", Value: mid, Min: sorted[0], P50: mid, P99: p99},
		single(size, "round-p99", "us", p99),
		single(size, "round-max", "us", sorted[n-1]),
		single(size, "stalled", "rounds", above(sorted, stallFactor*mid)),
		single(size, "above-limit", "rounds", above(sorted, micros(stallLimit))),
		single(size, "paused", "rounds", float64(len(others))),
		single(size, "paused-stalled", "rounds", above(others, stallFactor*mid)),
		single(size, "paused-max", "us", slices.Max(append(others, 0))),
	}
}
