package trace

// Who waited for whom. A call waits for another rank in one of three ways:
//
//	late sender      a receive, or the wait for one, began before the message was sent: it
//	                 waits until the call that sends it begins
//	late receiver    a send, or the wait for one, did not end before the receive was posted:
//	                 it waits until then. A send that ended before was buffered.
//	collective       it waits until the last rank that it needs has begun the call: the root
//	                 in Bcast and Scatter, the others at the root of Reduce and Gather, all
//	                 ranks in other calls
//
// The rest of a call is transfer and overhead. The critical path goes back from the end of
// the job: along a rank until the end of a wait, and from there to the rank that it waited
// for.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
)

// Cause is why a call waits.
type Cause uint8

// The causes of waits.
const (
	LateSender Cause = iota
	LateReceiver
	AtCollective
)

// Wait is the part of a call in which a rank waited for another.
type Wait struct {
	Cause    Cause
	In       At    // the waiting call
	For      At    // the call that was late
	From, To int64 // To is when the late call began
}

// PathStep is a part of the critical path: a rank from one time to another.
type PathStep struct {
	Rank     int // index in Trace.Ranks
	From, To int64
}

// Span is the time of a trace, from the begin of its first call to the end of its last, in ns
// since the end of Init.
type Span struct{ Begin, End int64 }

// Span returns the time of the trace.
func (t *Trace) Span() (s Span) {
	first := true
	for _, r := range t.Ranks {
		for i := range r.Events {
			e := &r.Events[i]
			if first {
				s, first = Span{e.Begin, e.End}, false
			}
			s.Begin, s.End = min(s.Begin, e.Begin), max(s.End, e.End)
		}
	}
	return s
}

// SinceInit returns the time from the end of Init to the end of the last call. The clocks of
// two ranks differ a little, so the first call may precede the end of Init.
func (s Span) SinceInit() time.Duration { return time.Duration(s.End - min(s.Begin, 0)) }

func (s Span) String() string {
	return fmt.Sprintf("%v from the end of Init to the end of the last call, %v of it from the first call", s.SinceInit(), time.Duration(s.End-s.Begin))
}

// Analysis is the result of Analyze.
type Analysis struct {
	*Matched
	Span
	Waits []Wait // the longest first
	Path  []PathStep
}

// Analyze matches the trace and finds the waits and the critical path.
func (t *Trace) Analyze() *Analysis {
	a := t.AnalyzeWaits()
	slices.SortStableFunc(a.Waits, func(x, y Wait) int { return cmp.Compare(y.To-y.From, x.To-x.From) })
	a.criticalPath(t)
	return a
}

// AnalyzeWaits matches the trace and finds the waits, in no order.
func (t *Trace) AnalyzeWaits() *Analysis {
	a := &Analysis{Matched: t.Match(), Span: t.Span()}
	for _, m := range a.Messages {
		a.message(t, m)
	}
	for _, c := range a.Collectives {
		a.collective(t, c)
	}
	return a
}

// wait adds a wait of the call in until the call late begins.
func (a *Analysis) wait(t *Trace, cause Cause, in, late At) {
	e, begin := t.at(in), t.at(late).Begin
	if to := min(begin, e.End); to > e.Begin && in.Rank != late.Rank {
		a.Waits = append(a.Waits, Wait{cause, in, late, e.Begin, to})
	}
}

func (a *Analysis) message(t *Trace, m Message) {
	a.wait(t, LateSender, t.completing(m.Recv), m.Send)
	if done := t.completing(m.Send); t.at(done).End >= t.at(m.Recv).Begin && t.at(m.Send).Kind != kindSendrecv {
		a.wait(t, LateReceiver, done, m.Recv)
	}
}

func (a *Analysis) collective(t *Trace, calls []At) {
	last := slices.MaxFunc(calls, func(x, y At) int { return cmp.Compare(t.at(x).Begin, t.at(y).Begin) })
	e := t.at(last)
	root := -1
	if e.Peer >= 0 {
		root = slices.IndexFunc(calls, func(x At) bool { return t.Ranks[x.Rank].Rank == int(e.Peer) })
	}
	kind, form, ok := coll.KindOfFunction(strings.TrimSuffix(e.Name, "Value"))
	fromRoot := ok && form == coll.Blocking && kind.FromRoot()
	for i, c := range calls {
		switch {
		case root < 0:
			a.wait(t, AtCollective, c, last)
		case fromRoot && i != root:
			a.wait(t, AtCollective, c, calls[root])
		case !fromRoot && i == root:
			a.wait(t, AtCollective, c, last)
		}
	}
}

// criticalPath follows the waits back from the call that ended last.
func (a *Analysis) criticalPath(t *Trace) {
	byRank := make([][]Wait, len(t.Ranks))
	for _, w := range a.Waits {
		byRank[w.In.Rank] = append(byRank[w.In.Rank], w)
	}
	for _, ws := range byRank {
		slices.SortFunc(ws, func(x, y Wait) int { return cmp.Compare(x.To, y.To) })
	}
	at, now := -1, a.End
	for r, rank := range t.Ranks {
		for i := range rank.Events {
			if rank.Events[i].End == a.End && at < 0 {
				at = r
			}
		}
	}
	for at >= 0 {
		ws := byRank[at]
		for len(ws) > 0 && ws[len(ws)-1].To >= now {
			ws = ws[:len(ws)-1]
		}
		byRank[at] = ws
		if len(ws) == 0 {
			a.Path = append(a.Path, PathStep{at, a.Begin, now})
			break
		}
		w := ws[len(ws)-1]
		a.Path = append(a.Path, PathStep{at, w.To, now})
		at, now = int(w.For.Rank), w.To
	}
	slices.Reverse(a.Path)
}
