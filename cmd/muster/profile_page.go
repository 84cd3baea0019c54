package main

// muster run --profile FILE.html: the profile and the trace of a job as one page, which needs no
// server and no other file.

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/prof"
)

//go:embed pages/profile.html
var profileTemplate string

// profilePage is what the template shows.
type profilePage struct {
	Command, Head        string
	Times, Waits, Matrix template.HTML
	Hidden               []hiddenRow
	Sites                []siteRow
	Text                 string
}

// hiddenRow is a call site that starts operations. Ratio is Least as a share of Most.
type hiddenRow struct {
	Call               string
	Operations         uint64
	Time               string
	Least, Most, Ratio int
	Waited, Site       string
}

type siteRow struct {
	Call         string
	Calls        uint64
	Time         string
	Share        int
	Longest      string
	Messages     uint64
	Volume, Site string
}

// The pictures, in pixels.
const (
	pageWidth, pageLeft = 960, 64
	waitParts           = 160
	rowsDrawn           = 64 // ranks of a picture; more are drawn in groups
)

func writeProfilePage(w io.Writer, command string, s *prof.Summary, t *trace.Trace) error {
	a := t.Analyze()
	page := profilePage{Command: command, Text: s.Text(), Times: drawTimes(a.RankTimes(t), a.Span), Waits: drawWaits(t, a), Matrix: drawMatrix(s.Ranks, s.Pairs)}
	page.Head = fmt.Sprintf("%s on %s over %s; recorded: %v", count(s.Ranks, "rank"), count(int(s.Values[prof.Hosts].Sum), "host"), strings.Join(s.Devices, ", "), a.Span)
	in := max(s.Values[prof.TimeInCalls].Sum, 1)
	sites := slices.SortedFunc(slices.Values(s.Sites), func(x, y prof.CallSite) int { return cmp.Compare(y.Time.Sum, x.Time.Sum) })
	for i := range sites {
		c := &sites[i]
		site := strings.TrimSpace(c.Site + " " + c.Function)
		page.Sites = append(page.Sites, siteRow{c.Routine, c.Calls.Sum, nanos(c.Time.Sum), int(100 * c.Time.Sum / in), nanos(c.Longest), c.Messages, shortBytes(float64(c.Bytes.Sum)), site})
		if o := &c.Overlap; o.Operations > 0 {
			least, most := o.Shares()
			page.Hidden = append(page.Hidden, hiddenRow{c.Routine, o.Operations, nanos(o.Time), int(100 * least), int(100 * most), int(100 * least / max(most, 1e-9)), nanos(o.Waited), site})
		}
	}
	tmpl, err := template.New("profile").Parse(profileTemplate)
	if err != nil {
		return err
	}
	return tmpl.Execute(w, page)
}

func nanos(n uint64) string { return seconds(float64(n) * 1e-9) }

// drawing is an SVG picture within a page.
type drawing struct{ strings.Builder }

func newDrawing(height int, about string) *drawing {
	d := new(drawing)
	fmt.Fprintf(d, `<svg viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-label="%s">`, pageWidth, height, about)
	return d
}

func (d *drawing) rect(x, y, width, height float64, fill, about string) {
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" %s><title>%s</title></rect>`, x, y, width, height, fill, template.HTMLEscapeString(about))
}

func (d *drawing) text(x, y float64, anchor, text string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, template.HTMLEscapeString(text))
}

func (d *drawing) html() template.HTML {
	d.WriteString("</svg>")
	return template.HTML(d.String())
}

// axis draws a time axis below a picture.
func (d *drawing) axis(span trace.Span, y float64) {
	const ticks = 8
	for i := range ticks + 1 {
		x := pageLeft + float64(pageWidth-pageLeft-30)*float64(i)/ticks
		at := span.Begin + (span.End-span.Begin)*int64(i)/ticks
		d.text(x, y+14, "middle", seconds(float64(at)*1e-9))
	}
	d.text(pageWidth/2, y+32, "middle", "time since the end of Init")
}

// divideRanks returns how many ranks share a row, and the number of rows.
func divideRanks(ranks int) (each, rows int) {
	each = (ranks + rowsDrawn - 1) / rowsDrawn
	return each, (ranks + each - 1) / each
}

// rowHeight is the height of a row in pixels.
func rowHeight(rows int) float64 { return math.Max(5, math.Min(18, 640/float64(max(rows, 1)))) }

// rowLabel writes the rank of a row, where there is room.
func (d *drawing) rowLabel(row, rank int, y, height float64) {
	if row%int(math.Ceil(12/height)) == 0 {
		d.text(pageLeft-6, y+height*0.75, "end", fmt.Sprintf("rank %d", rank))
	}
}

func drawTimes(times []trace.RankTime, span trace.Span) template.HTML {
	each, rows := divideRanks(len(times))
	height := rowHeight(rows)
	d := newDrawing(int(float64(rows)*height)+4, "time of each rank outside of calls, in calls, and waiting")
	width := float64(pageWidth - pageLeft - 30)
	all := float64(max(span.End-span.Begin, 1))
	for row := range rows {
		m := times[row*each]
		y, x := float64(row)*height, float64(pageLeft)
		d.rowLabel(row, m.Rank, y, height)
		for _, part := range []struct {
			n     int64
			color string
			what  string
		}{{m.Outside, "#009e73", "outside of calls"}, {max(0, m.Calls-m.Waits), "#0072b2", "in calls"}, {min(m.Waits, m.Calls), "#e69f00", "waiting"}} {
			w := width * min(1, float64(part.n)/all)
			d.rect(x, y, w, height-1, `fill="`+part.color+`"`, fmt.Sprintf("rank %d %s: %v", m.Rank, part.what, time.Duration(part.n)))
			x += w
		}
	}
	return d.html()
}

func drawWaits(t *trace.Trace, a *trace.Analysis) template.HTML {
	shares := a.WaitShares(t, waitParts)
	each, rows := divideRanks(len(shares))
	height := rowHeight(rows)
	bottom := float64(rows) * height
	d := newDrawing(int(bottom)+40, "share of the time in which each rank waited, over time")
	width := float64(pageWidth-pageLeft-30) / waitParts
	d.rect(pageLeft, 0, width*waitParts, bottom, `class="empty"`, "")
	for row := range rows {
		first := row * each
		d.rowLabel(row, t.Ranks[first].Rank, float64(row)*height, height)
		for i := range waitParts {
			share := 0.0
			for r := first; r < min(first+each, len(shares)); r++ {
				share = max(share, shares[r][i])
			}
			if share > 0.005 {
				d.rect(pageLeft+float64(i)*width, float64(row)*height, width, height-1, fmt.Sprintf(`fill="#d55e00" fill-opacity="%.2f"`, 0.15+0.85*share),
					fmt.Sprintf("rank %d: %.0f %%", t.Ranks[first].Rank, 100*share))
			}
		}
	}
	d.axis(a.Span, bottom)
	return d.html()
}

// drawMatrix draws the bytes from each rank to each other, on a logarithmic scale.
func drawMatrix(ranks int, pairs []prof.Pair) template.HTML {
	each, rows := divideRanks(ranks)
	cell := math.Max(6, math.Min(28, 560/float64(rows)))
	most, sums := 0.0, map[[2]int]float64{}
	for _, p := range pairs {
		at := [2]int{p.From / each, p.To / each}
		sums[at] += float64(p.Bytes)
		most = max(most, sums[at])
	}
	const top = 34
	size := cell * float64(rows)
	d := newDrawing(int(size)+top+12, "bytes from each rank to each other")
	d.text(pageLeft+size/2, 12, "middle", "to rank")
	d.rect(pageLeft, top, size, size, `class="empty"`, "")
	for row := range rows {
		d.rowLabel(row, row*each, top+float64(row)*cell, cell)
		if row%int(math.Ceil(22/cell)) == 0 {
			d.text(pageLeft+(float64(row)+0.5)*cell, top-5, "middle", fmt.Sprint(row*each))
		}
		for column := range rows {
			bytes := sums[[2]int{row, column}]
			if bytes > 0 {
				share := math.Log2(1+bytes) / math.Log2(1+most)
				d.rect(pageLeft+float64(column)*cell, top+float64(row)*cell, cell-1, cell-1, fmt.Sprintf(`fill="#0072b2" fill-opacity="%.2f"`, 0.1+0.9*share*share),
					fmt.Sprintf("from %d to %d: %s", row*each, column*each, shortBytes(bytes)))
			}
		}
	}
	x := pageLeft + size + 40
	for i, share := range []float64{1, 0.75, 0.5, 0.25} {
		y := top + float64(i)*22
		d.rect(x, y, 16, 16, fmt.Sprintf(`fill="#0072b2" fill-opacity="%.2f"`, 0.1+0.9*share*share), "")
		d.text(x+24, y+13, "start", shortBytes(math.Exp2(share*math.Log2(1+most))-1))
	}
	d.text(x, top+4*22+14, "start", fmt.Sprintf("%s, the busiest pairs", count(len(pairs), "pair")))
	return d.html()
}
