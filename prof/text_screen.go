package prof

// A summary for one screen: where the time goes. The rest is in Text.

import "fmt"

// sitesOnScreen is the number of call sites on the screen.
const sitesOnScreen = 5

// Screen formats what most readers need in at most 24 lines.
func (s *Summary) Screen() string {
	var b page
	b.head(s)
	if len(s.Sites) > 0 {
		b.inCalls(s, 1)
		b.line("")
		b.slowestSites(s)
		b.line("")
	}
	b.traffic(s)
	if total := s.Values[MemoryTotal]; total.Max > 0 {
		b.entry("memory", "mean %s a rank, most %s (rank %d)", size(uint64(s.Mean(MemoryTotal))), size(total.Max), total.MaxAt)
	}
	if sent, again := s.Values["datagrams.sent"], s.Values["datagrams.retransmitted"]; again.Sum > 0 {
		b.entry("datagrams", "%s retransmitted (%s)", groupDigits(again.Sum), percent(again.Sum, sent.Sum))
	}
	b.line("")
	b.line("More: --profile full (all call sites, lengths, memory, peers), --profile FILE.html (pictures).")
	return b.String()
}

// slowestSites writes the call sites at which ranks spend most time.
func (b *page) slowestSites(s *Summary) {
	all, in, run := s.byTime(), s.Values[TimeInCalls].Sum, s.Values[TimeRunning].Sum
	rows := [][]string{{"call", "calls", "time", "of MPI", "of run", "most", "", "hidden", "call site"}}
	for _, c := range all[:min(len(all), sitesOnScreen)] {
		hidden := "-"
		if o := &c.Overlap; o.Operations > 0 {
			hidden = fmt.Sprintf("%s to %s", percent(o.HiddenEarly, o.shortest()), percent(o.Hidden, o.Time))
		}
		rows = append(rows, []string{c.Routine, groupDigits(c.Calls.Sum), brief(float64(c.Time.Sum)), percent(c.Time.Sum, in), percent(c.Time.Sum, run),
			brief(float64(c.Time.Max)), at(c.Time.MaxAt), hidden, c.location()})
	}
	b.table(rows)
	b.further(len(all)-sitesOnScreen, "call site")
}
