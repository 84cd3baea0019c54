package prof

// The statistics of each call site (T2 table 6.1), and their text.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// SiteArrivals holds the statistics of the calls of one routine at one call site. Times
// are in ns, means over the calls.
type SiteArrivals struct {
	Routine, Site string
	Calls         int     // including those not recorded
	Bytes         float64 // of a message, mean
	Message       float64 // time of a message of that length: T
	// Average is the average-case imbalance time, the mean distance of a rank from the
	// mean arrival; Worst the worst-case imbalance time, from the first to the last
	// (T2 equations 6.2 and 6.3).
	Average, Worst float64
	// AverageFactor and WorstFactor are the two in multiples of the message time: means
	// over the calls of d/T and of delta/T. 0 if no message was timed.
	AverageFactor, WorstFactor float64
	InCall                     float64 // of a rank
	Tail                       float64 // from the last arrival to the last exit
	sum                        float64 // of the time in calls, to order by
}

// Sites returns the statistics of all call sites, sorted by the time that ranks spend in
// them.
func (a *Arrivals) Sites() []SiteArrivals {
	type callSite struct{ routine, site string }
	at := map[callSite]int{}
	var sites []SiteArrivals
	for i := range a.Calls {
		c := &a.Calls[i]
		p := callSite{c.Routine, c.Site}
		k, seen := at[p]
		if !seen {
			k = len(sites)
			at[p], sites = k, append(sites, SiteArrivals{Routine: c.Routine, Site: c.Site})
		}
		s, w, n := &sites[k], float64(c.Weight), float64(c.Came)
		s.Calls += c.Weight
		s.Bytes += w * float64(c.Bytes)
		s.Average += w * c.Deviation / n
		s.Worst += w * float64(c.Spread())
		s.InCall += w * c.InCall / n
		s.Tail += w * float64(c.Exit-c.Last)
		s.sum += w * c.InCall
		if t := a.messageTime(float64(c.Bytes)); t > 0 {
			s.Message += w * t
			s.AverageFactor += w * c.Deviation / n / t
			s.WorstFactor += w * float64(c.Spread()) / t
		}
	}
	for k := range sites {
		s := &sites[k]
		for _, v := range []*float64{&s.Bytes, &s.Average, &s.Worst, &s.InCall, &s.Tail, &s.Message, &s.AverageFactor, &s.WorstFactor} {
			*v /= float64(s.Calls)
		}
	}
	slices.SortStableFunc(sites, func(x, y SiteArrivals) int {
		return cmp.Or(cmp.Compare(y.sum, x.sum), strings.Compare(x.Site+x.Routine, y.Site+y.Routine))
	})
	return sites
}

// messageTime returns the time of a message: interpolated between the measured lengths,
// and in proportion beyond the longest.
func (a *Arrivals) messageTime(bytes float64) float64 {
	m := a.Messages
	if len(m) == 0 {
		return 0
	}
	if len(m) == 1 || bytes <= float64(m[0].Bytes) {
		return m[0].Nanos
	}
	i := 1
	for i < len(m)-1 && bytes > float64(m[i].Bytes) {
		i++
	}
	low, high := m[i-1], m[i]
	return max(low.Nanos+(bytes-float64(low.Bytes))*(high.Nanos-low.Nanos)/float64(high.Bytes-low.Bytes), m[0].Nanos)
}

// sitesShown is the number of call sites on one screen.
const sitesShown = 30

// Text formats the statistics for one screen.
func (a *Arrivals) Text() string {
	var b page
	sites, calls := a.Sites(), 0
	for _, s := range sites {
		calls += s.Calls
	}
	over := strings.Join(a.Devices, ", ")
	if over == "" {
		over = "no device"
	}
	b.line("arrivals: %s on %s over %s", plural(uint64(a.Ranks), "rank"), plural(uint64(a.Hosts), "host"), over)
	if len(sites) == 0 {
		b.entry("collectives", "none that more than one rank made and that ended")
		return b.String()
	}
	b.entry("collectives", "%s at %s", plural(uint64(calls), "call"), plural(uint64(len(sites)), "call site"))
	if recorded := len(a.Calls); recorded < calls {
		b.entry("recorded", "%s of them, the others were thinned out", groupDigits(uint64(recorded)))
	}
	if a.Lost > 0 {
		b.entry("lost", "%s found no room", plural(uint64(a.Lost), "record"))
	}
	if a.ClockError > 0 {
		b.entry("clocks", "of several hosts, compared to within %s", brief(float64(a.ClockError)))
	}
	b.line("")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "call site\troutine\tcalls\tbytes\tT\taverage\tworst\td/T\tdelta/T\tin call\ttail")
	for _, s := range sites[:min(len(sites), sitesShown)] {
		message, d, delta := "-", "-", "-"
		if s.Message > 0 {
			message, d, delta = brief(s.Message), factor(s.AverageFactor), factor(s.WorstFactor)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Site, s.Routine, groupDigits(uint64(s.Calls)), groupDigits(uint64(s.Bytes+.5)), message,
			brief(s.Average), brief(s.Worst), d, delta, brief(s.InCall), brief(s.Tail))
	}
	t.Flush() // a Builder returns no errors
	if more := len(sites) - sitesShown; more > 0 {
		b.line("and %s", plural(uint64(more), "further call site"))
	}
	return b.String()
}

func factor(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return groupDigits(uint64(v + .5))
}

// brief formats a time in ns with three digits.
func brief(ns float64) string {
	for _, u := range []struct {
		name  string
		nanos float64
	}{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}} {
		if v := ns / u.nanos; v >= .9995 {
			return fmt.Sprintf("%.3g %s", v, u.name)
		}
	}
	return fmt.Sprintf("%.0f ns", ns)
}
