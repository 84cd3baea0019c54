package sim

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// Chart is a picture of times by size or number of ranks, with logarithmic axes.
type Chart struct {
	Title, X, Y string
	Series      []Series
	// Beyond is where measurements end: a line is drawn there. 0: none.
	Beyond float64
}

// Series is a line. Simulated ones are dashed.
type Series struct {
	Name      string
	Simulated bool
	Points    [][2]float64
}

// SVG returns the picture.
func (c *Chart) SVG() []byte {
	const width, height, left, right, top, bottom = 760, 420, 70, 230, 40, 50
	lowX, highX, lowY, highY := c.limits()
	x := func(v float64) float64 {
		return left + (width-left-right)*(math.Log10(v)-lowX)/(highX-lowX)
	}
	y := func(v float64) float64 {
		return height - bottom - (height-top-bottom)*(math.Log10(v)-lowY)/(highY-lowY)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="22" font-size="14">%s</text>`+"\n", width, height, left, html.EscapeString(c.Title))
	for d := math.Ceil(lowX); d <= highX; d++ {
		v := x(math.Pow(10, d))
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", v, top, height-bottom, v, height-bottom+18, decade(d))
	}
	for d := math.Ceil(lowY); d <= highY; d++ {
		v := y(math.Pow(10, d))
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, v, width-right, left-6, v+4, decade(d))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text><text x="%d" y="%d">%s</text>`+"\n", left+(width-left-right)/2, height-12, html.EscapeString(c.X), 10, top-8, html.EscapeString(c.Y))
	if c.Beyond > 0 {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#000" stroke-dasharray="2 3"/><text x="%.1f" y="%d" font-size="10" text-anchor="end">measured</text><text x="%.1f" y="%d" font-size="10">simulated</text>`+"\n",
			x(c.Beyond), top, height-bottom, x(c.Beyond)-4, top+10, x(c.Beyond)+4, top+10)
	}
	for i, s := range c.Series {
		color := []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2"}[i%10]
		dash := ""
		if s.Simulated {
			dash = ` stroke-dasharray="6 3"`
		}
		fmt.Fprintf(&b, `<path fill="none" stroke="%s" stroke-width="1.5"%s d="`, color, dash)
		for k, p := range s.Points {
			fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(k, 1)], x(p[0]), y(p[1]))
		}
		b.WriteString("\"/>\n")
		for _, p := range s.Points {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`, x(p[0]), y(p[1]), color)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", width-right+12, top+12+16*i, color, html.EscapeString(s.Name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// limits returns the decimal logarithms of the ends of the axes.
func (c *Chart) limits() (lowX, highX, lowY, highY float64) {
	lowX, lowY, highX, highY = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, s := range c.Series {
		for _, p := range s.Points {
			lowX, highX = min(lowX, math.Log10(p[0])), max(highX, math.Log10(p[0]))
			lowY, highY = min(lowY, math.Floor(math.Log10(p[1]))), max(highY, math.Ceil(math.Log10(p[1])))
		}
	}
	if !(highX > lowX) {
		lowX, highX = lowX-0.5, lowX+0.5
	}
	if !(highY > lowY) {
		lowY, highY = lowY-0.5, lowY+0.5
	}
	return lowX, highX, lowY, highY
}

// decade returns 10^d as people write it.
func decade(d float64) string {
	switch {
	case d >= 6:
		return fmt.Sprintf("%.0f M", math.Pow(10, d-6))
	case d >= 3:
		return fmt.Sprintf("%.0f k", math.Pow(10, d-3))
	case d >= 0:
		return fmt.Sprintf("%.0f", math.Pow(10, d))
	}
	return fmt.Sprintf("%.*f", int(-d), math.Pow(10, d))
}
