package prof

// How much of the operations of a call site was hidden behind computation.

import (
	"cmp"
	"slices"
)

// Overlap sums up the operations that the calls of a site have started: those that were under
// way when the call returned, from then to their completion. Only collectives and operations of
// more than 32 KB are measured.
type Overlap struct {
	Operations uint64 `json:"operations"`
	Early      uint64 `json:"early"` // of these, complete before the rank waited for them

	Time        uint64 `json:"time"`         // ns
	Hidden      uint64 `json:"hidden"`       // of it, outside of calls
	HiddenEarly uint64 `json:"hidden_early"` // of that, of early operations
	Waited      uint64 `json:"waited"`       // of Time, in waits and tests; the rest is in other calls
}

// Shares returns bounds of the share of the transfers that was hidden. An operation that is not
// early may have been transferred while the rank computed, or not before it waited: then the
// computation before has hidden nothing and prolonged it.
func (o *Overlap) Shares() (least, most float64) {
	return float64(o.HiddenEarly) / float64(max(o.shortest(), 1)), float64(o.Hidden) / float64(max(o.Time, 1))
}

// shortest returns the time without what may have prolonged the operations.
func (o *Overlap) shortest() uint64 { return o.Time - (o.Hidden - o.HiddenEarly) }

// Add adds other operations of the site.
func (o *Overlap) Add(p Overlap) {
	o.Operations, o.Early = o.Operations+p.Operations, o.Early+p.Early
	o.Time, o.Waited = o.Time+p.Time, o.Waited+p.Waited
	o.Hidden, o.HiddenEarly = o.Hidden+p.Hidden, o.HiddenEarly+p.HiddenEarly
}

// overlapping returns the call sites with measured operations, those with the most waiting
// first.
func (s *Summary) overlapping() []*CallSite {
	all := slices.DeleteFunc(s.byTime(), func(c *CallSite) bool { return c.Overlap.Operations == 0 })
	slices.SortStableFunc(all, func(x, y *CallSite) int {
		return cmp.Or(cmp.Compare(y.Overlap.Waited, x.Overlap.Waited), cmp.Compare(y.Overlap.Time, x.Overlap.Time))
	})
	return all
}

// overlap writes how much of the operations was hidden behind computation.
func (b *page) overlap(s *Summary) {
	all := s.overlapping()
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"call", "operations", "under way", "mean", "hidden", "", "waited", "early", "call site"}}
	for _, c := range all[:min(len(all), callSitesShown)] {
		o := &c.Overlap
		rows = append(rows, []string{c.Routine, groupDigits(o.Operations), brief(float64(o.Time)), brief(float64(o.Time) / float64(o.Operations)),
			percent(o.HiddenEarly, o.shortest()), "to " + percent(o.Hidden, o.Time), brief(float64(o.Waited)), percent(o.Early, o.Operations), c.location()})
	}
	b.line("")
	b.table(rows)
	b.further(len(all)-callSitesShown, "call site")
}

// overlapLegend explains the table.
func (b *page) overlapLegend(s *Summary) {
	if len(s.overlapping()) == 0 {
		return
	}
	b.line("under way: from the return of the call that starts a collective, or a transfer")
	b.line("of more than 32 KB, to its completion. hidden: the rank computed meanwhile; the")
	b.line("lower bound is for transfers that stand still until they are waited for.")
	b.line("waited: it was in Wait or Test. early: complete before it was waited for.")
}
