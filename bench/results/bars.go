package results

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// The picture of a claim, in pixels.
const (
	barLeft, barWidth, barStep, barHeight = 320, 380, 22, 12
	valueRoom                             = 150
	// labelWidth is that of a character of a label, on average. Long labels get more room
	// than barLeft.
	labelWidth = 7
)

// Bars draws a bar for each figure, with the range of its rounds and its limit, as SVG.
func Bars(figures []Figure) string {
	low, high := 0.0, 0.0
	for _, f := range figures {
		if f.Measured() {
			low, high = min(low, f.Value, f.Low, f.Limit), max(high, f.Value, f.High, f.Limit)
		}
	}
	if !(high > low) || math.IsInf(high-low, 0) {
		return ""
	}
	left := barLeft
	for _, f := range figures {
		left = max(left, labelWidth*utf8.RuneCountInString(f.Row)+16)
	}
	x := func(v float64) float64 { return float64(left) + (v-low)/(high-low)*barWidth }
	var b strings.Builder
	width, height := left+barWidth+valueRoom, len(figures)*barStep+4
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	for i, f := range figures {
		y := float64(i*barStep + 4)
		label(&b, float64(left-8), y+barHeight-2, "end", f.Row)
		if !f.Measured() {
			label(&b, float64(left+4), y+barHeight-2, "start", NotMeasured)
			continue
		}
		colour := "#d55e00"
		if f.Met() {
			colour = "#009e73"
		}
		from, to := x(min(0, f.Value)), x(max(0, f.Value))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y, to-from, barHeight, colour)
		stroke(&b, x(f.Low), y+barHeight/2, x(f.High), y+barHeight/2, "#222222", 1)
		stroke(&b, x(f.Limit), y-3, x(f.Limit), y+barHeight+3, "#222222", 2)
		label(&b, float64(left+barWidth+8), y+barHeight-2, "start", fmt.Sprintf("%s%s (%s %s)", number(f.Value), f.Unit, f.Op, number(f.Limit)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func stroke(b *strings.Builder, x1, y1, x2, y2 float64, colour string, width int) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%d"/>`+"\n", x1, y1, x2, y2, colour, width)
}

func label(b *strings.Builder, x, y float64, anchor, text string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(b, []byte(text)) // a Builder does not fail
	b.WriteString("</text>\n")
}
