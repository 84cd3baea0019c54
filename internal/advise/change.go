package advise

// The changes of a program that findings suggest, as changes of its replay.

import (
	"math"
	"slices"

	"github.com/muster-mpi/muster/internal/trace"
)

// eachAt calls f for the calls of a call site.
func (w *whatIf) eachAt(where string, f func(a trace.At, s *step)) {
	for r, k := range w.Trace.Ranks {
		for i := range k.Events {
			if siteOf(&k.Events[i]) == where {
				f(callAt(r, i), &w.steps[r][i])
			}
		}
	}
}

// balance makes all ranks enter the collectives of a call site at their mean time.
func (w *whatIf) balance(where string) {
	for _, calls := range w.Collectives {
		last := slices.MaxFunc(calls, func(a, b trace.At) int { return int(w.event(a).Begin - w.event(b).Begin) })
		if siteOf(w.event(last)) != where {
			continue
		}
		sum := 0.0
		for _, a := range calls {
			sum += float64(w.event(a).Begin)
		}
		for _, a := range calls {
			w.shift(a, sum/float64(len(calls))-float64(w.event(a).Begin))
		}
	}
}

// shift adds computation before a call, or removes it there and before earlier calls.
func (w *whatIf) shift(a trace.At, by float64) {
	for i := a.Event; i >= 0; i-- {
		s := &w.steps[a.Rank][i]
		s.compute += by
		if by = min(0, s.compute); by == 0 || i == 0 {
			return
		}
		s.compute = 0
	}
}

// shorten multiplies the time of messages at a call site.
func (w *whatIf) shorten(where string, by float64) {
	w.eachAt(where, func(_ trace.At, s *step) {
		s.tail *= by
		for i := range s.deps {
			s.deps[i].time *= by
			w.transfers[s.deps[i].transfer].onPort *= by
		}
	})
}

// combine makes the first of several short messages in a row carry all of them. What happens
// between two of them, if it is shorter than they, is their loop.
func (w *whatIf) combine(where string) {
	later := map[trace.At]bool{}
	for r, k := range w.Trace.Ranks {
		for _, run := range runsOf(k.Events, sameBurst) {
			if siteOf(&k.Events[run.from]) != where {
				continue
			}
			for i := run.from + 1; i < run.to; i++ {
				later[callAt(r, i)] = true
				if e, s := &k.Events[i], &w.steps[r][i]; s.compute < float64(e.End-e.Begin) {
					s.compute = 0
				}
				w.steps[r][i].tail = 0
			}
		}
	}
	for _, m := range w.Messages {
		if later[m.Send] {
			a := w.completing(m.Recv)
			s := &w.steps[a.Rank][a.Event]
			s.tail = 0
			if e := w.event(a); s.compute < float64(e.End-e.Begin) {
				s.compute = 0
			}
			for i := range s.deps {
				s.deps[i].time = 0
			}
		}
	}
}

// hide moves the computation after the waits of a call site before them.
func (w *whatIf) hide(where string) {
	for r, k := range w.Trace.Ranks {
		for i, begun := range longestBy(k.Events) {
			if begun >= 0 && i+1 < len(k.Events) && siteOf(&k.Events[i]) == where && w.steps[r][i+1].compute > 0 {
				w.steps[r][i].inside += w.steps[r][i+1].compute
				w.steps[r][i+1].compute = 0
			}
		}
	}
}

// postEarlier posts the receives of a call site when the call before them ends.
func (w *whatIf) postEarlier(where string) {
	w.eachAt(where, func(a trace.At, s *step) { s.ahead = w.event(a).From >= 0 && s.compute > 0 })
}

// moveRanks gives messages the time that others take within a host, or between hosts. host is that of
// each rank of the world.
func (w *whatIf) moveRanks(host []int) {
	moved := make([]bool, len(w.transfers))
	for i, m := range w.Messages {
		x := &w.transfers[i]
		x.from, x.to = host[w.rank(m.Send)], host[w.rank(m.Recv)]
		moved[i], x.class.far = x.class.far != (x.from != x.to), x.from != x.to
	}
	for r := range w.steps {
		for i := range w.steps[r] {
			for k := range w.steps[r][i].deps {
				d := &w.steps[r][i].deps[k]
				if !moved[d.transfer] {
					continue
				}
				c := w.transfers[d.transfer].class
				time, known := w.usual[c]
				if !known && c.far {
					w.unknown = true
					return
				}
				if !known {
					time = assumedTime(c.log)
				}
				d.time = time
			}
		}
	}
}

// assumedTime is the time in ns of a message within a host, if the trace has none of this length:
// two copies at 10 GB/s.
func assumedTime(log int) float64 { return 1000 + 0.2*math.Exp2(float64(log)) }
