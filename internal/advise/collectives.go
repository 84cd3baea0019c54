package advise

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/trace"
)

// dominates is the share of the lost time from which a rank is the reason, and not chance:
// ranks that take fanouts in being late have no work to give away.
const dominates = 0.6

// mostChance is how probable it may be that a rank is the last as often as it is if all ranks are
// as likely: in six calls of two ranks one of them is the last each time in 3 % of the runs.
const mostChance = 1e-3

// chanceOfLast bounds the probability that some rank is the last of n in so many of all calls by
// chance: the Chernoff bound for each rank.
func chanceOfLast(n, last, calls int) float64 {
	share, p := float64(last)/float64(calls), 1/float64(n)
	if share <= p {
		return 1
	}
	distance := share * math.Log(share/p)
	if share < 1 {
		distance += (1 - share) * math.Log((1-share)/(1-p))
	}
	return float64(n) * math.Exp(-float64(calls)*distance)
}

// imbalances finds the rank that enters the collectives of a call site last. With equal work
// all ranks enter at the mean of the times, so the call would begin earlier by the distance of
// the last from the mean. The median of all calls counts: a rank that waits for its core is late
// by much, in few of them.
func (j *job) imbalances() (all []Finding) {
	type late struct {
		by    perRank
		times map[int][]float64 // by rank: in the calls for which it is the last
		n     int
	}
	sites := map[string]*late{}
	for _, calls := range j.Collectives {
		var sum float64
		last := calls[0]
		for _, c := range calls {
			sum += float64(j.event(c).Begin)
			if j.event(c).Begin > j.event(last).Begin {
				last = c
			}
		}
		where := siteOf(j.event(last))
		s := sites[where]
		if s == nil {
			s = &late{by: perRank{}, times: map[int][]float64{}}
			sites[where] = s
		}
		s.n++
		r, by := j.rank(last), float64(j.event(last).Begin)-sum/float64(len(calls))
		s.times[r] = append(s.times[r], by)
		s.by[r] += by
	}
	for _, where := range sortKeys(sites) {
		s := sites[where]
		rank, lost, total := s.by.most()
		times := s.times[rank]
		n := len(j.Trace.Ranks)
		if n < 2 || lost < dominates*total || len(times) <= s.n/2 || chanceOfLast(n, len(times), s.n) > mostChance {
			continue
		}
		slices.Sort(times)
		middle := times[len(times)-s.n/2-1] // in the other calls it is not late
		all = append(all, Finding{
			Sites: []string{where}, Ranks: []int{rank}, Gain: middle * float64(s.n) / j.span,
			Evidence: fmt.Sprintf("rank %d is the last of %d ranks in %d of %d calls, by %v after their mean",
				rank, n, len(times), s.n, brief(middle)),
			Change: fmt.Sprintf("give rank %d less of the work before this call", rank),
			change: func(w *whatIf) { w.balance(where) },
		})
	}
	return all
}

// fanouts finds a rank that sends to all others one after the other, or receives from all.
func (j *job) fanouts() (all []Finding) {
	type fanout struct {
		time   perRank
		rounds int
		sends  bool
	}
	n := len(j.Trace.Ranks)
	if n < 4 {
		return nil
	}
	sites := map[string]*fanout{}
	for r := range j.Trace.Ranks {
		k := j.Trace.Ranks[r]
		for _, run := range runsOf(k.Events, func(a, b *trace.Event) bool {
			return a.Site == b.Site && a.Name == b.Name && a.Comm == b.Comm && a.Kind == b.Kind
		}) {
			first := &k.Events[run.from]
			sends := first.Sends
			peers := map[int]bool{}
			for i := run.from; i < run.to; i++ {
				if e := &k.Events[i]; e.Sends == sends && e.Bytes == first.Bytes {
					peers[int(e.Peer)] = true
					if !sends {
						peers[int(e.From)] = true
					}
				}
			}
			delete(peers, trace.None)
			delete(peers, trace.AnyRank)
			if first.Site == "" || !sends && first.From < 0 || len(peers) < n-1 {
				continue
			}
			s := sites[siteOf(first)]
			if s == nil {
				s = &fanout{time: perRank{}, sends: sends}
				sites[siteOf(first)] = s
			}
			s.rounds += (run.to - run.from) / (n - 1)
			s.time[k.Rank] += float64(k.Events[run.to-1].End - first.Begin)
		}
	}
	for _, where := range sortKeys(sites) {
		s := sites[where]
		if len(s.time) > 1 { // all do it: an exchange of its own kind, not one root
			continue
		}
		rank, time, _ := s.time.most()
		steps := float64(bits.Len(uint(n - 1)))
		what, instead := "sends to", "Bcast if all get the same, or Scatter"
		if !s.sends {
			what, instead = "receives from", "Reduce or Gather"
		}
		all = append(all, Finding{
			Sites: []string{where}, Ranks: []int{rank}, Gain: time / j.span * (1 - steps/float64(n-1)),
			Evidence: fmt.Sprintf("rank %d %s each of %d ranks one by one, %d times: %v in all", rank, what, n-1, s.rounds, brief(time)),
			change:   func(w *whatIf) { w.shorten(where, steps/float64(n-1)) },
			Change:   fmt.Sprintf("call %s: its tree has %v steps instead of %d", instead, steps, n-1),
		})
	}
	return all
}

// run is a range of events.
type run struct{ from, to int }

// runsOf splits events into runs of calls that are alike. Calls that complete others do not end
// a run.
func runsOf(events []trace.Event, alike func(a, b *trace.Event) bool) (all []run) {
	for i := 0; i < len(events); {
		to, last := i+1, i+1
		for to < len(events) {
			if e := &events[to]; alike(&events[i], e) {
				last = to + 1
			} else if e.Kind != kindWait {
				break
			}
			to++
		}
		if last-i > 1 {
			all = append(all, run{i, last})
		}
		i = last
	}
	return all
}

// Kinds of calls.
const (
	kindWait       = "wait" // completes others
	kindCollective = "collective"
)

// brief rounds a time in ns to three digits.
func brief(ns float64) time.Duration {
	if ns < 1 {
		return 0
	}
	unit := math.Pow(10, max(math.Floor(math.Log10(ns))-2, 0))
	return time.Duration(math.Round(ns/unit) * unit)
}

// sortKeys returns the keys of a map in order.
func sortKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
