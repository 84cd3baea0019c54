package prof

// The picture of the worst calls: one panel per call, with a bar for each rank from its
// arrival to its exit, in a lighter color until the last rank has arrived.

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// The picture, in pixels.
const (
	panelWidth, panelLeft, panelRight = 860, 60, 20
	panelHead, panelFoot              = 34, 30
	rowsShown                         = 64 // rows of a panel; more ranks share rows
)

// The colors are distinguishable for most readers (Okabe and Ito).
const (
	waitColour, workColour, lastColour = "#56b4e9", "#0072b2", "#d55e00"
)

// WriteSVG draws the worst calls, the worst first.
func (a *Arrivals) WriteSVG(w io.Writer) error {
	var worst []*GatheredCall
	for i := range a.Calls {
		if c := &a.Calls[i]; len(c.Moments) > 0 {
			worst = append(worst, c)
		}
	}
	slices.SortStableFunc(worst, func(x, y *GatheredCall) int { return cmp.Compare(y.Spread(), x.Spread()) })
	var b strings.Builder
	top := 64.0
	for _, c := range worst {
		top += panelHeight(c)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" font-family="sans-serif" font-size="12">`+"\n", panelWidth, top, panelWidth, top)
	fmt.Fprintf(&b, `<rect width="%d" height="%.0f" fill="#ffffff"/>`+"\n", panelWidth, top)
	label(&b, panelWidth/2, 22, "middle", 15, "The calls to which ranks came most apart")
	legend := "by rank: light until the last has come (the upright line), dark from then on"
	if len(worst) == 0 {
		legend = "none was recorded"
	}
	label(&b, panelWidth/2, 42, "middle", 12, legend)
	top = 64
	for _, c := range worst {
		drawCall(&b, c, top)
		top += panelHeight(c)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// rowHeight returns the height of one bar.
func rowHeight(rows int) float64 { return max(3, min(14, 160/float64(max(rows, 1)))) }

func panelHeight(c *GatheredCall) float64 {
	rows := min(len(c.Moments), rowsShown)
	return panelHead + float64(rows)*rowHeight(rows) + panelFoot
}

func drawCall(b *strings.Builder, c *GatheredCall, top float64) {
	moments := slices.SortedFunc(slices.Values(c.Moments), func(x, y Moment) int { return cmp.Compare(x.Rank, y.Rank) })
	rows := min(len(moments), rowsShown)
	height := rowHeight(rows)
	span := float64(max(c.Exit-c.First, 1))
	x := func(at int64) float64 {
		return panelLeft + float64(at-c.First)/span*(panelWidth-panelLeft-panelRight)
	}
	what := c.Routine
	if c.Bytes > 0 {
		what += " of " + size(uint64(c.Bytes))
	}
	label(b, panelLeft, top+18, "start", 13, fmt.Sprintf("%s at %s, call %d: %s from the first arrival to the last", what, c.Site, c.N, brief(float64(c.Spread()))))
	top += panelHead
	bottom := top + float64(rows)*height
	for _, tick := range ticks(span) {
		at := x(c.First + int64(tick))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dddddd"/>`+"\n", at, top, at, bottom)
		label(b, at, bottom+14, "middle", 12, brief(tick))
	}
	for row := range rows {
		m := moments[row*len(moments)/rows]
		y := top + float64(row)*height
		bar := func(from, to int64, colour string) {
			if to > from {
				fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x(from), y+height*.1, max(x(to)-x(from), .5), height*.8, colour)
			}
		}
		bar(m.At, min(m.Left, c.Last), waitColour)
		bar(max(m.At, c.Last), m.Left, workColour)
		if every := max(1, int(math.Ceil(12/height))); row%every == 0 {
			label(b, panelLeft-6, y+height*.5+4, "end", 11, fmt.Sprint(m.Rank))
		}
	}
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="1.5"/>`+"\n", x(c.Last), top, x(c.Last), bottom, lastColour)
}

// ticks returns round times within a span in ns, at most six besides 0.
func ticks(span float64) []float64 {
	unit := math.Pow(10, math.Floor(math.Log10(span/3)))
	step := unit
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * unit; span/step <= 6 {
			break
		}
	}
	var all []float64
	for t := 0.0; t <= span; t += step {
		all = append(all, t)
	}
	return all
}

func label(b *strings.Builder, x, y float64, anchor string, height int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">`, x, y, anchor, height)
	_ = xml.EscapeText(b, []byte(s)) // a Builder returns no errors
	b.WriteString("</text>\n")
}
