package results

// The HTML page of a report: one file without references to others.

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed report.html
var reportPage string

// WriteHTML writes the page.
func (r *Report) WriteHTML(w io.Writer) error {
	page, err := template.New("report").Funcs(template.FuncMap{
		"number": number,
		"change": func(c *Change, points bool) string { return c.text(points) },
		"bars":   func(figures []Figure) template.HTML { return template.HTML(Bars(figures)) }, // Bars escapes its text
		"table":  func(name string) *Table { return r.tables[name] },
		"limits": limits,
	}).Parse(reportPage)
	if err != nil {
		return err
	}
	return page.Execute(w, r)
}

// limits returns the limit of the figures, or of the first and the last if they differ.
func limits(figures []Figure) string {
	if len(figures) == 0 {
		return ""
	}
	show := func(f Figure) string { return f.Op + " " + number(f.Limit) + f.Unit }
	first, least, most := figures[0], figures[0], figures[0]
	for _, f := range figures {
		if f.Limit < least.Limit {
			least = f
		}
		if f.Limit > most.Limit {
			most = f
		}
	}
	if least.Limit == most.Limit {
		return show(first)
	}
	return first.Op + " " + number(least.Limit) + " to " + number(most.Limit) + first.Unit
}

// text shows a change with its noise.
func (c *Change) text(points bool) string {
	scale, unit := 100.0, " %"
	if points {
		scale, unit = 1, " points"
	}
	word := "worse"
	worse := c.Worse
	if worse < 0 {
		word, worse = "better", -worse
	}
	noise := "noise unknown: one round"
	if c.Noise > 0 {
		noise = "noise " + number(c.Noise*scale) + unit
	}
	return fmt.Sprintf("%s%s %s (%s)", number(worse*scale), unit, word, noise)
}
