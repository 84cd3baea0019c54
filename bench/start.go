package bench

// From the start of a job to its first message.

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

func startBenchmarks() []Benchmark {
	return []Benchmark{
		{Name: "first-message", Title: "From Start to First Message", Doc: "time from the start of the launcher until every rank has received a message, and business cards fetched for it", Ranks: 64, AnyRanks: true,
			Metric: "first-message", Unit: "s", Column: "Time (s)", Run: firstMessage,
			Flags: []Flag{{Name: "since", Help: "start time of the launcher, as printed by date +%s.%N (default: when the ranks have joined, or now if this command starts them)",
				Value: func(p *Params) any { return &p.Since }, Start: func() string { return fmt.Sprintf("%.6f", float64(time.Now().UnixMicro())/1e6) }}}},
		{Name: "empty", Title: "Empty Job", Doc: "joins and leaves; time it from outside", Ranks: 2, AnyRanks: true,
			Run: func(*mpi.Comm, *Params, func(Result)) error { return nil }},
	}
}

const neighborTag = 4

// firstMessage: every rank sends one message to the next in a ring and receives one from
// the previous rank. The time counts from Params.Since until the last rank has received its
// message. The number of business cards that a rank has fetched by then is a second
// figure. Ranks on other hosts use their own clocks.
func firstMessage(c *mpi.Comm, p *Params, emit func(Result)) error {
	since := time.Now()
	if p.Since != 0 {
		since = time.UnixMicro(int64(p.Since * 1e6))
	}
	n, me := c.Size(), c.Rank()
	next, previous := (me+1)%n, (me+n-1)%n
	in, out := []int64{-1}, []int64{int64(me)}
	requests := []mpi.Request{mpi.Irecv(c, in, previous, neighborTag), mpi.Isend(c, out, next, neighborTag)}
	if err := mpi.WaitAll(requests...); err != nil {
		return err
	}
	if in[0] != int64(previous) {
		return fmt.Errorf("bench: first-message: rank %d got %d from rank %d", me, in[0], previous)
	}
	took, cards := time.Since(since), inspect.CardsFetched(c)

	// Reporting to rank 0 fetches more cards, which are not counted.
	mine := []float64{took.Seconds(), float64(cards)}
	all := make([]float64, len(mine)*n)
	if err := mpi.Gather(c, mine, all, 0); err != nil || me != 0 {
		return err
	}
	times, fetched := make([]float64, n), make([]float64, n)
	for r := range n {
		times[r], fetched[r] = all[2*r], all[2*r+1]
	}
	emit(latest(Result{}, times))
	emit(latest(Result{Metric: "cards", Unit: "cards"}, fetched))
	return nil
}

// latest returns a result whose value is the largest of all ranks.
func latest(r Result, ranks []float64) Result {
	slices.Sort(ranks)
	n := len(ranks)
	r.Value, r.Min, r.P50, r.P99 = ranks[n-1], ranks[0], ranks[n/2], ranks[min(n*99/100, n-1)]
	return r
}
