package groups

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/bench/results"
)

// ratioColumn is the heading of our figure relative to that of the better peer, or of an
// application with a technique relative to that without.
const ratioColumn = "ratio"

// cells returns the table of a group: the head and one row for each line.
func (s *summary) cells() [][]string {
	head := []string{""}
	for _, c := range s.contenders {
		head = append(head, fmt.Sprintf("%s, %s", c, s.group.shown))
	}
	compared := s.group.compared()
	switch {
	case compared && s.group.added:
		head = append(head, "relative to "+s.group.peers[0].String(), "together, "+s.group.shown, ratioColumn)
	case compared:
		head = append(head, "better peer", ratioColumn)
	}
	bounded := slices.ContainsFunc(s.lines, func(l lineSummary) bool { return l.bound != unbound })
	if bounded {
		head = append(head, "must be", "")
	}
	rows := [][]string{head}
	for i := range s.lines {
		l := &s.lines[i]
		row := []string{l.title}
		for _, c := range s.contenders {
			cell := l.figures[c].show(s.group.scale)
			if l.tails[c].known() {
				cell += " p99 " + digits(l.tails[c].mid*s.group.scale)
			}
			row = append(row, cell)
		}
		if compared && s.group.added {
			row = append(row, l.toFirst.show(1), l.together.show(s.group.scale), l.ratio.show(1))
		} else if compared {
			better := "-"
			if l.better >= 0 {
				better = l.better.String()
			}
			row = append(row, better, l.ratio.show(1))
		}
		if bounded {
			row = append(row, s.boundText(l), s.result(l))
		}
		rows = append(rows, row)
	}
	return rows
}

func (s *summary) boundText(l *lineSummary) string {
	if l.bound == unbound {
		return "-"
	}
	sign, times := "≤", ""
	if s.group.largerBetter {
		sign = "≥"
	}
	if s.group.compared() {
		times = " ×"
	}
	return fmt.Sprintf("%s %g%s", sign, l.bound, times)
}

// show formats the median with the range in brackets.
func (s spread) show(scale float64) string {
	if !s.known() {
		return "-"
	}
	return fmt.Sprintf("%s (%s–%s)", digits(s.mid*scale), digits(s.low*scale), digits(s.high*scale))
}

func digits(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// conditions describes the measurement.
func (s *summary) conditions() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of %d alternating rounds, range in brackets", s.rounds)
	if s.group.compared() {
		b.WriteString("; the ratio is the median of the rounds' ratios")
	}
	b.WriteString(".")
	if s.statistic != "value" {
		fmt.Fprintf(&b, " The figure of a run is the %s of its batches.", s.statistic)
	}
	if slices.ContainsFunc(s.lines, func(l lineSummary) bool { return l.tails[muster].known() }) {
		b.WriteString(" p99 is the median of the rounds' p99, over batches or calls.")
	}
	if s.hop.known() {
		fmt.Fprintf(&b, " Cache line from core to core: %s ns.", s.hop.show(1))
	}
	if isLoaded(s.load) {
		b.WriteString(" " + loadNote(s.load))
	}
	if s.group.note != "" {
		b.WriteString(" " + s.group.note)
	}
	for _, c := range s.contenders {
		if fails := s.failures[c]; len(fails) > 0 {
			hung := 0
			for _, err := range fails {
				if errors.Is(err, errHung) {
					hung++
				}
			}
			fmt.Fprintf(&b, " %s failed in %d of %d runs (%d of them hung).", c, len(fails), s.rounds, hung)
		}
	}
	return b.String()
}

// table returns the table without its stamp.
func (s *summary) table() *results.Table {
	cells := s.cells()
	t := &results.Table{Name: s.group.name, Title: s.group.title, Head: cells[0], Rows: cells[1:], Notes: s.conditions(), Rounds: s.rounds, Loaded: isLoaded(s.load)}
	if s.group.chart {
		t.Picture = s.group.name + ".svg"
	}
	return t
}

// measured reports whether at least one figure of ours is known.
func (s *summary) measured() bool {
	return slices.ContainsFunc(s.lines, func(l lineSummary) bool { return l.figures[muster].known() })
}
