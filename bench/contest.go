package bench

// Algorithms of a collective, measured against each other at one size. They alternate call
// by call on communicators of one job, with a barrier after each, so that what disturbs
// the machine disturbs all of them. There are too many to give each the same time:
//
//	warm-up    one call of each: it plans its schedule and opens its connections
//	first      two calls of each; those that take more than twice the shortest time leave
//	second     two more calls; the fastest few stay
//	last       these alternate for as long as the budget allows
//
// An algorithm with a hopeless estimate is called once, without a warm-up, and returns to the
// others if the estimate was wrong. The first entry, which must support the calls, stays to
// the end.
//
// A measurement is that of a few calls and the barrier that ends them, on the clock of each
// rank; the result is the mean over the ranks. The time from the last arrival on, or the mean
// time in the call, would flatter some algorithms: where ranks share cores, the work of those
// that arrive first delays the arrival of the others, and a rank that leaves a rooted
// collective early has left the work to others.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

const (
	// slowInFirst is the factor to the shortest time above which an entry leaves after the
	// first calls, and slowInSecond after the second.
	slowInFirst, slowInSecond = 2, 1.25
	// mostFinalists is the number of entries, besides the first, that alternate last.
	mostFinalists = 4
	// hopeless is the factor to the estimate of the first entry from which an entry is
	// called once.
	hopeless = 3
	// fewestLaps and mostLaps limit the calls of each finalist.
	fewestLaps, mostLaps = 6, 200
	// callsAtOnce is how many calls of up to shortSize bytes are measured together, so that
	// the barrier matters less.
	callsAtOnce, shortSize = 4, 8 << 10
)

// Contest holds a communicator for each algorithm of a collective.
type Contest struct {
	c       *mpi.Comm
	k       collective
	calls   int // in one measurement
	entries []Entry
	comms   []*mpi.Comm
	data    *collectiveData
}

// Entry is an algorithm and what was measured of it. All ranks have the same entries; only
// rank 0 has the times.
type Entry struct {
	// Algorithm is written as in Config.Collective: "chain:segment=8192"; "" is the choice
	// of the library.
	Algorithm string
	// Choice is the algorithm that serves the calls, with its estimate.
	Choice inspect.CollectiveChoice
	// Once: the estimate is hopeless, so it was called once, without a warm-up.
	Once bool
	// Served is false if the algorithm does not support the calls. It was not called.
	Served bool
	// Last: it alternated to the end.
	Last bool
	// Times are those of the calls after the warm-up, in µs; those of the last calls if
	// Last is set.
	Times []float64
}

// Micros returns the median time in µs.
func (e *Entry) Micros() float64 {
	if len(e.Times) == 0 {
		return math.Inf(1)
	}
	return Median(e.Times)
}

// Best returns the fastest of the other entries that alternated to the end, and the time of
// the first entry divided by its time. Every other call decides which is the fastest, and
// the rest are compared: of several that are equal, the one that was lucky would win. If no
// other entry stayed to the end, Best returns the fastest one before. entries are those of
// rank 0.
func Best(entries []Entry) (best *Entry, ratio float64) {
	shortest := math.Inf(1)
	for i := range entries[1:] {
		e := &entries[1+i]
		if !e.Last {
			continue
		}
		if even, _ := halves(e.Times); Median(even) < shortest {
			best, shortest = e, Median(even)
		}
	}
	if best != nil {
		_, first := halves(entries[0].Times)
		_, other := halves(best.Times)
		return best, Median(first) / Median(other)
	}
	for i := range entries[1:] {
		if e := &entries[1+i]; e.Micros() < shortest {
			best, shortest = e, e.Micros()
		}
	}
	return best, entries[0].Micros() / shortest
}

// halves returns every other value from the first on, and from the second on.
func halves(values []float64) (even, odd []float64) {
	for i, v := range values {
		if i%2 == 0 {
			even = append(even, v)
		} else {
			odd = append(odd, v)
		}
	}
	return even, odd
}

// ContestCollectives returns the names of the collectives that a Contest supports.
func ContestCollectives() []string {
	names := []string{"barrier"}
	for _, k := range collectives() {
		if k.contest() {
			names = append(names, k.name)
		}
	}
	return names
}

// contest reports whether a Contest measures the collective: the regular forms, and
// reduce-scatter, whose form with counts is the only one here.
func (k *collective) contest() bool { return !k.irregular || k.name == k.kind.String() }

// NewContest creates the communicators. It is collective.
func NewContest(c *mpi.Comm, collective string, algorithms []string) (*Contest, error) {
	t := &Contest{c: c}
	var err error
	if t.k, err = contestCollective(collective); err != nil {
		return nil, err
	}
	for _, a := range algorithms {
		t.entries = append(t.entries, Entry{Algorithm: a})
	}
	t.comms, err = preferring(c, t.k, algorithms)
	return t, err
}

func contestCollective(name string) (collective, error) {
	if name == "barrier" {
		return collective{name: name, call: func(c *mpi.Comm, _ *collectiveData) error { return c.Barrier() }}, nil
	}
	for _, k := range collectives() {
		if k.name == name && k.contest() {
			return k, nil
		}
	}
	return collective{}, fmt.Errorf("bench: %q is no collective whose algorithms are compared; there are %v", name, ContestCollectives())
}

// Close frees the communicators. It is collective.
func (t *Contest) Close() error {
	for _, d := range t.comms {
		if err := d.Free(); err != nil {
			return err
		}
	}
	return nil
}

// Run measures all entries at a size. serves reports whether an entry supports the calls;
// it must be the same at all ranks. budget limits the time of the last calls. Run is
// collective.
func (t *Contest) Run(size int, serves func(algorithm string) bool, budget time.Duration) ([]Entry, error) {
	t.data, t.calls = t.k.data(t.c, size), 1
	if size <= shortSize {
		t.calls = callsAtOnce
	}
	entries := slices.Clone(t.entries)
	if err := t.estimate(entries, size, serves); err != nil {
		return nil, err
	}
	var all, warm []int
	for i := range entries {
		if entries[i].Served {
			all = append(all, i)
		}
		if entries[i].Served && !entries[i].Once {
			warm = append(warm, i)
		}
	}
	if err := t.laps(entries, warm, 1); err != nil {
		return nil, err
	}
	for i := range entries {
		entries[i].Times = nil
	}
	if err := t.laps(entries, all, 1); err != nil {
		return nil, err
	}
	if err := t.laps(entries, warm, 1); err != nil {
		return nil, err
	}
	kept, err := t.keep(entries, all, slowInFirst, len(all))
	if err != nil {
		return nil, err
	}
	if err := t.laps(entries, kept, 2); err != nil {
		return nil, err
	}
	if kept, err = t.keep(entries, kept, slowInSecond, mostFinalists); err != nil {
		return nil, err
	}
	n, err := t.lapsWithin(entries, kept, budget)
	if err != nil {
		return nil, err
	}
	for _, i := range kept {
		entries[i].Last, entries[i].Times = true, nil
	}
	return entries, t.laps(entries, kept, n)
}

// estimate sets what is known of the entries without a call.
func (t *Contest) estimate(entries []Entry, size int, serves func(algorithm string) bool) error {
	bytes := size
	if t.k.name == "reduce-scatter" { // the library counts a block
		bytes = (size + t.c.Size() - 1) / t.c.Size()
	}
	for i := range entries {
		e := &entries[i]
		if e.Served = e.Algorithm == "" || serves(e.Algorithm); !e.Served {
			continue
		}
		x, err := inspect.ExplainCollective(t.comms[i], t.k.name, bytes, 0)
		if err != nil {
			return err
		}
		e.Choice = x.CollectiveChoice
		e.Once = i > 0 && e.Choice.Seconds >= hopeless*entries[0].Choice.Seconds
	}
	return nil
}

// laps measures the listed entries a number of times, in turn; the one that begins changes.
func (t *Contest) laps(entries []Entry, list []int, n int) error {
	mine := make([]float64, 0, n*len(list))
	if err := t.c.Barrier(); err != nil {
		return err
	}
	for lap := range n {
		for i := range list {
			us, err := t.timeCall(list[(i+lap)%len(list)])
			if err != nil {
				return err
			}
			mine = append(mine, us)
		}
	}
	all := make([]float64, len(mine))
	if err := mpi.Reduce(t.c, mine, all, mpi.Sum, 0); err != nil || t.c.Rank() != 0 {
		return err
	}
	for i, us := range all {
		lap, i := i/len(list), i%len(list)
		e := &entries[list[(i+lap)%len(list)]]
		e.Times = append(e.Times, us/float64(t.c.Size()))
	}
	return nil
}

// timeCall returns the time of a call in µs.
func (t *Contest) timeCall(entry int) (float64, error) {
	start := time.Now()
	for range t.calls {
		if err := t.k.call(t.comms[entry], t.data); err != nil {
			return 0, err
		}
	}
	err := t.c.Barrier()
	return micros(time.Since(start)) / float64(t.calls), err
}

// keep returns the first entry and, of the listed others, at most a number of those whose
// shortest time is within a factor of the shortest of all. Rank 0 decides.
func (t *Contest) keep(entries []Entry, list []int, factor float64, most int) ([]int, error) {
	var kept []int
	if t.c.Rank() == 0 {
		kept = fastest(entries, list, factor, most)
	}
	return mpi.BcastValue(t.c, kept, 0)
}

func fastest(entries []Entry, list []int, factor float64, most int) []int {
	shortest := func(i int) float64 { return slices.Min(entries[i].Times) }
	order := slices.Clone(list)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shortest(a), shortest(b)) })
	limit := shortest(order[0]) * factor
	kept := []int{0}
	for _, i := range order {
		if i > 0 && shortest(i) <= limit && len(kept) <= most {
			kept = append(kept, i)
		}
	}
	slices.Sort(kept)
	return kept
}

// lapsWithin returns the number of laps of the listed entries that fit into a time. Rank 0
// decides.
func (t *Contest) lapsWithin(entries []Entry, list []int, budget time.Duration) (int, error) {
	n := int64(fewestLaps)
	if t.c.Rank() == 0 {
		lap := 0.0
		for _, i := range list {
			lap += entries[i].Micros() * float64(t.calls)
		}
		n = min(max(int64(micros(budget)/max(lap, 1)), fewestLaps), mostLaps)
	}
	n, err := mpi.BcastValue(t.c, n, 0)
	return int(n), err
}
