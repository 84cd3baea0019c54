package bench

// A line chart as SVG. ChartOf selects the figures, Chart.WriteSVG draws them.

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Chart is a picture of lines over a logarithmic axis.
type Chart struct {
	Title string
	X, Y  string // what the axes show
	Bytes bool   // X is a number of bytes
	// Times marks Y as a ratio or a time: its axis is logarithmic too, and values that are not
	// positive are left out.
	Times bool
	// Equal: the axis of Y includes 1, where both are equal.
	Equal bool
	// Beyond is where measurements end and simulations begin: a line is drawn there. 0: none.
	Beyond float64
	Series []Series
}

// Series is one line.
type Series struct {
	Name      string
	Simulated bool // dashed
	Quoted    bool // of a document: diamonds
	Points    []Point
}

// Point is a point of a line; X is positive.
type Point struct{ X, Y float64 }

// Add adds a point to the series with a name, which it creates. A point without a positive X is
// left out.
func (c *Chart) Add(series string, x, y float64) {
	i := slices.IndexFunc(c.Series, func(s Series) bool { return s.Name == series })
	if i < 0 {
		i, c.Series = len(c.Series), append(c.Series, Series{Name: series})
	}
	if x > 0 {
		c.Series[i].Points = append(c.Series[i].Points, Point{x, y})
	}
}

// Quote adds a point to the series with a name, which is drawn as one that we have not measured.
func (c *Chart) Quote(series string, x, y float64) {
	c.Add(series, x, y)
	i := slices.IndexFunc(c.Series, func(s Series) bool { return s.Name == series })
	c.Series[i].Quoted = true
}

// Join makes one series of those with the same points, which would hide each other.
func (c *Chart) Join() {
	var list []Series
	for _, s := range c.Series {
		i := slices.IndexFunc(list, func(o Series) bool { return slices.Equal(o.Points, s.Points) })
		if i < 0 || s.Quoted {
			list = append(list, s)
			continue
		}
		list[i].Name += ", " + s.Name
	}
	c.Series = list
}

// ChartOf returns a chart of the results of a benchmark: over the size, or over the ratio
// of communication to computation where that was varied. If protocols were compared, it
// shows the comparison. Secondary figures (Result.Beside) are left out.
func ChartOf(b Benchmark, results []Result) Chart {
	c := Chart{Title: b.Title, X: "message size", Y: b.Column, Bytes: true}
	compared := slices.ContainsFunc(results, func(r Result) bool { return r.Against != "" && !r.Beside })
	sizes := map[int]bool{} // over a ratio, each size is a separate line
	for _, r := range results {
		if r.Ratio != 0 {
			sizes[r.Size] = true
		}
	}
	for _, r := range results {
		if r.Beside || compared && r.Against == "" {
			continue
		}
		name, x := r.Metric, float64(r.Size)
		if r.Ratio != 0 {
			name, _, _ = strings.Cut(r.Metric, "/")
			x, c.X, c.Bytes = r.Ratio, "communication / computation", false
			if len(sizes) > 1 {
				name += ", " + Chart{Bytes: true}.label(float64(r.Size))
			}
		}
		if r.Protocol != "" {
			name += ", " + r.Protocol
		}
		if compared {
			c.Y = "change against " + r.Against + " (%)"
		}
		c.Add(name, x, r.Value)
	}
	return c
}

// The picture, in pixels.
const (
	chartWidth, chartHeight           = 860, 460
	plotLeft, plotTop                 = 70, 44
	plotWidth, plotHeight             = 540, 350
	legendLeft, legendTop, legendStep = plotLeft + plotWidth + 24, plotTop + 8, 20
	// A legend with a longer name is below the axes, in two columns if there is room.
	besideNames, columnNames = 26, 44
	legendBelow              = chartHeight + 14
)

// lineColours can be distinguished by most readers (Okabe and Ito). They repeat with
// dashed lines.
var lineColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// WriteSVG draws the chart.
func (c Chart) WriteSVG(w io.Writer) error {
	f := c.frame()
	entry, width, height := c.legend()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text(&b, plotLeft+plotWidth/2, plotTop-18, "middle", `font-size="15"`, c.Title)
	c.axes(&b, f)
	for i, s := range c.Series {
		x, y := entry(i)
		drawSeries(&b, f, i, s, x, y)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// legend returns where the entry of each series is, and the size of the picture.
func (c Chart) legend() (entry func(i int) (x, y int), width, height int) {
	longest := 0
	for _, s := range c.Series {
		longest = max(longest, utf8.RuneCountInString(s.Name))
	}
	if longest <= besideNames {
		return func(i int) (x, y int) { return legendLeft, legendTop + i*legendStep }, chartWidth, max(chartHeight, legendTop+len(c.Series)*legendStep)
	}
	columns := 1
	if longest <= columnNames {
		columns = 2
	}
	entry = func(i int) (x, y int) {
		return plotLeft + i%columns*(plotWidth+120)/2, legendBelow + i/columns*legendStep
	}
	return entry, plotLeft + plotWidth + 130, legendBelow + (len(c.Series)+columns-1)/columns*legendStep
}

// frame maps values to coordinates.
type frame struct {
	minX, maxX, minY, maxY, stepY float64 // X as its logarithm to base 2
	times                         bool    // Y as its logarithm to base 10
}

func (f frame) x(v float64) float64 {
	return plotLeft + (math.Log2(v)-f.minX)/(f.maxX-f.minX)*plotWidth
}

func (f frame) y(v float64) float64 {
	if f.times {
		v = math.Log10(v)
	}
	return plotTop + (f.maxY-v)/(f.maxY-f.minY)*plotHeight
}

// frame returns a frame for all points. It includes zero, with which values are compared,
// except on a logarithmic axis.
func (c Chart) frame() frame {
	f := frame{minX: math.Inf(1), maxX: math.Inf(-1), times: c.Times}
	if c.Times {
		f.minY, f.maxY = math.Inf(1), math.Inf(-1)
	}
	for _, s := range c.Series {
		for _, p := range s.Points {
			y := p.Y
			if c.Times {
				if y <= 0 {
					continue
				}
				y = math.Log10(y)
			}
			f.minX, f.maxX = min(f.minX, math.Log2(p.X)), max(f.maxX, math.Log2(p.X))
			f.minY, f.maxY = min(f.minY, y), max(f.maxY, y)
		}
	}
	if c.Equal && c.Times {
		f.minY, f.maxY = min(f.minY, 0), max(f.maxY, 0)
	}
	if f.minX > f.maxX { // nothing to draw
		f.minX, f.maxX = 0, 1
	}
	if f.minX == f.maxX {
		f.minX, f.maxX = f.minX-1, f.maxX+1
	}
	if f.minY > f.maxY {
		f.minY, f.maxY = 0, 1
	}
	if f.minY == f.maxY {
		f.maxY = f.minY + 1
	}
	if c.Times { // a little room above and below
		room := (f.maxY - f.minY) / 20
		f.minY, f.maxY = f.minY-room, f.maxY+room
		return f
	}
	f.stepY = roundStep((f.maxY - f.minY) / 6)
	f.minY, f.maxY = math.Floor(f.minY/f.stepY)*f.stepY, math.Ceil(f.maxY/f.stepY)*f.stepY
	return f
}

// roundStep rounds up to 1, 2, 5, 10 and so on.
func roundStep(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}

// marks returns the marks of the Y axis.
func (f frame) marks() (marks []float64) {
	if !f.times {
		for k := 0; ; k++ {
			v := f.minY + float64(k)*f.stepY
			if v > f.maxY+f.stepY/2 {
				return marks
			}
			if math.Abs(v) < f.stepY/1e6 {
				v = 0
			}
			marks = append(marks, v)
		}
	}
	parts := []float64{1, 2, 5}
	switch decades := f.maxY - f.minY; {
	case decades > 2.5:
		parts = parts[:1]
	case decades < 0.7:
		parts = []float64{1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}
	}
	for e := math.Floor(f.minY); e <= f.maxY; e++ {
		for _, m := range parts {
			if y := e + math.Log10(m); y >= f.minY && y <= f.maxY {
				marks = append(marks, m*math.Pow(10, e))
			}
		}
	}
	return marks
}

func (c Chart) axes(b *strings.Builder, f frame) {
	same := 0.0 // where both are equal
	if f.times {
		same = 1
	}
	for _, v := range f.marks() {
		rule(b, plotLeft, f.y(v), plotLeft+plotWidth, f.y(v), v == same)
		text(b, plotLeft-8, f.y(v)+4, "end", "", fmt.Sprintf("%.6g", v))
	}
	for _, v := range c.ticks(f) {
		rule(b, f.x(v), plotTop, f.x(v), plotTop+plotHeight, false)
		text(b, f.x(v), plotTop+plotHeight+18, "middle", "", c.label(v))
	}
	rule(b, plotLeft, plotTop, plotLeft, plotTop+plotHeight, true)
	if c.Beyond > 0 {
		rule(b, f.x(c.Beyond), plotTop, f.x(c.Beyond), plotTop+plotHeight, true)
		text(b, f.x(c.Beyond)-4, plotTop+12, "end", "", "measured")
		text(b, f.x(c.Beyond)+4, plotTop+12, "start", "", "simulated")
	}
	text(b, plotLeft+plotWidth/2, plotTop+plotHeight+44, "middle", "", c.X)
	const x, y = 18, plotTop + plotHeight/2
	text(b, x, y, "middle", fmt.Sprintf(`transform="rotate(-90 %d %d)"`, x, y), c.Y)
}

// ticks returns the ticks of the X axis: powers of two, fewer where they would overlap;
// the ends of the axis if there is none between them.
func (c Chart) ticks(f frame) []float64 {
	var ticks []float64
	low, high := math.Ceil(f.minX-1e-9), math.Floor(f.maxX+1e-9)
	for e := low; e <= high; e += max(1, math.Ceil((high-low+1)/9)) {
		ticks = append(ticks, math.Exp2(e))
	}
	if ticks == nil {
		return []float64{math.Exp2(f.minX), math.Exp2(f.maxX)}
	}
	return ticks
}

func (c Chart) label(v float64) string {
	switch {
	case c.Bytes && v >= 1<<20:
		return fmt.Sprintf("%g MB", v/(1<<20))
	case c.Bytes && v >= 1<<10:
		return fmt.Sprintf("%g KB", v/(1<<10))
	case c.Bytes:
		return fmt.Sprintf("%g B", v)
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func drawSeries(b *strings.Builder, f frame, i int, s Series, legendX, legendY int) {
	colour, dash := lineColours[i%len(lineColours)], ""
	if round := i / len(lineColours); round > 0 {
		dash = fmt.Sprintf(` stroke-dasharray="%d 4"`, 4*round)
	}
	switch {
	case s.Simulated:
		dash = ` stroke-dasharray="6 3"`
	case s.Quoted:
		dash = ` stroke-dasharray="2 3"`
	}
	points := slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool { return f.times && p.Y <= 0 })
	slices.SortStableFunc(points, func(p, q Point) int { return cmp.Compare(p.X, q.X) })
	var coordinates []string
	for _, p := range points {
		coordinates = append(coordinates, fmt.Sprintf("%.1f,%.1f", f.x(p.X), f.y(p.Y)))
	}
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2"%s points="%s"/>`+"\n", colour, dash, strings.Join(coordinates, " "))
	for _, p := range points {
		if s.Quoted {
			diamond(b, f.x(p.X), f.y(p.Y), colour)
			continue
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", f.x(p.X), f.y(p.Y), colour)
	}
	if !s.Quoted || len(points) > 1 {
		fmt.Fprintf(b, `<line x1="%d" y1="%d.0" x2="%d" y2="%d.0" stroke="%s" stroke-width="2"%s/>`+"\n", legendX, legendY, legendX+24, legendY, colour, dash)
	}
	if s.Quoted {
		diamond(b, float64(legendX+12), float64(legendY), colour)
	}
	text(b, float64(legendX+32), float64(legendY+4), "start", "", s.Name)
}

// diamond marks a point of a document.
func diamond(b *strings.Builder, x, y float64, colour string) {
	fmt.Fprintf(b, `<path d="M%.1f %.1f l6 6 l-6 6 l-6 -6 z" fill="#ffffff" stroke="%s" stroke-width="2"/>`+"\n", x, y-6, colour)
}

func rule(b *strings.Builder, x1, y1, x2, y2 float64, strong bool) {
	colour := "#dddddd"
	if strong {
		colour = "#444444"
	}
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

func text(b *strings.Builder, x, y float64, anchor, more, s string) {
	if more != "" {
		more = " " + more
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>`, x, y, anchor, more)
	_ = xml.EscapeText(b, []byte(s)) // a Builder does not fail
	b.WriteString("</text>\n")
}
