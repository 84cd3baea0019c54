package groups

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/bench/results"
)

// studyRow is a figure of an application with a setting, and the same of the reference.
type studyRow struct {
	app                        *studyApp
	label, figure, setting     string
	reference, compared, ratio spread
	target                     target
}

// rows returns the table: for each application and figure one row for each setting that is
// compared, or for the only one.
func (r *studyRuns) rows() (rows []studyRow) {
	for i := range r.apps {
		a := &r.apps[i]
		settings := r.settingsOf(a)
		for f, figure := range r.figures {
			for k := min(1, len(settings)-1); k < len(settings); k++ {
				row := studyRow{
					app: a, figure: figure.title, setting: settings[k].name,
					label:     fmt.Sprintf("%s, %s, %s", a.title(), figure.title, settings[k].name),
					reference: spreadOf(r.values[i][f][0]), compared: spreadOf(r.values[i][f][k]), ratio: spreadOf(nil),
				}
				if figure.alone {
					row.reference = spreadOf(nil)
				} else {
					row.label += " over " + settings[0].name
					row.ratio = spreadOf(ratios(r.values[i][f][k], r.values[i][f][0]))
				}
				row.target = a.target(figure.title, settings[k].name)
				rows = append(rows, row)
			}
		}
		if i < len(r.imbalance) && r.imbalance[i].known {
			call := a.calls[0]
			for _, one := range []struct {
				what  string
				value float64
			}{{"average imbalance at " + call + " (messages)", r.imbalance[i].average}, {"worst imbalance at " + call + " (messages)", r.imbalance[i].worst}} {
				rows = append(rows, studyRow{app: a, figure: one.what, label: a.title() + ", " + one.what + ", " + settings[0].name,
					reference: spreadOf([]float64{one.value}), compared: spreadOf(nil), ratio: spreadOf(nil), target: a.target(one.what, "")})
			}
		}
	}
	return rows
}

// target returns what a document reports for a figure with a setting.
func (a *studyApp) target(figure, setting string) target {
	for _, t := range a.targets {
		if strings.HasPrefix(figure, t.figure) && t.setting == setting {
			return t
		}
	}
	return target{}
}

func (row *studyRow) cells() []string {
	must, result := "-", ""
	if row.target.must > 0 {
		must, result = fmt.Sprintf("≤ %g ×", row.target.must), row.ratio.judge(row.target.must, false)
	}
	document := row.target.document
	if document == "" {
		document = "-"
	}
	return []string{row.label, row.reference.show(1), row.compared.show(1), row.ratio.show(1), document, must, result}
}

// table returns the table without its stamp.
func (r *studyRuns) table() *results.Table {
	t := &results.Table{
		Name: r.name, Title: r.title, Picture: r.name + ".svg", Notes: r.conditions(), Rounds: r.rounds, Loaded: isLoaded(spreadOf(r.loads)),
		Head: []string{"", "reference", "compared", ratioColumn, "document", "must be", ""},
	}
	for _, row := range r.rows() {
		t.Rows = append(t.Rows, row.cells())
	}
	if svg, err := r.picture(); err == nil && svg == nil {
		t.Picture = ""
	}
	return t
}

func (r *studyRuns) conditions() string {
	parts := []string{fmt.Sprintf("Medians of %d alternating rounds, range in brackets; the ratio is the median of the rounds' ratios.", r.rounds)}
	if load := spreadOf(r.loads); isLoaded(load) {
		parts = append(parts, loadNote(load))
	}
	if r.hosts > 0 {
		parts = append(parts, fmt.Sprintf("The ranks run on %d hosts, network namespaces of this machine, with cables of %s.", r.hosts, r.rate))
	}
	parts = append(parts, "Times in calls are means of the ranks over the whole program.")
	if r.note != "" {
		parts = append(parts, r.note)
	}
	if len(r.failures) > 0 {
		parts = append(parts, fmt.Sprintf("%d runs failed; the first: %v.", len(r.failures), strings.ReplaceAll(r.failures[0].Error(), "\n", " ")))
	}
	text := strings.Join(parts, " ")
	if r.differs != "" {
		text += "\n\nWhere it differs from the document: " + r.differs
	}
	return text
}

// picture returns the figure as SVG, nil if there is none: bars of the ratios that a document reports or that have
// a threshold, or lines over the number of ranks.
func (r *studyRuns) picture() ([]byte, error) {
	if r.overRanks != "" {
		var b bytes.Buffer
		err := r.chart().WriteSVG(&b)
		return b.Bytes(), err
	}
	chart := bench.BarChart{Title: r.title, X: "relative to the reference, whose value is 1", Mark: "the document's ratio, or else the limit"}
	for _, row := range r.rows() {
		if !row.ratio.known() || row.target.ratio == 0 && row.target.must == 0 {
			continue
		}
		limit := cmp.Or(row.target.ratio, row.target.must)
		chart.Rows = append(chart.Rows, bench.BarRow{Label: row.app.title() + ", " + row.figure, Mark: &limit,
			Bars: []bench.Bar{{Name: strings.TrimPrefix(row.label, row.app.title()+", "+row.figure+", "), Value: row.ratio.mid, Low: row.ratio.low, High: row.ratio.high}}})
	}
	if len(chart.Rows) == 0 { // all are shown alone
		return nil, nil
	}
	var b bytes.Buffer
	err := chart.WriteSVG(&b)
	return b.Bytes(), err
}

// chart draws a figure over the number of ranks, one line for each application and setting.
func (r *studyRuns) chart() bench.Chart {
	c := bench.Chart{Title: r.title, X: "ranks", Y: r.overRanks}
	for i := range r.apps {
		a := &r.apps[i]
		for f, figure := range r.figures {
			if figure.title != r.overRanks {
				continue
			}
			for k, one := range r.settingsOf(a) {
				if v := spreadOf(r.values[i][f][k]); v.known() {
					c.Add(a.name+", "+one.name, float64(a.ranks), v.mid)
				}
			}
		}
	}
	return c
}
