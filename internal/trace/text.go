package trace

// The summary as text.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// rowsShown is how many lines of each list are shown.
const rowsShown = 8

// sum is a line of a list: how often, and how long in all.
type sum struct {
	what  string
	n     int
	total int64
}

// sums returns the lines with the longest times first.
func sums(by map[string]*sum) []*sum {
	var out []*sum
	for _, s := range by {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *sum) int { return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.what, b.what)) })
	return out
}

func add(by map[string]*sum, what string, n int, total int64) {
	s := by[what]
	if s == nil {
		s = &sum{what: what}
		by[what] = s
	}
	s.n += n
	s.total += total
}

// Text returns a summary of the trace on one screen.
func (a *Analysis) Text(t *Trace) string {
	var b strings.Builder
	calls, hosts, dropped, clock := 0, map[string]bool{}, 0, int64(0)
	byName := map[string]*sum{}
	var inCalls int64
	for _, r := range t.Ranks {
		hosts[r.Host] = true
		dropped += r.Dropped
		clock = max(clock, r.Error)
		for i := range r.Events {
			e := &r.Events[i]
			n := max(e.Calls, 1)
			calls += n
			inCalls += e.End - e.Begin
			add(byName, e.Name, n, e.End-e.Begin)
		}
	}
	all := (a.End - a.Begin) * int64(len(t.Ranks))
	fmt.Fprintf(&b, "trace: %d ranks on %d host(s), %d calls, %d messages\n", len(t.Ranks), len(hosts), calls, a.Sends)
	fmt.Fprintf(&b, "recorded: %v\n", a.Span)
	fmt.Fprintf(&b, "messages matched: %s (%d without the other end)\n", percent(int64(2*len(a.Messages)), int64(a.Sends+a.Receives)), a.Unmatched)
	if dropped > 0 {
		fmt.Fprintf(&b, "dropped: the last %d calls and phases, beyond the limit of the trace; raise MUSTER_TRACE_LIMIT\n", dropped)
	}
	if clock > 0 {
		fmt.Fprintf(&b, "clocks of the hosts compared to %v\n", time.Duration(clock))
	}
	a.phaseText(&b, t)
	fmt.Fprintf(&b, "time in calls: %s of the ranks' time, which begins with the first call\n", percent(inCalls, all))
	list(&b, "\nCalls", "call", all, sums(byName))
	titles := [...]string{"\nLate senders", "\nLate receivers", "\nWait at collectives"}
	heads := [...]string{"receiver waits for sender", "sender waits for receiver", "call, last rank"}
	for cause := LateSender; cause <= AtCollective; cause++ {
		by := map[string]*sum{}
		for _, w := range a.Waits {
			if w.Cause != cause {
				continue
			}
			what := fmt.Sprintf("rank %d for rank %d", t.Ranks[w.In.Rank].Rank, t.Ranks[w.For.Rank].Rank)
			if cause == AtCollective {
				what = fmt.Sprintf("%s, rank %d", t.at(w.In).Name, t.Ranks[w.For.Rank].Rank)
			}
			add(by, what, 1, w.To-w.From)
		}
		list(&b, titles[cause], heads[cause], all, sums(by))
	}
	a.pathText(&b, t)
	return b.String()
}

// phaseText writes what the library did beside the calls, if anything was recorded.
func (a *Analysis) phaseText(b *strings.Builder, t *Trace) {
	var messages, unused, again int
	var asleep, progress int64
	for _, r := range t.Ranks {
		for i := range r.Phases {
			switch p := &r.Phases[i]; {
			case p.Row == RowProtocol && p.Name == UnusedRTR:
				unused++
			case p.Row == RowProtocol && p.Sends:
				messages++
			case p.Row == RowAsleep:
				asleep += p.End - p.Begin
			case p.Row == RowProgress:
				progress += p.End - p.Begin
			case p.Row == RowNetwork:
				again += p.Count
			}
		}
	}
	all := (a.End - a.Begin) * int64(len(t.Ranks))
	fmt.Fprintf(b, "sent by rendezvous: %d messages; RTRs without use: %d; retransmissions: %d\n", messages, unused, again)
	fmt.Fprintf(b, "asleep: %s, progress thread: %s of the ranks' time\n", percent(asleep, all), percent(progress, all))
}

// pathText lists what the critical path consists of.
func (a *Analysis) pathText(b *strings.Builder, t *Trace) {
	by := map[string]*sum{}
	next := make([]int, len(t.Ranks)) // of each rank, the first event that has not ended before the step
	for _, s := range a.Path {
		inside := int64(0)
		r := t.Ranks[s.Rank]
		from := &next[s.Rank]
		for *from < len(r.Events) && r.Events[*from].End <= s.From {
			*from++
		}
		for i := *from; i < len(r.Events) && r.Events[i].Begin < s.To; i++ {
			e := &r.Events[i]
			if over := min(e.End, s.To) - max(e.Begin, s.From); over > 0 {
				add(by, fmt.Sprintf("rank %d in %s", r.Rank, e.Name), 1, over)
				inside += over
			}
		}
		add(by, fmt.Sprintf("rank %d between calls", r.Rank), 1, max(0, s.To-s.From-inside))
	}
	list(b, fmt.Sprintf("\nCritical path: %d steps", len(a.Path)), "part", a.End-a.Begin, sums(by))
}

func list(b *strings.Builder, title, head string, all int64, lines []*sum) {
	if len(lines) == 0 {
		fmt.Fprintf(b, "%s: none\n", title)
		return
	}
	fmt.Fprintln(b, title)
	w := tabwriter.NewWriter(b, 2, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  %s\tnumber\ttime\tshare\n", head)
	for i, s := range lines {
		if i == rowsShown {
			fmt.Fprintf(w, "  (%d more)\n", len(lines)-i)
			break
		}
		fmt.Fprintf(w, "  %s\t%d\t%v\t%s\n", s.what, s.n, time.Duration(s.total).Round(time.Microsecond/10), percent(s.total, all))
	}
	w.Flush()
}

func percent(part, whole int64) string {
	if whole <= 0 {
		return "100 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
