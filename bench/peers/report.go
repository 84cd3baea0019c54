package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// cells are the table of a group: a head and one row a line.
func (s *summary) cells() [][]string {
	head := []string{""}
	for _, c := range s.contenders {
		head = append(head, fmt.Sprintf("%s, %s", c, s.group.shown))
	}
	compared := s.group.compared()
	if compared {
		head = append(head, "better peer", "ratio")
	}
	rows := [][]string{append(head, "must be", "")}
	for i := range s.lines {
		l := &s.lines[i]
		row := []string{l.title}
		for _, c := range s.contenders {
			row = append(row, l.figures[c].show(s.group.scale))
		}
		if compared {
			better := "-"
			if l.better >= 0 {
				better = l.better.String()
			}
			row = append(row, better, l.ratio.show(1))
		}
		rows = append(rows, append(row, s.bound(l), s.verdict(l)))
	}
	return rows
}

func (s *summary) bound(l *lineSummary) string {
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

// show is the median with the range in brackets, to three digits.
func (s spread) show(scale float64) string {
	if !s.known() {
		return "-"
	}
	return fmt.Sprintf("%s (%s–%s)", digits(s.mid*scale), digits(s.low*scale), digits(s.high*scale))
}

func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// conditions say how the figures came about.
func (s *summary) conditions() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of %d alternating rounds, range in brackets", s.rounds)
	if s.group.compared() {
		b.WriteString("; the ratio is the median of the rounds' ratios")
	}
	b.WriteString(".")
	if s.statistic != "value" {
		fmt.Fprintf(&b, " Of each run the %s of its batches was taken.", s.statistic)
	}
	if s.hop.known() {
		fmt.Fprintf(&b, " Cache line from core to core: %s ns.", s.hop.show(1))
	}
	if s.load.mid > quietShare {
		fmt.Fprintf(&b, " The machine was not quiet: others used %.0f %% (%.0f–%.0f) of the cores, so take these figures for a rehearsal.",
			s.load.mid*100, s.load.low*100, s.load.high*100)
	}
	if s.versions != "" {
		fmt.Fprintf(&b, " %s.", s.versions)
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

// text is for the terminal.
func (s *summary) text() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n%s\n", s.group.title)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range s.cells() {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Buffer takes everything
	fmt.Fprintln(&b, s.conditions())
	return b.String()
}

// markdown is for docs/results.md.
func (s *summary) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", s.group.title)
	for i, row := range s.cells() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat(" --- |", len(row)))
		}
	}
	if s.group.picture != "" {
		fmt.Fprintf(&b, "\n![%s](%s)\n", s.group.title, strings.TrimPrefix(s.group.picture, "docs/"))
	}
	fmt.Fprintf(&b, "\n%s Command: `make bench-peers`, or `go run ./bench/peers --only %s` for this table.\n", s.conditions(), s.group.name)
	return b.String()
}

// writeSection puts the section of one group into a file, in place of the one
// between the same markers, or else at the end.
func writeSection(path, name, body string) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		old, err = []byte("# Results\n"), os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err != nil {
		return err
	}
	text, err := replaceSection(string(old), name, body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func replaceSection(text, name, body string) (string, error) {
	begin := fmt.Sprintf("<!-- bench-peers %s: begin; written by bench/peers, do not edit -->\n", name)
	end := fmt.Sprintf("<!-- bench-peers %s: end -->\n", name)
	section := begin + body + end
	i, j := strings.Index(text, begin), strings.Index(text, end)
	switch {
	case i < 0 && j < 0:
		return strings.TrimRight(text, "\n") + "\n\n" + section, nil
	case i < 0 || j < i:
		return "", fmt.Errorf("the markers of the section %q do not pair up; put them right or remove both", name)
	}
	return text[:i] + section + text[j+len(end):], nil
}
