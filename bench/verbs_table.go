package bench

// The result of the trials of a verbs benchmark: a row for each size and figure, with one
// value per round for each device, and the ratios of values of the same round. Rows are
// printed as a table or as JSON, or drawn.

import (
	"fmt"
	"io"
	"slices"
)

// VerbsRow is one figure at one size, of all devices.
type VerbsRow struct {
	Bench        string
	Connections  int
	Size         int
	Metric, Unit string
	Against      string // device in the denominator of the ratios
	Cells        []VerbsCell
}

// VerbsCell is that figure of one device.
type VerbsCell struct {
	Device  string
	Way     string    // operation that carried the bytes
	Values  []float64 // by round
	Ratios  []float64 // to the device Against, by round
	Missing string    // why there are no values
}

// rows collects the rows of one size.
type rows struct {
	p                 *VerbsParams
	connections, size int
	list              []VerbsRow
}

func newRows(p *VerbsParams, connections, size int) *rows {
	return &rows{p: p, connections: connections, size: size}
}

// add records what a trial of a device has measured.
func (r *rows) add(device int, got []figure) {
	for _, f := range got {
		c := &r.row(f).Cells[device]
		c.Way = f.way
		c.Values = append(c.Values, f.value)
	}
}

func (r *rows) row(f figure) *VerbsRow {
	i := slices.IndexFunc(r.list, func(row VerbsRow) bool { return row.Metric == f.metric })
	if i < 0 {
		row := VerbsRow{Connections: r.connections, Size: r.size, Metric: f.metric, Unit: f.unit, Against: r.p.Against}
		for _, name := range r.p.Devices {
			row.Cells = append(row.Cells, VerbsCell{Device: name})
		}
		i, r.list = len(r.list), append(r.list, row)
	}
	return &r.list[i]
}

// leaveOut removes a device. A reason means that it has no values.
func (r *rows) leaveOut(device int, reason string) {
	for i := range r.list {
		row := &r.list[i]
		c := &row.Cells[device]
		if len(c.Values) == 0 {
			c.Missing = reason
			continue
		}
		base := row.Cells[slices.Index(r.p.Devices, r.p.Against)].Values
		for k := range min(len(base), len(c.Values)) {
			if base[k] > 0 {
				c.Ratios = append(c.Ratios, c.Values[k]/base[k])
			}
		}
	}
}

// VerbsPrinter writes rows as text or JSON.
type VerbsPrinter struct {
	W        io.Writer
	JSON     bool
	B        Verbs
	Round    int // number of rounds
	begun    bool
	reported map[string]bool // reasons that have been printed
}

// Print writes one row.
func (p *VerbsPrinter) Print(row VerbsRow) error {
	if p.JSON {
		json := Printer{W: p.W, JSON: true}
		for _, r := range row.Results() {
			json.Print(r)
		}
		return nil
	}
	if !p.begun {
		p.begun, p.reported = true, map[string]bool{}
		fmt.Fprintf(p.W, "# Muster %s\n# Medians of %d rounds in which the devices alternate; the ratio is the median of the rounds' ratios.\n", p.B.Title, p.Round)
		fmt.Fprintf(p.W, "%-10s%-6s%-16s%-13s%12s%12s%12s%9s  %s\n", "# Size", "conns", "Device", "Figure", "Median", "Min", "Max", "/"+row.Against, "Way")
	}
	for _, c := range row.Cells {
		if c.Missing != "" && !p.reported[c.Device+c.Missing] {
			p.reported[c.Device+c.Missing] = true
			fmt.Fprintf(p.W, "# %s at %d bytes: %s\n", c.Device, row.Size, c.Missing)
		}
		if len(c.Values) == 0 {
			continue
		}
		ratio := ""
		if len(c.Ratios) > 0 {
			ratio = fmt.Sprintf("%.2f", Median(c.Ratios))
		}
		figure := row.Metric
		if row.Unit != "" {
			figure += "/" + row.Unit
		}
		_, err := fmt.Fprintf(p.W, "%-10d%-6d%-16s%-13s%12.2f%12.2f%12.2f%9s  %s\n", row.Size, row.Connections, c.Device, figure,
			Median(c.Values), slices.Min(c.Values), slices.Max(c.Values), ratio, c.Way)
		if err != nil {
			return err
		}
	}
	return nil
}

// Results returns the row in the form of other benchmarks: for each device its figure and
// its ratio.
func (row VerbsRow) Results() []Result {
	var out []Result
	for _, c := range row.Cells {
		if len(c.Values) == 0 {
			continue
		}
		r := Result{Bench: row.Bench, Ranks: 2, Device: c.Device, Size: row.Size, Connections: row.Connections, Metric: row.Metric, Unit: row.Unit, Way: c.Way}
		out = append(out, OverRounds(r, c.Values))
		if c.Device != row.Against && len(c.Ratios) > 0 {
			r.Unit, r.Against, r.Beside = "ratio", row.Against, true
			out = append(out, OverRounds(r, c.Ratios))
		}
	}
	return out
}

// OverRounds returns the median of rounds with their range.
func OverRounds(r Result, values []float64) Result {
	r.Value, r.Min, r.P50, r.P99 = Median(values), slices.Min(values), Median(values), slices.Max(values)
	return r
}

// VerbsChart draws the first figure of a benchmark: a line for each device, over the size
// or over the number of connections.
func VerbsChart(b Verbs, list []VerbsRow) Chart {
	c := Chart{Title: b.Title, X: "message size", Y: b.Column, Bytes: true}
	if b.Connections != nil {
		c.X, c.Bytes = "connections", false
	}
	for _, row := range list {
		if row.Metric != list[0].Metric {
			continue
		}
		for _, cell := range row.Cells {
			if len(cell.Values) == 0 {
				continue
			}
			name, x := cell.Device, float64(row.Size)
			if b.Connections != nil {
				name, x = fmt.Sprintf("%s, %s", name, Chart{Bytes: true}.label(float64(row.Size))), float64(row.Connections)
			}
			c.Add(name, max(x, 1), Median(cell.Values))
		}
	}
	return c
}
