package prof

// A summary as text, from the job's properties to the busiest pairs of ranks. Empty parts are
// omitted.

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Text formats all of the summary.
func (s *Summary) Text() string {
	var b page
	b.head(s)
	b.calls(s)
	b.messages(s)
	b.sizes(s)
	b.protocols(s)
	b.reuse(s)
	b.memory(s)
	b.peers(s)
	b.network(s)
	b.pairs(s)
	b.legend()
	b.overlapLegend(s)
	return b.String()
}

type page struct{ strings.Builder }

func (b *page) line(format string, args ...any) {
	b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	b.WriteByte('\n')
}

// entry writes a line with a name on the left.
func (b *page) entry(name, format string, args ...any) {
	b.line("%-14s %s", name, fmt.Sprintf(format, args...))
}

// list writes things in as many lines as needed, with the name on the left of the first.
func (b *page) list(name string, things []string) {
	for row := ""; len(things) > 0; row, name = "", "" {
		for len(things) > 0 && (row == "" || len(row)+len(things[0]) < rowWidth) {
			row += ", " + things[0]
			things = things[1:]
		}
		b.entry(name, "%s", strings.TrimPrefix(row, ", "))
	}
}

// rowWidth is the width beside a name.
const rowWidth = 66

func (b *page) head(s *Summary) {
	over := strings.Join(s.Devices, ", ")
	if over == "" {
		over = "no device"
	}
	b.line("profile: %s on %s over %s", plural(uint64(s.Ranks), "rank"), plural(s.Values[Hosts].Sum, "host"), over)
	run, waiting := s.Values[TimeRunning], s.Values[TimeWaiting]
	if run.Sum > 0 {
		b.entry("time", "%s; waiting in calls: mean %s, most %s (rank %d)", duration(run.Max),
			percent(waiting.Sum, run.Sum), percent(waiting.Max, run.Max), waiting.MaxAt)
	}
	b.stalls(s)
}

// stalls writes why waits took longer than their messages, if any did.
func (b *page) stalls(s *Summary) {
	gap, stalls := s.Values[TimeLongestGap], s.Values[WaitStalls]
	late, blocked := s.Values[WaitParksLate], s.Values[WaitParksBlocked]
	if stalls.Sum+late.Sum+blocked.Sum == 0 {
		return
	}
	b.list("stalls", []string{
		fmt.Sprintf("%s without a poll for 5 ms", plural(stalls.Sum, "wait")), fmt.Sprintf("longest %s (rank %d)", duration(gap.Max), gap.MaxAt),
		fmt.Sprintf("%s slept past a message", plural(late.Sum, "wait")), fmt.Sprintf("%s slept with packets to send", plural(blocked.Sum, "wait")),
	})
}

func (b *page) messages(s *Summary) {
	if len(s.Sites) > 0 {
		b.line("")
	}
	b.traffic(s)
}

// traffic writes the number of messages and collectives.
func (b *page) traffic(s *Summary) {
	sent, bytes := s.Values[MessagesSent], s.Values[BytesSent]
	if sent.Sum == 0 {
		b.entry("messages", "none")
		b.collectives(s)
		return
	}
	b.entry("messages", "%s; a rank sent %s", groupDigits(sent.Sum), span(sent, groupDigits))
	b.entry("volume", "%s; a rank sent %s", size(bytes.Sum), span(bytes, size))
	b.collectives(s)
	late, got := s.Values[MessagesUnexpected], s.Values[MessagesReceived]
	if got.Sum > 0 {
		b.entry("unexpected", "%s of the messages (%s)%s", percent(late.Sum, got.Sum), groupDigits(late.Sum), most(late, groupDigits))
	}
}

func (b *page) collectives(s *Summary) {
	sent, shared := s.Values[CollectivesByMessages], s.Values[CollectivesShared]
	switch {
	case sent.Sum == 0 && shared.Sum == 0:
	case shared.Sum == 0:
		b.entry("collectives", "a rank made %s", span(sent, groupDigits))
	default:
		b.entry("collectives", "a rank made %s by messages, %s in shared memory", span(sent, groupDigits), span(shared, groupDigits))
	}
}

// span formats the range of values of the ranks and the rank with the maximum.
func span(v Spread, show func(uint64) string) string {
	least, greatest := show(v.Min), show(v.Max)
	if least == greatest {
		return greatest
	}
	return fmt.Sprintf("%s to %s (most: rank %d)", least, greatest, v.MaxAt)
}

// most formats the rank with the maximum, unless all values are zero.
func most(v Spread, show func(uint64) string) string {
	if v.Max == 0 {
		return ""
	}
	return fmt.Sprintf("; most: %s at rank %d", show(v.Max), v.MaxAt)
}

// sizeRows is the maximum number of rows for message lengths.
const sizeRows = 12

// band is a row of the histogram: some adjacent classes of all protocols.
type band struct{ from, to, messages, bytes uint64 }

func (b *page) sizes(s *Summary) {
	rows := bands(s.Sizes)
	var sum, longest band
	for _, r := range rows {
		sum.messages, sum.bytes = sum.messages+r.messages, sum.bytes+r.bytes
		longest.messages, longest.bytes = max(longest.messages, r.messages), max(longest.bytes, r.bytes)
	}
	if sum.messages == 0 {
		return
	}
	b.line("")
	b.line("%-16s %12s %7s %-*s %9s", "length", "messages", "", barWidth, "", "volume")
	for _, r := range rows {
		b.line("%-16s %12s %7s %-*s %9s %7s %s", lengths(r), groupDigits(r.messages), percent(r.messages, sum.messages), barWidth, bar(r.messages, longest.messages),
			size(r.bytes), percent(r.bytes, sum.bytes), bar(r.bytes, longest.bytes))
	}
}

// bands combines classes, by powers of two, until they fit. Empty messages keep a row of
// their own.
func bands(classes []SizeClass) []band {
	byClass := map[int]band{}
	last := 0
	for _, c := range classes {
		k := classOf(c.To)
		r := byClass[k]
		byClass[k] = band{c.From, c.To, r.messages + c.Messages, r.bytes + c.Bytes}
		last = max(last, k)
	}
	for width := 1; ; width++ {
		var rows []band
		if r, ok := byClass[0]; ok {
			rows = append(rows, r)
		}
		for k := 1; k <= last; k += width {
			r := band{from: 1 << (k - 1), to: 1<<(k+width-1) - 1}
			for i := k; i < k+width; i++ {
				r.messages += byClass[i].messages
				r.bytes += byClass[i].bytes
			}
			if r.messages > 0 {
				rows = append(rows, r)
			}
		}
		if len(rows) <= sizeRows {
			return rows
		}
	}
}

// classOf returns the number of the class whose longest message has to bytes.
func classOf(to uint64) (k int) {
	for ; to > 0; to >>= 1 {
		k++
	}
	return k
}

func lengths(r band) string {
	if r.to <= 1 {
		return size(r.to)
	}
	return size(r.from) + " to <" + size(r.to+1)
}

// barWidth is the length of the longest bar.
const barWidth = 10

func bar(part, most uint64) string {
	if part == 0 {
		return ""
	}
	n := int(float64(part)/float64(most)*barWidth + 0.5)
	if n == 0 {
		return "."
	}
	return strings.Repeat("#", n)
}

func (b *page) protocols(s *Summary) {
	type share struct {
		name            string
		messages, bytes uint64
	}
	var all []share
	var messages, bytes uint64
	for _, c := range s.Sizes {
		if n := len(all); n == 0 || all[n-1].name != c.Protocol {
			all = append(all, share{name: c.Protocol})
		}
		p := &all[len(all)-1]
		p.messages, p.bytes = p.messages+c.Messages, p.bytes+c.Bytes
		messages, bytes = messages+c.Messages, bytes+c.Bytes
	}
	var parts []string
	for _, p := range all {
		parts = append(parts, fmt.Sprintf("%s %s (%s of the volume)", p.name, percent(p.messages, messages), percent(p.bytes, bytes)))
	}
	if len(parts) > 0 {
		b.line("")
		b.list("protocols", parts)
	}
	if made := s.Values[OffersMade].Sum; made > 0 {
		b.entry("offers", "%s; %s used, %s withheld", groupDigits(made), percent(s.Values[OffersUsed].Sum, made), groupDigits(s.Values[OffersWithheld].Sum))
	}
	if n := s.Values[MessagesNoCredit]; n.Sum > 0 {
		b.entry("out of credit", "%s short messages had to ask first%s", groupDigits(n.Sum), most(n, groupDigits))
	}
}

// purposes are the labels of the parts of memory, in display order; others follow by
// name.
var purposes = [...]struct {
	name  Name
	label string
}{
	{"memory.receive", "receive buffers"},
	{"memory.rings", "rings"},
	{"memory.send", "send buffers"},
	{"memory.connections", "connections"},
	{"memory.peers", "peers (device)"},
	{MemoryLinks, "peers (links)"},
	{"memory.tables", "tables"},
	{MemoryUnexpected, "unexpected, peak"},
	{MemoryOperations, "operations"},
	{MemoryMatching, "matching"},
	{MemoryScratch, "scratch"},
	{MemorySegments, "segments"},
	{MemoryBuffered, "buffered sends"},
}

// MemoryParts returns the counters of memory that the library and its devices have, in
// display order. MemoryTotal is their sum.
func MemoryParts() []Name {
	names := make([]Name, len(purposes))
	for i, p := range purposes {
		names[i] = p.name
	}
	return names
}

func (b *page) memory(s *Summary) {
	if s.Values[MemoryTotal].Max == 0 {
		return
	}
	b.line("")
	b.line("%-20s %9s %9s", "memory a rank", "mean", "most")
	row := func(label string, name Name) {
		if v := s.Values[name]; v.Max > 0 {
			b.line("  %-18s %9s %9s  rank %d", label, size(uint64(s.Mean(name))), size(v.Max), v.MaxAt)
		}
	}
	small := uint64(0)
	for _, name := range s.memoryNames() {
		if s.Values[name].Max < s.Values[MemoryTotal].Max/smallShare {
			small += s.Values[name].Sum
			continue
		}
		row(purposeOf(name), name)
	}
	if small > 0 {
		b.line("  %-18s %9s", "everything else", size(small/uint64(max(s.Ranks, 1))))
	}
	row("total", MemoryTotal)
	row("beside: registered", MemoryRegistered)
	row("beside: kernel", MemoryKernel)
}

// smallShare is the fraction of the total below which memory gets no row of its own.
const smallShare = 100

// memoryNames returns the counters of memory in the order of purposes.
func (s *Summary) memoryNames() []Name {
	var rest []Name
	names := MemoryParts()
	for name := range s.Values {
		if name.isOwnMemory() && !slices.Contains(names, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return append(names, rest...)
}

func purposeOf(name Name) string {
	for _, p := range purposes {
		if p.name == name {
			return p.label
		}
	}
	return strings.TrimPrefix(string(name), "memory.")
}

func (b *page) peers(s *Summary) {
	b.line("")
	b.entry("peers", "a rank talked to %s", span(s.Values[PeersTalkedTo], groupDigits))
	if v := s.Values["peers.rings"]; v.Max > 0 {
		b.entry("ring peers", "a rank has rings for %s", span(v, groupDigits))
	}
	open, made := s.Values["connections.rc"], s.Values["connections.made"]
	if open.Sum+made.Sum > 0 {
		text := fmt.Sprintf("a rank has %s open", span(open, groupDigits))
		if made.Sum > 0 {
			text += fmt.Sprintf("; %s were made, %s closed to make room", groupDigits(made.Sum), groupDigits(s.Values["connections.closed"].Sum))
		}
		b.entry("connections", "%s", text)
	}
	if v := s.Values["connections.sockets"]; v.Max > 0 {
		b.entry("sockets", "%s a rank", span(v, groupDigits))
	}
	if v := s.Values["receive.low-water"]; v.Sum > 0 {
		b.entry("low water", "%s times few receive buffers were left%s", groupDigits(v.Sum), most(v, groupDigits))
	}
	if v := s.Values[ReceiveBuffersMost]; v.Sum > 0 {
		b.entry("buffers", "a rank has posted %s, %s at the most", span(s.Values[ReceiveBuffers], groupDigits), span(v, groupDigits))
	}
}

func (b *page) network(s *Summary) {
	b.rails(s)
	if v := s.Values["segments.retransmitted"]; v.Sum > 0 {
		b.entry("TCP", "%s segments retransmitted%s", groupDigits(v.Sum), most(v, groupDigits))
	}
	sent := s.Values["datagrams.sent"]
	if sent.Sum == 0 {
		return
	}
	again := s.Values["datagrams.retransmitted"]
	b.entry("datagrams", "%s sent, %s retransmitted (%s)%s", groupDigits(sent.Sum), groupDigits(again.Sum), percent(again.Sum, sent.Sum), most(again, groupDigits))
	if double, bad := s.Values["datagrams.duplicate"].Sum, s.Values["datagrams.refused"].Sum; double+bad > 0 {
		b.entry("", "%s came twice, %s were refused", groupDigits(double), groupDigits(bad))
	}
	b.delays(s)
}

// delays shows what makes single messages late although nothing fails.
func (b *page) delays(s *Summary) {
	var parts []string
	for _, d := range [...]struct {
		name Name
		text string
	}{
		{"datagrams.dropped", "datagrams dropped by the kernel"},
		{"datagrams.probes", "probes of a silent peer"},
		{"datagrams.timeouts", "timeouts"},
	} {
		if n := s.Values[d.name].Sum; n > 0 {
			parts = append(parts, groupDigits(n)+" "+d.text)
		}
	}
	if len(parts) > 0 {
		b.list("delays", parts)
	}
}

// rails shows the distribution of the volume over several interfaces.
func (b *page) rails(s *Summary) {
	var names []string
	for name := range s.Values {
		if rail, ok := strings.CutPrefix(string(name), railBytes); ok {
			names = append(names, rail)
		}
	}
	slices.Sort(names)
	var parts []string
	for _, rail := range names {
		parts = append(parts, rail+" "+size(s.Values[Name(railBytes+rail)].Sum))
	}
	if left := s.Values["rails.left"].Sum; left > 0 {
		parts = append(parts, fmt.Sprintf("left %s times, used again %s", groupDigits(left), groupDigits(s.Values["rails.back"].Sum)))
	}
	if len(parts) > 0 {
		b.list("rails", parts)
	}
}

// railBytes is the prefix of the counter of a rail's volume.
const railBytes = "rail-bytes."

func (b *page) pairs(s *Summary) {
	var parts []string
	for _, p := range s.Pairs[:min(len(s.Pairs), pairsShown)] {
		if p.Messages > 0 {
			parts = append(parts, fmt.Sprintf("%d>%d %s", p.From, p.To, size(p.Bytes)))
		}
	}
	if len(parts) > 0 {
		b.list("busiest pairs", parts)
	}
}

// pairsShown is the number of busiest pairs in the text.
const pairsShown = 5

// legend explains the terms of the text.
func (b *page) legend() {
	b.line("")
	b.line("eager: sent before it is asked for. rndv: announced first; then the receiver")
	b.line("reads (get), the sender writes (put), both copy (coop), or the sender writes at")
	b.line("once into a buffer that was offered to it (spec). unexpected: came before its")
	b.line("receive. Collectives in shared memory send no message.")
}

func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// groupDigits formats a number with spaces between thousands.
func groupDigits(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// size formats a number of bytes with three digits.
func size(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	unit := ""
	for _, unit = range []string{"KB", "MB", "GB", "TB", "PB", "EB"} {
		if v /= 1024; v < 1023.5 {
			break
		}
	}
	switch {
	case v < 9.995:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00") + " " + unit
	case v < 99.95:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

func percent(part, whole uint64) string {
	if whole == 0 {
		return "0 %"
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case part == 0:
		return "0 %"
	case p < 0.1:
		return "<0.1 %"
	case p < 10:
		return fmt.Sprintf("%.1f %%", p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

func duration(ns uint64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
