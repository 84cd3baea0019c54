package main

// The screen of muster top: samples of the metrics, and what changed between two of them.

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// jobSample is the metrics of all ranks at one time.
type jobSample struct {
	at    time.Time
	ranks map[int]*rankSample
}

// rankSample is the metrics of a rank, by the name of the family.
type rankSample struct {
	rank    int
	host    string
	values  map[string]float64
	call    string // in which it waits; "": none
	waiting float64
}

// rateSpan is the time over which rates are computed. Ranks update their counters once a second,
// so a shorter time has none or two of these updates.
const rateSpan = 3 * time.Second

// jobHistory is the samples since rateSpan before the last one, the oldest first.
type jobHistory []*jobSample

// add appends a sample, and reports whether it is a new one.
func (h *jobHistory) add(s *jobSample) bool {
	if n := len(*h); n > 0 && !s.at.After((*h)[n-1].at) {
		return false
	}
	*h = append(*h, s)
	for len(*h) > 2 && s.at.Sub((*h)[1].at) >= rateSpan {
		*h = (*h)[1:]
	}
	return true
}

// parseMetrics reads the text format of Prometheus, as writeMetrics writes it.
func parseMetrics(r io.Reader, at time.Time) (*jobSample, error) {
	s := &jobSample{at: at, ranks: map[int]*rankSample{}}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		name, rest, ok := strings.Cut(line, "{")
		end := strings.LastIndex(rest, "} ")
		if !ok || end < 0 {
			return nil, fmt.Errorf("%q is not a sample", line)
		}
		value, err := strconv.ParseFloat(rest[end+2:], 64)
		labels := parseLabels(rest[:end])
		rank, rankErr := strconv.Atoi(labels["rank"])
		if err != nil || rankErr != nil {
			return nil, fmt.Errorf("%q is not a sample of a rank", line)
		}
		one := s.ranks[rank]
		if one == nil {
			one = &rankSample{rank: rank, host: labels["host"], values: map[string]float64{}}
			s.ranks[rank] = one
		}
		switch name {
		case waitingCall:
			one.call, one.waiting = labels["call"], value
			continue
		case timeRead:
			s.at = time.UnixMicro(int64(value * 1e6))
		}
		one.values[name] = value
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(s.ranks) == 0 {
		return nil, errNoJob
	}
	return s, nil
}

// parseLabels parses name="value" pairs, separated by commas.
func parseLabels(text string) map[string]string {
	labels := map[string]string{}
	for text != "" {
		name, rest, ok := strings.Cut(text, "=")
		quoted, err := strconv.QuotedPrefix(rest)
		if !ok || err != nil {
			return labels
		}
		labels[name], _ = strconv.Unquote(quoted)
		text = strings.TrimPrefix(rest[len(quoted):], ",")
	}
	return labels
}

// topRow is what changed at a rank, per second.
type topRow struct {
	*rankSample
	messages, sent, received, wait, cpu float64
}

// topByWait is the default order.
const topByWait = "wait"

// topOrder returns the comparison of an order, or nil.
func topOrder(name string) func(a, b topRow) int {
	most := func(of func(topRow) float64) func(a, b topRow) int {
		return func(a, b topRow) int { return cmp.Or(cmp.Compare(of(b), of(a)), cmp.Compare(a.rank, b.rank)) }
	}
	return map[string]func(a, b topRow) int{
		topByWait:  most(func(r topRow) float64 { return r.waiting }),
		"rank":     func(a, b topRow) int { return cmp.Compare(a.rank, b.rank) },
		"sent":     most(func(r topRow) float64 { return r.sent }),
		"received": most(func(r topRow) float64 { return r.received }),
		"cpu":      most(func(r topRow) float64 { return r.cpu }),
	}[name]
}

// rows returns what changed at each rank since an earlier sample.
func (s *jobSample) rows(before *jobSample) (rows []topRow) {
	seconds := max(s.at.Sub(before.at).Seconds(), 1e-3)
	for rank, now := range s.ranks {
		old := before.ranks[rank]
		rate := func(name string) float64 {
			if old == nil {
				return 0
			}
			return max(0, now.values[name]-old.values[name]) / seconds
		}
		rows = append(rows, topRow{rankSample: now, messages: rate("muster_messages_sent_total"), sent: rate("muster_sent_bytes_total"),
			received: rate("muster_received_bytes_total"), wait: min(1, rate("muster_wait_seconds_total")), cpu: rate("muster_cpu_seconds_total")})
	}
	return rows
}

// screen formats the ranks, and the hosts if there are several.
func (s *jobSample) screen(before *jobSample, order string, shown int) string {
	rows := s.rows(before)
	slices.SortFunc(rows, topOrder(order))
	hosts, up := map[string]*topRow{}, 0
	ranksOf := map[string]int{}
	all := topRow{rankSample: &rankSample{values: map[string]float64{}}}
	for _, r := range rows {
		if hosts[r.host] == nil {
			hosts[r.host] = &topRow{rankSample: &rankSample{host: r.host, values: map[string]float64{}}}
		}
		ranksOf[r.host]++
		up += int(r.values["muster_rank_up"])
		hosts[r.host].add(r)
		all.add(r)
	}
	var b strings.Builder
	n := float64(max(len(rows), 1))
	fmt.Fprintf(&b, "%s  %d of %s running on %s   %s messages/s   %s/s   waiting %.0f %%   CPU %.1f   memory %s\n\n", s.at.Format(time.TimeOnly), up, count(len(rows), "rank"),
		count(len(hosts), "host"), shortNumber(all.messages), shortBytes(all.sent), 100*all.wait/n, all.cpu, shortBytes(all.values["muster_resident_memory_bytes"]))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "rank\thost\twaits in\tfor\twaiting\tmessages/s\tsent/s\treceived/s\tCPU\tmemory\tresent")
	for _, r := range rows[:min(len(rows), shown)] {
		call, since := "-", "-"
		switch {
		case r.values["muster_rank_up"] == 0:
			call = "(ended)"
		case r.call != "":
			call, since = r.call, (time.Duration(r.waiting * 1e9)).Round(time.Millisecond).String()
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", r.rank, r.host, call, since, r.columns())
	}
	if err := t.Flush(); err != nil { // a strings.Builder does not fail
		return b.String()
	}
	if left := len(rows) - shown; left > 0 {
		fmt.Fprintf(&b, "and %s; --rows shows more\n", count(left, "further rank"))
	}
	if len(hosts) < 2 {
		return b.String()
	}
	fmt.Fprintln(t, "\nhost\tranks\twaiting\tmessages/s\tsent/s\treceived/s\tCPU\tmemory\tresent")
	names := make([]string, 0, len(hosts))
	for name := range hosts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h := hosts[name]
		h.wait /= float64(ranksOf[name])
		fmt.Fprintf(t, "%s\t%d\t%s\n", name, ranksOf[name], h.columns())
	}
	t.Flush()
	return b.String()
}

// add adds another row.
func (r *topRow) add(o topRow) {
	r.messages, r.sent, r.received, r.wait, r.cpu = r.messages+o.messages, r.sent+o.sent, r.received+o.received, r.wait+o.wait, r.cpu+o.cpu
	for _, name := range []string{"muster_resident_memory_bytes", "muster_retransmits_total"} {
		r.values[name] += o.values[name]
	}
}

// columns formats what ranks and hosts have in common.
func (r *topRow) columns() string {
	return fmt.Sprintf("%.0f %%\t%s\t%s\t%s\t%.2f\t%s\t%s", 100*r.wait, shortNumber(r.messages), shortBytes(r.sent), shortBytes(r.received), r.cpu,
		shortBytes(r.values["muster_resident_memory_bytes"]), shortNumber(r.values["muster_retransmits_total"]))
}

// shortNumber formats a number with three digits.
func shortNumber(v float64) string {
	for _, unit := range []string{"", "K", "M", "G"} {
		if v < 999.5 {
			return fmt.Sprintf("%.3g%s", v, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.0fT", v)
}

// shortBytes formats a number of bytes with three digits.
func shortBytes(v float64) string {
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		if v < 1023.5 {
			return fmt.Sprintf("%.3g %s", v, unit)
		}
		v /= 1024
	}
	return fmt.Sprintf("%.3g TB", v)
}
