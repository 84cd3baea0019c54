package prof

// Calls, waits and buffers as text.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Rows of the tables; the file has all.
const (
	routinesShown  = 12
	callSitesShown = 20
	waitsShown     = 5
)

// calls writes the time in calls: by routine, by call site, and by peer.
func (b *page) calls(s *Summary) {
	if len(s.Sites) == 0 {
		return
	}
	b.inCalls(s, waitsShown)
	b.line("")
	in, run := s.Values[TimeInCalls].Sum, s.Values[TimeRunning].Sum
	b.routines(s, in, run)
	b.line("")
	b.callSites(s, in)
	b.siteMessages(s)
	b.overlap(s)
}

// inCalls writes the share of the time in calls, and some waits.
func (b *page) inCalls(s *Summary, waits int) {
	in, run := s.Values[TimeInCalls], s.Values[TimeRunning]
	mean := run.Sum / uint64(max(s.Ranks, 1)) // ranks leave the job at different times
	b.entry("in MPI calls", "mean %s of the time, least %s (rank %d), most %s (rank %d)", percent(in.Sum, run.Sum),
		percent(in.Min, mean), in.MinAt, percent(in.Max, mean), in.MaxAt)
	b.waits(s, waits)
}

// table writes rows of cells, the first of which are the heading.
func (b *page) table(rows [][]string) {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush() // a Builder returns no errors
	for line := range strings.Lines(text.String()) {
		b.line("%s", strings.TrimSpace(line))
	}
}

// routines writes the time of each routine at all its call sites.
func (b *page) routines(s *Summary, in, run uint64) {
	type routine struct {
		name             string
		sites            int
		calls, time      uint64
		messages, volume uint64
	}
	var all []routine
	for i := range s.Sites {
		c := &s.Sites[i]
		at := slices.IndexFunc(all, func(r routine) bool { return r.name == c.Routine })
		if at < 0 {
			at = len(all)
			all = append(all, routine{name: c.Routine})
		}
		r := &all[at]
		r.sites++
		r.calls, r.time, r.messages, r.volume = r.calls+c.Calls.Sum, r.time+c.Time.Sum, r.messages+c.Messages, r.volume+c.Bytes.Sum
	}
	slices.SortStableFunc(all, func(x, y routine) int { return cmp.Compare(y.time, x.time) })
	rows := [][]string{{"call", "sites", "calls", "time", "of MPI", "of run", "mean", "messages", "volume"}}
	for _, r := range all[:min(len(all), routinesShown)] {
		rows = append(rows, []string{r.name, groupDigits(uint64(r.sites)), groupDigits(r.calls), brief(float64(r.time)), percent(r.time, in), percent(r.time, run),
			brief(float64(r.time) / float64(max(r.calls, 1))), groupDigits(r.messages), size(r.volume)})
	}
	b.table(rows)
	b.further(len(all)-routinesShown, "call")
}

func (b *page) further(n int, what string) {
	if n > 0 {
		b.line("and %s", plural(uint64(n), "further "+what))
	}
}

// byTime returns the call sites, those with the most time first.
func (s *Summary) byTime() []*CallSite {
	var all []*CallSite
	for i := range s.Sites {
		all = append(all, &s.Sites[i])
	}
	slices.SortStableFunc(all, func(x, y *CallSite) int { return cmp.Compare(y.Time.Sum, x.Time.Sum) })
	return all
}

// location returns the call site for a table.
func (c *CallSite) location() string {
	switch {
	case c.Site == "" && c.Function == "":
		return "(not known)"
	case c.Site == "":
		return c.Function
	case c.Function == "":
		return c.Site
	}
	return c.Site + " " + c.Function
}

// callSites writes the time at each call site; least, mean and most are those of ranks.
func (b *page) callSites(s *Summary, in uint64) {
	all := s.byTime()
	rows := [][]string{{"call", "calls", "time", "of MPI", "least", "mean", "most", "", "longest", "", "call site"}}
	for _, c := range all[:min(len(all), callSitesShown)] {
		rows = append(rows, []string{c.Routine, groupDigits(c.Calls.Sum), brief(float64(c.Time.Sum)), percent(c.Time.Sum, in),
			brief(float64(c.Time.Min)), brief(float64(c.Time.Sum) / float64(max(s.Ranks, 1))), brief(float64(c.Time.Max)), at(c.Time.MaxAt),
			brief(float64(c.Longest)), at(c.LongestAt), c.location()})
	}
	b.table(rows)
	b.further(len(all)-callSitesShown, "call site")
}

func at(rank int) string { return fmt.Sprintf("rank %d", rank) }

// siteMessages writes the lengths of the messages of each call site.
func (b *page) siteMessages(s *Summary) {
	all := slices.DeleteFunc(s.byTime(), func(c *CallSite) bool { return c.Bytes.Sum == 0 })
	slices.SortStableFunc(all, func(x, y *CallSite) int { return cmp.Compare(y.Bytes.Sum, x.Bytes.Sum) })
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"call", "messages", "volume", "shortest", "mean", "longest", "usual", "call site"}}
	for _, c := range all[:min(len(all), callSitesShown)] {
		usual := slices.MaxFunc(c.Sizes, func(x, y ClassCount) int { return cmp.Compare(x.Count, y.Count) })
		rows = append(rows, []string{c.Routine, groupDigits(c.Messages), size(c.Bytes.Sum), size(c.Shortest), size(c.Bytes.Sum / max(c.Messages, 1)), size(c.Largest),
			classLengths(usual.Class), c.location()})
	}
	b.line("")
	b.table(rows)
	b.further(len(all)-callSitesShown, "call site")
}

// classLengths returns the lengths of a class.
func classLengths(class int) string {
	if class == 0 {
		return size(0)
	}
	return lengths(band{from: 1 << (class - 1), to: 1<<class - 1})
}

// waits writes for which peers ranks waited longest.
func (b *page) waits(s *Summary, shown int) {
	var parts []string
	for _, w := range s.Waits[:min(len(s.Waits), shown)] {
		parts = append(parts, fmt.Sprintf("rank %d for %d: %s", w.Rank, w.For, brief(float64(w.Nanos))))
	}
	if len(parts) > 0 {
		b.list("waited", parts)
	}
}

// reuse writes how often buffers were used again, and what the library made of it (T1
// tables 5.1 and 5.4).
func (b *page) reuse(s *Summary) {
	if sent := s.Values[BuffersSent]; sent.Sum > 0 {
		reused, uses, bytes := s.Values[BuffersReused], s.Values[BuffersMostUses], s.Values[BuffersMostBytes]
		b.entry("buffer reuse", "%s of the short messages (%s) are from a buffer used before", percent(reused.Sum, sent.Sum), groupDigits(sent.Sum))
		b.entry("", "uses of the buffer used most: %s; its length: %s", span(uses, groupDigits), span(bytes, size))
	}
	if direct, copied := s.Values[BuffersDirect], s.Values[BuffersCopied]; direct.Sum+copied.Sum > 0 {
		known, frequent := s.Values[BuffersKnown], s.Values[BuffersFrequent]
		b.entry("direct sends", "%s of the short messages on devices with registered memory%s", percent(direct.Sum, direct.Sum+copied.Sum), most(direct, groupDigits))
		b.entry("", "%s of the known buffers are used often (%s of %s)", percent(frequent.Sum, known.Sum), groupDigits(frequent.Sum), groupDigits(known.Sum))
	}
	if hit, made := s.Values[RegistrationsHit], s.Values[RegistrationsMissed]; hit.Sum+made.Sum > 0 {
		b.entry("registrations", "%s; %s were found in the cache, %s evicted", groupDigits(hit.Sum+made.Sum), percent(hit.Sum, hit.Sum+made.Sum),
			groupDigits(s.Values[RegistrationsEvicted].Sum))
	}
}
