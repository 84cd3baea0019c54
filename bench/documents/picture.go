package documents

// The picture of a figure: lines over the size, the ranks and so on if the labels of its rows
// have such numbers, or else a bar for each row. Values of the document are drawn with ours.

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/bench"
)

// axis is what the numbers in labels can be.
type axis struct {
	title   string
	pattern *regexp.Regexp // its first group is the number
	bytes   bool           // the second group is the unit
}

// axes lists what the numbers in labels can be; the first that fits counts.
func axes() []axis {
	return []axis{
		{"connections", regexp.MustCompile(`\b(\d+) connections?\b`), false},
		{"pairs of ranks", regexp.MustCompile(`\b(\d+) pairs?\b`), false},
		{"communication / computation", regexp.MustCompile(`\bratio ([\d.]+)`), false},
		{"buffers in the table", regexp.MustCompile(`\b(\d+) buffers\b`), false},
		{"message size", regexp.MustCompile(`\b(\d+) (B|KB|MB|GB)\b`), true},
		{"ranks", regexp.MustCompile(`\b(\d+) ranks?\b`), false},
		{"maximum imbalance factor (MIF)", regexp.MustCompile(`\bMIF (\d+)`), false},
	}
}

var byteUnits = map[string]float64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}

// parse returns the number in a label, and the label without it.
func (a *axis) parse(label string) (x float64, rest string, ok bool) {
	at := a.pattern.FindStringSubmatchIndex(label)
	if at == nil {
		return 0, "", false
	}
	x, err := strconv.ParseFloat(label[at[2]:at[3]], 64)
	if a.bytes {
		x *= byteUnits[label[at[4]:at[5]]]
	}
	rest = label[:at[0]] + label[at[1]:]
	rest = strings.Trim(strings.ReplaceAll(rest, ", , ", ", "), ", ")
	return x, rest, err == nil && x > 0
}

// leastPoints is the number of different positions from which a line is drawn.
const leastPoints = 3

// axisOf returns the axis of which every label has a number and every line several points, nil if
// there is none.
func axisOf(cells []cell) *axis {
	for _, a := range axes() {
		seen, points := map[float64]bool{}, map[string]int{}
		all := true
		for _, c := range cells {
			x, name, ok := a.parse(c.label)
			seen[x], all = true, all && ok
			points[c.column+name]++
		}
		for _, n := range points {
			all = all && n > 1
		}
		if all && len(seen) >= leastPoints {
			return &a
		}
	}
	return nil
}

// picture returns the picture of a figure as SVG, "" if it has no figures to draw.
func (g *gallery) picture(d *Document, f *Figure) string {
	var cells []cell
	columns := map[string]bool{}
	for i := range f.Ours {
		drawn := regexp.MustCompile(f.Ours[i].Drawn)
		for _, c := range f.Ours[i].cells(g.tables) {
			if drawn.MatchString(c.label) {
				cells, columns[c.column] = append(cells, c), true
			}
		}
	}
	if len(cells) < 2 {
		return ""
	}
	nameRows(cells)
	title, y := d.Name+" "+f.title(), f.Y
	if y == "" {
		y = unitTitles[cells[0].unit]
	}
	var b strings.Builder
	if a := axisOf(cells); a != nil {
		_ = lines(title, y, d.Name, f, cells, a, len(columns) > 1).WriteSVG(&b) // a Builder does not fail
		return b.String()
	}
	_ = bars(title, y, d.Name, f, cells).WriteSVG(&b)
	return b.String()
}

// nameRows makes the names of rows different if several tables have the same labels.
func nameRows(cells []cell) {
	same := false
	for i := range cells {
		same = same || slices.ContainsFunc(cells, func(c cell) bool {
			return c.table != cells[i].table && c.label == cells[i].label && c.column == cells[i].column
		})
	}
	for i := range cells {
		cells[i].name = cells[i].label
		if same {
			cells[i].name = cells[i].table.Name + ", " + cells[i].label
		}
	}
}

// unitTitles are titles of axes by unit.
var unitTitles = map[string]string{
	"%": "share (%)", "×": "relative to the reference", "µs": "time (µs)", "ms": "time (ms)", "MB/s": "bandwidth (MB/s)", "GB/s": "bandwidth (GB/s)",
	"MiB": "memory (MiB)", "ns": "time (ns)", "s": "time (s)",
}

// logarithmic values are so far apart that a linear axis would hide the small ones.
const logarithmic = 30

func lines(title, y, document string, f *Figure, cells []cell, a *axis, columns bool) bench.Chart {
	c := bench.Chart{Title: title, X: a.title, Y: y, Bytes: a.bytes}
	low, high := cells[0].mid, cells[0].mid
	for _, one := range cells {
		x, name, _ := a.parse(one.name)
		if columns || name == "" {
			name = strings.Trim(name+", "+one.column, ", ")
		}
		c.Add(name, x, one.mid)
		low, high = min(low, one.mid), max(high, one.mid)
	}
	c.Join()
	c.Times = low > 0 && high/low > logarithmic && cells[0].unit != "%"
	for i := range f.Values {
		if v := &f.Values[i]; v.Number != nil {
			for _, x := range v.positions(cells, a) {
				c.Quote(document+": "+v.Of, x, *v.Number)
			}
		}
	}
	return c
}

// positions returns where a value of the document is on the axis: at X, or at the first and the last
// of the rows that it is compared with.
func (v *Value) positions(cells []cell, a *axis) []float64 {
	if v.X > 0 || v.Rows == "" {
		return []float64{v.X}
	}
	var list []float64
	for _, c := range cells {
		if (v.Table == "" || v.Table == c.table.Name) && regexp.MustCompile(v.Rows).MatchString(c.label) {
			x, _, _ := a.parse(c.label)
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []float64{slices.Min(list), slices.Max(list)}
}

func bars(title, y, document string, f *Figure, cells []cell) bench.BarChart {
	c := bench.BarChart{Title: title, X: y, Mark: document}
	for _, one := range cells {
		i := slices.IndexFunc(c.Rows, func(r bench.BarRow) bool { return r.Label == one.name })
		if i < 0 {
			i, c.Rows = len(c.Rows), append(c.Rows, bench.BarRow{Label: one.name})
			for k := range f.Values {
				if v := &f.Values[k]; v.Number != nil && v.Rows != "" && (v.Table == "" || v.Table == one.table.Name) && regexp.MustCompile(v.Rows).MatchString(one.label) {
					c.Rows[i].Mark = v.Number
				}
			}
		}
		c.Rows[i].Bars = append(c.Rows[i].Bars, bench.Bar{Name: one.column, Value: one.mid, Low: one.low, High: one.high})
	}
	c.All = shorten(c.Rows)
	return c
}

// shorten removes from the labels of rows what all have, and returns it.
func shorten(rows []bench.BarRow) string {
	parts := make([][]string, len(rows))
	for i, r := range rows {
		parts[i] = strings.Split(r.Label, ", ")
	}
	var all []string
	for _, part := range slices.Clone(parts[0]) {
		if !slices.ContainsFunc(parts, func(p []string) bool { return len(p) == 1 || !slices.Contains(p, part) }) {
			all = append(all, part)
			for i := range parts {
				at := slices.Index(parts[i], part)
				parts[i] = slices.Delete(parts[i], at, at+1)
			}
		}
	}
	for i := range rows {
		rows[i].Label = strings.Join(parts[i], ", ")
	}
	return strings.Join(all, ", ")
}
