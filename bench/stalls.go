package bench

// Stalls: rounds of a collective that take much longer than the others although nothing is
// lost. groups/loops/stalls.c has the same loop for other libraries.
//
// The time of a round is that of the rank that was longest in it. A stalled round took more
// than stallFactor times the median. Rounds follow each other without a barrier: an alltoall
// lets no rank run ahead by more than one round.
//
// A stalled round that overlaps a pause of a machine (pauses.go) is also counted as
// stalled-paused: there the machine is the cause, not the library.
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
		before := mpi.Profile(c)
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
		after := mpi.Profile(c)
		// The longest times, the marks of pauses, and the longest pause of all ranks.
		all := append(roundTimes(began, ends), pausedRounds(began, ends, found)...)
		all = append(all, micros(longestPause(found)))
		if err := mpi.Allreduce(c, all, all, mpi.Max[float64]()); err != nil {
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
		if err := mpi.Allreduce(c, causes, causes, mpi.Sum[float64]()); err != nil {
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

// stallFigures returns the figures of rounds, given their times and which of them a machine
// has paused.
func stallFigures(size int, times, paused []float64) []Result {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	mid := (sorted[(n-1)/2] + sorted[n/2]) / 2
	stalled, excused, above := 0.0, 0.0, 0.0
	for i, t := range times {
		if t > stallFactor*mid {
			stalled++
			excused += paused[i]
		}
		if t > micros(stallLimit) {
			above++
		}
	}
	return []Result{
		{Size: size, Metric: "round", Unit: "us", Value: mid, Min: sorted[0], P50: mid, P99: sorted[(n-1)*99/100]},
		single(size, "round-p99", "us", sorted[(n-1)*99/100]),
		single(size, "round-max", "us", sorted[n-1]),
		single(size, "stalled", "rounds", stalled),
		single(size, "stalled-paused", "rounds", excused),
		single(size, "above-limit", "rounds", above),
	}
}
