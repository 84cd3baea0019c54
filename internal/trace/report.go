package trace

// The summary of a trace: what Text prints, and muster trace --json.

import (
	"cmp"
	"fmt"
	"slices"
)

// Report is the summary. Times are in ns, those at which something happens since the end of
// Init.
type Report struct {
	Ranks           int   `json:"ranks"`
	Hosts           int   `json:"hosts"`
	Calls           int   `json:"calls"`
	Messages        int   `json:"messages"`
	Matched         int   `json:"matched"`   // messages of which both ends are known
	Unmatched       int   `json:"unmatched"` // ends without the other
	Dropped         int   `json:"dropped"`   // calls and phases beyond the limit of the trace
	Begin           int64 `json:"begin_ns"`  // of the first call
	End             int64 `json:"end_ns"`    // of the last call
	ClockError      int64 `json:"clock_error_ns"`
	Rendezvous      int   `json:"rendezvous"` // messages
	UnusedRTRs      int   `json:"unused_rtrs"`
	Retransmissions int   `json:"retransmissions"`
	Asleep          int64 `json:"asleep_ns"` // all ranks together, as are the next two
	Progress        int64 `json:"progress_thread_ns"`
	InCalls         int64 `json:"in_calls_ns"`

	ByCall        []Line `json:"by_call"`
	LateSenders   []Line `json:"late_senders"`
	LateReceivers []Line `json:"late_receivers"`
	AtCollectives []Line `json:"wait_at_collectives"`
	PathParts     []Line `json:"critical_path_parts"`

	Path []PathPart `json:"critical_path"`
}

// Line sums up something that happened several times. Lists have the longest first.
type Line struct {
	What   string `json:"what"`
	Number int    `json:"number"`
	Nanos  int64  `json:"ns"`
}

// PathPart is a step of the critical path, with what the rank did in it.
type PathPart struct {
	Step  int    `json:"step"` // from 1
	Rank  int    `json:"rank"`
	From  int64  `json:"from_ns"`
	To    int64  `json:"to_ns"`
	Parts []Line `json:"parts"`
}

// betweenCalls is the part of a step in which the rank is in no call.
const betweenCalls = "between calls"

// sums adds up lines.
type sums map[string]*Line

func (by sums) add(what string, n int, nanos int64) {
	s := by[what]
	if s == nil {
		s = &Line{What: what}
		by[what] = s
	}
	s.Number += n
	s.Nanos += nanos
}

// lines returns the lines with the longest times first.
func (by sums) lines() []Line {
	out := []Line{}
	for _, s := range by {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Line) int { return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), cmp.Compare(a.What, b.What)) })
	return out
}

// Report sums up the trace.
func (a *Analysis) Report(t *Trace) *Report {
	x := &Report{Ranks: len(t.Ranks), Messages: a.Sends, Matched: len(a.Messages), Unmatched: a.Unmatched, Begin: a.Begin, End: a.End}
	byCall := sums{}
	for _, r := range t.Ranks {
		x.Dropped += r.Dropped
		x.ClockError = max(x.ClockError, r.Error)
		for i := range r.Events {
			e := &r.Events[i]
			n := int(max(e.Calls, 1))
			x.Calls += n
			x.InCalls += e.End - e.Begin
			byCall.add(e.Name, n, e.End-e.Begin)
		}
		x.addPhases(r)
	}
	_, x.Hosts = t.Hosts()
	x.ByCall = byCall.lines()
	for cause, to := range map[Cause]*[]Line{LateSender: &x.LateSenders, LateReceiver: &x.LateReceivers, AtCollective: &x.AtCollectives} {
		by := sums{}
		for _, w := range a.Waits {
			if w.Cause != cause {
				continue
			}
			what := fmt.Sprintf("rank %d for rank %d", t.Ranks[w.In.Rank].Rank, t.Ranks[w.For.Rank].Rank)
			if cause == AtCollective {
				what = fmt.Sprintf("%s, rank %d", t.at(w.In).Name, t.Ranks[w.For.Rank].Rank)
			}
			by.add(what, 1, w.To-w.From)
		}
		*to = by.lines()
	}
	x.Path = a.path(t)
	parts := sums{}
	for _, s := range x.Path {
		for _, p := range s.Parts {
			what := fmt.Sprintf("rank %d in %s", s.Rank, p.What)
			if p.What == betweenCalls {
				what = fmt.Sprintf("rank %d %s", s.Rank, p.What)
			}
			parts.add(what, p.Number, p.Nanos)
		}
	}
	x.PathParts = parts.lines()
	return x
}

// addPhases adds what the library did for a rank beside its calls.
func (x *Report) addPhases(r *Rank) {
	for i := range r.Phases {
		switch p := &r.Phases[i]; {
		case p.Row == RowProtocol && p.Name == UnusedRTR:
			x.UnusedRTRs++
		case p.Row == RowProtocol && p.Sends:
			x.Rendezvous++
		case p.Row == RowAsleep:
			x.Asleep += p.End - p.Begin
		case p.Row == RowProgress:
			x.Progress += p.End - p.Begin
		case p.Row == RowNetwork:
			x.Retransmissions += p.Count
		}
	}
}

// path returns the steps of the critical path with what the ranks did in them.
func (a *Analysis) path(t *Trace) (steps []PathPart) {
	next := make([]int, len(t.Ranks)) // of each rank, the first event that has not ended before the step
	for n, s := range a.Path {
		parts, inside := sums{}, int64(0)
		r := t.Ranks[s.Rank]
		from := &next[s.Rank]
		for *from < len(r.Events) && r.Events[*from].End <= s.From {
			*from++
		}
		for i := *from; i < len(r.Events) && r.Events[i].Begin < s.To; i++ {
			e := &r.Events[i]
			if over := min(e.End, s.To) - max(e.Begin, s.From); over > 0 {
				parts.add(e.Name, 1, over)
				inside += over
			}
		}
		parts.add(betweenCalls, 1, max(0, s.To-s.From-inside))
		steps = append(steps, PathPart{n + 1, r.Rank, s.From, s.To, parts.lines()})
	}
	return steps
}
