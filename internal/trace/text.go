package trace

// The summary as text.

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// rowsShown is how many lines of each list are shown.
const rowsShown = 8

// Text returns the summary on one screen.
func (x *Report) Text() string {
	var b strings.Builder
	all := (x.End - x.Begin) * int64(x.Ranks)
	fmt.Fprintf(&b, "trace: %d ranks on %d host(s), %d calls, %d messages\n", x.Ranks, x.Hosts, x.Calls, x.Messages)
	fmt.Fprintf(&b, "recorded: %v\n", Span{x.Begin, x.End})
	fmt.Fprintf(&b, "messages matched: %s (%d without the other end)\n", percent(int64(2*x.Matched), int64(2*x.Matched+x.Unmatched)), x.Unmatched)
	if x.Dropped > 0 {
		fmt.Fprintf(&b, "dropped: the last %d calls and phases, beyond the limit of the trace; raise MUSTER_TRACE_LIMIT\n", x.Dropped)
	}
	if x.ClockError > 0 {
		fmt.Fprintf(&b, "clocks of the hosts compared to %v\n", time.Duration(x.ClockError))
	}
	fmt.Fprintf(&b, "sent by rendezvous: %d messages; RTRs without use: %d; retransmissions: %d\n", x.Rendezvous, x.UnusedRTRs, x.Retransmissions)
	fmt.Fprintf(&b, "asleep: %s, progress thread: %s of the ranks' time\n", percent(x.Asleep, all), percent(x.Progress, all))
	fmt.Fprintf(&b, "time in calls: %s of the ranks' time, which begins with the first call\n", percent(x.InCalls, all))
	list(&b, "\nCalls", "call", all, x.ByCall)
	list(&b, "\nLate senders", "receiver waits for sender", all, x.LateSenders)
	list(&b, "\nLate receivers", "sender waits for receiver", all, x.LateReceivers)
	list(&b, "\nWait at collectives", "call, last rank", all, x.AtCollectives)
	list(&b, fmt.Sprintf("\nCritical path: %d steps", len(x.Path)), "part", x.End-x.Begin, x.PathParts)
	return b.String()
}

// PathText lists the steps of the critical path in a window, as the picture numbers them.
func (x *Report) PathText(window Span) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nCritical path, step by step: each ends where the rank of the next one stops waiting for it\n")
	w := tabwriter.NewWriter(&b, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  step\tat\trank\ttime\tin")
	for _, s := range x.Path {
		if s.To <= window.Begin || s.From >= window.End {
			continue
		}
		var parts []string
		for _, p := range s.Parts {
			if p.Nanos > 0 {
				parts = append(parts, fmt.Sprintf("%s %v", p.What, roundTime(p.Nanos)))
			}
		}
		fmt.Fprintf(w, "  %d\t%v\t%d\t%v\t%s\n", s.Step, roundTime(s.From), s.Rank, roundTime(s.To-s.From), strings.Join(parts, ", "))
	}
	w.Flush() // a strings.Builder does not fail
	return b.String()
}

func roundTime(nanos int64) time.Duration { return time.Duration(nanos).Round(time.Microsecond / 10) }

func list(b *strings.Builder, title, head string, all int64, lines []Line) {
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
		fmt.Fprintf(w, "  %s\t%d\t%v\t%s\n", s.What, s.Number, roundTime(s.Nanos), percent(s.Nanos, all))
	}
	w.Flush()
}

func percent(part, whole int64) string {
	if whole <= 0 {
		return "100 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
