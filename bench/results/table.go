package results

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Folder holds the runs, and the pages that are rendered from them, as the other is. All are
// relative to the module root.
const (
	Folder    = "docs/results"
	Page      = "docs/results.md"
	IndexPage = Folder + "/README.md" // lists the tables
)

// Table is what was measured for a group of figures.
type Table struct {
	Name    string     `json:"name"`
	Title   string     `json:"title"`
	Rounds  int        `json:"rounds"`           // that the figures are medians of
	Loaded  bool       `json:"loaded,omitempty"` // other processes used the machine
	Stamp   Stamp      `json:"measured"`
	Picture string     `json:"picture,omitempty"` // file name of a chart in the same folder; "" if there is none
	Head    []string   `json:"head"`
	Rows    [][]string `json:"rows"`  // the first cell is the label of the row
	Notes   string     `json:"notes"` // the conditions of the measurement
	page    string     // name of the generated page that shows it
}

// Markdown returns the table as a section of a page.
func (t *Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", t.Name, t.Title)
	writeRows(&b, t.Head, t.Rows)
	if t.Picture != "" {
		fmt.Fprintf(&b, "\n![%s](%s)\n", t.Title, t.Picture)
	}
	if t.Notes != "" {
		fmt.Fprintf(&b, "\n%s\n", t.Notes)
	}
	fmt.Fprintf(&b, "\n%s UTC, commit %s: `%s`. %s; %s.\n", t.Stamp.Date, t.Stamp.Commit, t.Stamp.Command, t.Stamp.Versions, t.Stamp.Machine)
	return b.String()
}

func writeRows(b *strings.Builder, head []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
}

// Text formats the table for the terminal.
func (t *Table) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", t.Title)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Builder does not fail
	fmt.Fprintln(&b, t.Notes)
	return b.String()
}

// check returns an error if the table has no figures or does not say how they were measured.
func (t *Table) check() error {
	if len(t.Rows) == 0 {
		return errors.New("it has no rows")
	}
	for _, row := range t.Rows {
		if len(row) != len(t.Head) {
			return fmt.Errorf("the row %q has %d cells, the head has %d", row, len(row), len(t.Head))
		}
	}
	if t.Rounds < 1 {
		return errors.New("it has no rounds")
	}
	return t.Stamp.check()
}

// column returns the index of the column whose heading is name, or begins with name
// and a comma; -1 if there is none.
func (t *Table) column(name string) int {
	return slices.IndexFunc(t.Head, func(h string) bool {
		heading, _ := SplitHead(h)
		return h == name || heading == name
	})
}

// SplitHead splits the head of a column into its heading, which may have commas, and its unit.
func SplitHead(head string) (heading, unit string) {
	if i := strings.LastIndex(head, ", "); i >= 0 {
		return head[:i], head[i+2:]
	}
	return head, ""
}

// unit returns what follows the comma in the heading of a column.
func (t *Table) unit(column int) string {
	_, unit := SplitHead(t.Head[column])
	return unit
}

// figure reads a cell such as "0.39 (0.36–0.43)". It returns NaN for a cell that has
// no finite number.
func figure(cell string) float64 {
	first, _, _ := strings.Cut(cell, " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// interval reads the range of a cell such as "0.39 (0.36–0.43)". A cell without one has the
// figure as both ends.
func interval(cell string) (low, high float64) {
	low, high = figure(cell), figure(cell)
	_, after, _ := strings.Cut(cell, "(")
	inside, _, _ := strings.Cut(after, ")")
	from, to, ok := strings.Cut(inside, "–")
	if !ok {
		return low, high
	}
	return figure(from), figure(to)
}

// parseBound reads a cell such as "≤ 0.6 ×".
func parseBound(cell string) (op string, limit float64, ok bool) {
	fields := strings.Fields(cell)
	if len(fields) < 2 || fields[0] != AtMost && fields[0] != AtLeast {
		return "", 0, false
	}
	limit, err := strconv.ParseFloat(fields[1], 64)
	return fields[0], limit, err == nil
}

// Value reads a cell: a figure and the range of its rounds. They are NaN if it has none.
func Value(cell string) (mid, low, high float64) {
	low, high = interval(cell)
	return figure(cell), low, high
}
