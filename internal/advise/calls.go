package advise

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/muster-mpi/muster/internal/trace"
)

// exchanges finds loops in which each rank sends a short message to each other. Long ones gain
// little from a collective: it has as many steps.
func (j *job) exchanges() (all []Finding) {
	n := len(j.Trace.Ranks)
	if n < 4 {
		return nil
	}
	type exchange struct {
		time   perRank
		rounds int
	}
	sites := map[string]*exchange{}
	for _, k := range j.Trace.Ranks {
		for _, run := range runsOf(k.Events, func(a, b *trace.Event) bool {
			return a.Sends && b.Sends && a.Site == b.Site && a.Name == b.Name && a.Comm == b.Comm && b.Bytes <= shortMessage
		}) {
			first, peers := &k.Events[run.from], map[int]bool{}
			for i := run.from; i < run.to; i++ {
				if e := &k.Events[i]; e.Sends && e.Bytes <= shortMessage {
					peers[int(e.Peer)] = true
				}
			}
			if delete(peers, k.Rank); !first.Sends || first.Site == "" || len(peers) < n-1 {
				continue
			}
			s := sites[siteOf(first)]
			if s == nil {
				s = &exchange{time: perRank{}}
				sites[siteOf(first)] = s
			}
			s.rounds += (run.to - run.from) / (n - 1)
			s.time[k.Rank] += float64(k.Events[run.to-1].End - first.Begin)
		}
	}
	steps := float64(bits.Len(uint(n - 1)))
	for _, where := range sortKeys(sites) {
		s := sites[where]
		if len(s.time) < n {
			continue
		}
		_, _, total := s.time.most()
		all = append(all, Finding{
			Sites: []string{where}, Gain: total / float64(n) / j.span * (1 - steps/float64(n-1)),
			Evidence: fmt.Sprintf("each of %d ranks sends a short message to each other, %d times: %v of a rank", n, s.rounds/n, brief(total/float64(n))),
			change:   func(w *whatIf) { w.shorten(where, steps/float64(n-1)) },
			Change:   fmt.Sprintf("call Alltoall, or Allgather if all get the same: %v steps instead of %d", steps, n-1),
		})
	}
	return all
}

// sameShort reports whether two collectives could be one with the data of both.
func sameShort(a, b *trace.Event) bool {
	return a.Kind == kindCollective && b.Kind == kindCollective && a.Site == b.Site && a.Name == b.Name && a.Comm == b.Comm && a.Peer == b.Peer &&
		b.Bytes > 0 && b.Bytes <= shortMessage && !b.Starts
}

// shortRows returns the rows of short collectives with little computation between them.
func shortRows(events []trace.Event) (rows []run) {
	for _, r := range runsOf(events, sameShort) {
		first, inside := &events[r.from], int64(0)
		if first.Kind != "collective" || first.Bytes == 0 || first.Bytes > shortMessage {
			continue
		}
		for i := r.from; i < r.to; i++ {
			inside += events[i].End - events[i].Begin
		}
		between := 2 * inside / int64(r.to-r.from)
		from := r.from
		for i := r.from + 1; i <= r.to; i++ {
			if i < r.to && events[i].Begin-events[i-1].End <= between {
				continue
			}
			if i-from >= fewestInBurst {
				rows = append(rows, run{from, i})
			}
			from = i
		}
	}
	return rows
}

// shortCollectives finds collectives of little data in a row, with little computation between them.
func (j *job) shortCollectives() (all []Finding) {
	type row struct {
		time         perRank
		runs, number int
	}
	sites, late := map[string]*row{}, j.lateParts()
	for r, k := range j.Trace.Ranks {
		for _, run := range shortRows(k.Events) {
			first, inside := &k.Events[run.from], int64(0)
			for i := run.from; i < run.to; i++ {
				inside += k.Events[i].End - k.Events[i].Begin - late[r][i]
			}
			s := sites[siteOf(first)]
			if s == nil {
				s = &row{time: perRank{}}
				sites[siteOf(first)] = s
			}
			s.runs, s.number = s.runs+1, s.number+run.to-run.from
			s.time[k.Rank] += float64(inside)
		}
	}
	for _, where := range sortKeys(sites) {
		s := sites[where]
		if len(s.time) < j.callers(where) { // for some ranks it is not a row, but a wait
			continue
		}
		_, _, total := s.time.most()
		each, mean := s.number/s.runs, total/float64(len(s.time))
		all = append(all, Finding{
			Sites: []string{where}, Gain: mean / j.span * (1 - 1/float64(each)),
			Evidence: fmt.Sprintf("%d calls of at most %d bytes in a row, %d times: %v of a rank", each, shortMessage, s.runs/len(s.time), brief(mean)),
			change:   func(w *whatIf) { w.combineCollectives(where) },
			Change:   "make one call with the data of all, if none needs the result of another",
		})
	}
	return all
}

// callers returns the number of ranks that call at a call site.
func (j *job) callers(where string) (n int) {
	for _, k := range j.Trace.Ranks {
		if slices.ContainsFunc(k.Events, func(e trace.Event) bool { return siteOf(&e) == where }) {
			n++
		}
	}
	return n
}

// impliedBarrier reports whether a call is a barrier that the next call implies.
func (j *job) impliedBarrier(a, next *trace.Event) bool {
	return a.Name == "Barrier" && next.Kind == kindCollective && !next.Starts && a.Comm == next.Comm && next.Peer < 0 && 2*(next.Begin-a.End) < a.End-a.Begin
}

// barriers finds barriers right before collectives in which all ranks wait for all anyway.
func (j *job) barriers() (all []Finding) {
	type barrier struct {
		time  perRank
		calls int
		next  string
	}
	late := j.lateParts()
	sites := map[string]*barrier{}
	for r, k := range j.Trace.Ranks {
		for i := range k.Events[:max(0, len(k.Events)-1)] {
			e, next := &k.Events[i], &k.Events[i+1]
			if !j.impliedBarrier(e, next) {
				continue
			}
			s := sites[siteOf(e)]
			if s == nil {
				s = &barrier{time: perRank{}, next: siteOf(next)}
				sites[siteOf(e)] = s
			}
			s.calls++
			s.time[k.Rank] += float64(e.End - e.Begin - late[r][i])
		}
	}
	n := len(j.Trace.Ranks)
	for _, where := range sortKeys(sites) {
		s := sites[where]
		_, _, total := s.time.most()
		all = append(all, Finding{
			Sites: []string{where, s.next}, Gain: total / float64(n) / j.span,
			Evidence: fmt.Sprintf("%d barriers, each right before a collective that waits for all ranks itself: %v of a rank, besides waiting for late ranks", s.calls/n, brief(total/float64(n))),
			change:   func(w *whatIf) { w.removeBarriers(where) },
			Change:   "leave the barrier out",
		})
	}
	return all
}

// lateParts returns the part of each call for which another rank is the reason.
func (j *job) lateParts() [][]int64 {
	if j.late != nil {
		return j.late
	}
	for _, k := range j.Trace.Ranks {
		j.late = append(j.late, make([]int64, len(k.Events)))
	}
	for _, w := range j.Waits {
		part := &j.late[w.In.Rank][w.In.Event]
		*part = max(*part, w.To-w.From)
	}
	return j.late
}

const (
	withoutWork = 0.15 // of the mean computation of the other ranks
	muchWork    = 0.2  // of the time: what the other ranks must compute at least, and these wait
)

// idleRanks finds some ranks that compute nothing while most do: their number does not suit the
// division of the work.
func (j *job) idleRanks() []Finding {
	times := j.RankTimes(j.Trace)
	sum := 0.0
	for i, t := range times {
		if len(j.Trace.Ranks[i].Events) > 0 {
			sum += float64(t.Outside)
		}
	}
	idle, busy, rest := map[int]bool{}, 0, 0.0
	var ranks []int
	for i, t := range times {
		if len(j.Trace.Ranks[i].Events) == 0 {
			continue
		}
		if float64(t.Outside) < withoutWork*sum/float64(len(times)) && float64(t.Waits) > muchWork*j.span {
			idle[i] = true
			ranks = append(ranks, t.Rank)
			continue
		}
		busy++
		rest += float64(t.Outside)
	}
	if len(idle) == 0 || busy <= len(idle) || rest/float64(busy) < muchWork*j.span {
		return nil
	}
	where, waits := perSite{}, j.lateParts()
	for r := range idle {
		for i, time := range waits[r] {
			if time > 0 {
				where[siteOf(&j.Trace.Ranks[r].Events[i])] += float64(time)
			}
		}
	}
	share := float64(busy) / float64(len(times))
	f := Finding{
		Ranks: ranks, Gain: rest / float64(busy) / j.span * (1 - share),
		Evidence: fmt.Sprintf("%d of %d ranks compute almost nothing, the others %v each", len(idle), len(times), brief(rest/float64(busy))),
		change:   func(w *whatIf) { w.spread(idle, share) },
		Change:   fmt.Sprintf("divide the work among all ranks, or start %d", busy),
	}
	if site := where.most(); site != "" {
		f.Sites = []string{site}
	}
	return []Finding{f}
}

// perSite sums up times by call site.
type perSite map[string]float64

// most returns the site with the longest time.
func (p perSite) most() (site string) {
	for _, s := range sortKeys(p) {
		if site == "" || p[s] > p[site] {
			site = s
		}
	}
	return site
}

// combineCollectives makes the first of several short collectives in a row carry all of them.
func (w *whatIf) combineCollectives(where string) {
	for r, k := range w.Trace.Ranks {
		for _, run := range shortRows(k.Events) {
			if siteOf(&k.Events[run.from]) == where {
				for i := run.from + 1; i < run.to; i++ {
					w.steps[r][i].after, w.steps[r][i].tail = 0, 0
				}
			}
		}
	}
}

// removeBarriers makes the barriers of a call site wait for nothing but late ranks, as the calls
// after them do.
func (w *whatIf) removeBarriers(where string) {
	w.eachAt(where, func(a trace.At, s *step) {
		if k := w.Trace.Ranks[a.Rank]; int(a.Event)+1 < len(k.Events) && w.impliedBarrier(w.event(a), &k.Events[a.Event+1]) {
			s.after, s.tail = 0, 0
		}
	})
}

// spread gives some of the computation of each rank to those that are idle.
func (w *whatIf) spread(idle map[int]bool, share float64) {
	for r := range w.steps {
		for i := range w.steps[r] {
			if s := &w.steps[r][i]; !idle[r] && s.compute > 0 {
				s.compute *= share
			}
		}
	}
}
