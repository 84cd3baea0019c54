package bench

// A bar chart as SVG: horizontal bars in rows, with the range of each and a mark.

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// BarChart is a picture of bars over a linear axis that begins at zero.
type BarChart struct {
	Title string
	All   string // what is true of all rows, below the title
	X     string // what the axis shows, with its unit
	Mark  string // what the marks are, for the legend
	Rows  []BarRow
}

// BarRow has one label and a bar for each series.
type BarRow struct {
	Label string
	Bars  []Bar
	Mark  *float64 // nil: none
}

// Bar is a figure of a series, with the range of its rounds.
type Bar struct {
	Name             string
	Value, Low, High float64
}

// The picture, in pixels. Labels have the room that the longest one needs.
const (
	barPicture              = 800
	barHeight, barGap       = 11, 9
	barTop, barBottom       = 40, 46
	barValues               = 60  // for the figures behind the bars
	labelWidth              = 7.2 // of a character; the fonts of readers differ
	valueWidth              = 6.5
	shortestAxis, barLegend = 240, 20
)

// series lists the names of the bars.
func (c BarChart) series() (names []string) {
	for _, r := range c.Rows {
		for _, b := range r.Bars {
			if !slices.Contains(names, b.Name) {
				names = append(names, b.Name)
			}
		}
	}
	return names
}

// span returns the ends of the axis and its step.
func (c BarChart) span() (low, high, step float64) {
	for _, r := range c.Rows {
		for _, b := range r.Bars {
			low, high = min(low, b.Value), max(high, b.Value)
		}
		if r.Mark != nil {
			low, high = min(low, *r.Mark), max(high, *r.Mark)
		}
	}
	if high == low {
		high = low + 1
	}
	step = roundStep((high - low) / 5)
	return math.Floor(low/step) * step, math.Ceil(high/step) * step, step
}

// WriteSVG draws the chart.
func (c BarChart) WriteSVG(w io.Writer) error {
	left, top := 0.0, float64(barTop)
	if c.All != "" {
		top += barLegend
	}
	height := top
	for _, r := range c.Rows {
		left = max(left, labelWidth*float64(utf8.RuneCountInString(r.Label))+20)
		height += float64(len(r.Bars))*barHeight + barGap
	}
	width := max(barPicture, left+shortestAxis+barValues)
	bottom, right := height, width-barValues
	names := c.series()
	height += barBottom + float64(len(names)+2)*barLegend
	low, high, step := c.span()
	x := func(v float64) float64 { return left + (min(max(v, low), high)-low)/(high-low)*(right-left) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="#ffffff"/>`+"\n", width, height)
	text(&b, width/2, barTop-18, "middle", `font-size="15"`, c.Title)
	text(&b, width/2, barTop, "middle", "", c.All)
	for k := range int(math.Round((high-low)/step)) + 1 {
		v := low + float64(k)*step
		if math.Abs(v) < step/1e6 {
			v = 0
		}
		rule(&b, x(v), top, x(v), bottom, v == 0)
		text(&b, x(v), bottom+16, "middle", "", fmt.Sprintf("%.6g", v))
	}
	text(&b, (left+right)/2, bottom+36, "middle", "", c.X)
	y := top + barGap/2
	for _, r := range c.Rows {
		y = c.drawRow(&b, r, names, left, y, x)
	}
	c.legend(&b, names, left, bottom+barBottom)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// barValue returns a figure as three digits, or all of a longer number's.
func barValue(v float64) string {
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// drawRow draws a row and returns where the next one begins.
func (c BarChart) drawRow(b *strings.Builder, r BarRow, names []string, left, y float64, x func(float64) float64) float64 {
	top, size := y, float64(len(r.Bars))*barHeight
	text(b, left-8, y+size/2+4, "end", "", r.Label)
	for _, one := range r.Bars {
		colour := lineColours[slices.Index(names, one.Name)%len(lineColours)]
		from, to := x(min(0, one.Value)), x(max(0, one.Value))
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y, to-from, barHeight-2, colour)
		rule(b, x(one.Low), y+barHeight/2-1, x(one.High), y+barHeight/2-1, true)
		value, at := barValue(one.Value), max(to, x(one.High))+4
		if r.Mark != nil { // behind the mark, if that would cover it
			if m := x(*r.Mark); m > at-4 && m < at+valueWidth*float64(len(value))+4 {
				at = m + 5
			}
		}
		text(b, at, y+barHeight-2, "start", `font-size="10"`, value)
		y += barHeight
	}
	if r.Mark != nil {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#000000" stroke-width="3"/>`+"\n", x(*r.Mark), top-2, x(*r.Mark), top+size)
	}
	return y + barGap
}

// legend explains the colours and the marks.
func (c BarChart) legend(b *strings.Builder, names []string, x, y float64) {
	for i, name := range names {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="24" height="%d" fill="%s"/>`+"\n", x, y, barHeight-2, lineColours[i%len(lineColours)])
		text(b, x+32, y+barHeight-2, "start", "", name)
		y += barLegend
	}
	if slices.ContainsFunc(c.Rows, func(r BarRow) bool { return r.Mark != nil }) {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#000000" stroke-width="3"/>`+"\n", x+12, y-2, x+12, y+barHeight)
		text(b, x+32, y+barHeight-2, "start", "", c.Mark)
		y += barLegend
	}
	rule(b, x, y+barHeight/2-1, x+24, y+barHeight/2-1, true)
	text(b, x+32, y+barHeight-2, "start", "", "range of the rounds")
}
