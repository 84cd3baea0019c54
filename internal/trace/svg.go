package trace

// The picture: a row for each rank with its calls as bars, the waits in a lighter color,
// messages as lines, a time axis, and the critical path as numbered steps below the bars. An
// arrow leads from each step to the rank that waited for it.

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// The picture, in pixels.
const (
	pictureWidth, pictureLeft, pictureRight = 1200, 70, 20
	pictureTop, rowHeight, barHeight        = 72, 44, 18
	pathTop, pathHeight                     = barHeight + 3, 13 // within a row
	axisHeight                              = 52
	messagesShown                           = 400
)

// The colors are distinguishable for most readers (Okabe and Ito).
var colors = map[string]string{"wait": "#0072b2", kindCollective: "#009e73", "access": "#cc79a7", "synchronization": "#cc79a7"}

const (
	otherColor, waitColor, messageColor, pathColor = "#0072b2", "#e69f00", "#999999", "#d55e00"
)

// picture is a drawing of a part of the time.
type picture struct {
	strings.Builder
	*Analysis
	t      *Trace
	window Span
}

// WriteSVG draws the timeline within a window.
func (a *Analysis) WriteSVG(w io.Writer, t *Trace, window Span) error {
	p := &picture{Analysis: a, t: t, window: window}
	height := pictureTop + rowHeight*len(t.Ranks) + axisHeight
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, height)
	fmt.Fprintf(p, `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="%s"/></marker></defs>`+"\n", pathColor)
	fmt.Fprintf(p, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	title := fmt.Sprintf("%d ranks, %v", len(t.Ranks), roundTime(a.End-a.Begin))
	if window != a.Span {
		title += fmt.Sprintf(", of which from %v to %v", roundTime(window.Begin), roundTime(window.End))
	}
	p.label(pictureLeft, 24, 15, "start", "", title)
	for i, l := range []struct{ color, what string }{{otherColor, "calls"}, {colors[kindCollective], "collectives"}, {colors["access"], "one-sided"},
		{waitColor, "waits for another rank"}, {messageColor, "messages"}, {pathColor, "critical path, numbered steps"}} {
		fmt.Fprintf(p, `<rect x="%d" y="40" width="14" height="10" fill="%s"/>`, pictureLeft+i*170, l.color)
		p.label(float64(pictureLeft+i*170+20), 49, 12, "start", "", l.what)
	}
	p.axis(pictureTop + rowHeight*len(t.Ranks))
	p.calls()
	p.waits()
	p.messages()
	p.path()
	p.WriteString("</svg>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// x returns the coordinate of a time, within the picture.
func (p *picture) x(at int64) float64 {
	at = min(max(at, p.window.Begin), p.window.End)
	return pictureLeft + float64(at-p.window.Begin)/float64(max(p.window.End-p.window.Begin, 1))*(pictureWidth-pictureLeft-pictureRight)
}

func rowTop(rank int) int { return pictureTop + rowHeight*rank }

// shows reports whether a part of a time is in the window.
func (p *picture) shows(from, to int64) bool { return to >= p.window.Begin && from <= p.window.End }

// axis draws round times below the rows, and lines at these.
func (p *picture) axis(bottom int) {
	step := axisStep(p.window.End - p.window.Begin)
	for at := (p.window.Begin + step - 1) / step * step; at <= p.window.End; at += step {
		fmt.Fprintf(p, `<line x1="%.1[1]f" y1="%[2]d" x2="%.1[1]f" y2="%[3]d" stroke="#dddddd"/>`+"\n", p.x(at), pictureTop, bottom+4)
		p.label(p.x(at), bottom+20, 12, "middle", "", time.Duration(at).String())
	}
	p.label(pictureLeft+(pictureWidth-pictureLeft-pictureRight)/2, bottom+42, 12, "middle", "", "time since the end of Init")
}

// axisStep returns a round time of which 5 to 12 are in a span.
func axisStep(span int64) int64 {
	unit := int64(math.Pow(10, math.Floor(math.Log10(float64(max(span, 10))))))
	for _, divisor := range []int64{1, 2, 5, 10} {
		if step := unit / divisor; step > 0 && span/step >= 5 {
			return step
		}
	}
	return max(unit/10, 1)
}

func (p *picture) calls() {
	for r, rank := range p.t.Ranks {
		p.label(8, rowTop(r)+14, 12, "start", "", fmt.Sprintf("rank %d", rank.Rank))
		fmt.Fprintf(p, `<rect x="%d" y="%d" width="%d" height="%d" fill="#f2f2f2"/>`+"\n", pictureLeft, rowTop(r), pictureWidth-pictureLeft-pictureRight, barHeight)
		filled := map[string]float64{} // up to which x a color is drawn: calls shorter than a pixel share one
		for i := range rank.Events {
			e := &rank.Events[i]
			if !p.shows(e.Begin, e.End) {
				continue
			}
			color, ok := colors[e.Kind]
			if !ok {
				color = otherColor
			}
			from, to := p.x(e.Begin), max(p.x(e.End), p.x(e.Begin)+0.5)
			if to-filled[color] < 0.5 {
				continue
			}
			filled[color] = to
			fmt.Fprintf(p, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", from, rowTop(r), to-from, barHeight, color)
			if to-from > nameWidth*float64(len(e.Name)) {
				p.label((from+to)/2, rowTop(r)+barHeight-5, 11, "middle", "#ffffff", e.Name)
			}
		}
	}
}

// nameWidth is the room that a letter of a name needs.
const nameWidth = 7.5

func (p *picture) waits() {
	for _, wait := range p.Waits {
		if from, to := p.x(wait.From), p.x(wait.To); to-from >= 0.5 {
			fmt.Fprintf(p, `<rect x="%.1f" y="%d" width="%.1f" height="4" fill="%s"/>`+"\n", from, rowTop(int(wait.In.Rank))+barHeight-4, to-from, waitColor)
		}
	}
}

func (p *picture) messages() {
	var shown []Message
	for _, m := range p.Messages {
		if p.shows(p.t.at(m.Send).Begin, p.t.at(p.t.completing(m.Recv)).End) {
			shown = append(shown, m)
		}
	}
	for i, stride := 0, len(shown)/messagesShown+1; i < len(shown); i += stride {
		m := shown[i]
		fmt.Fprintf(p, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="0.6"/>`+"\n",
			p.x(p.t.at(m.Send).Begin), rowTop(int(m.Send.Rank))+barHeight/2, p.x(p.t.at(p.t.completing(m.Recv)).End), rowTop(int(m.Recv.Rank))+barHeight/2, messageColor)
	}
}

// arrowRoom is how long a step must be for an arrow to it.
const arrowRoom = 4

// path draws the steps as bars with their numbers, where these have room.
func (p *picture) path() {
	for i, s := range p.Path {
		if !p.shows(s.From, s.To) {
			continue
		}
		from, to, top := p.x(s.From), p.x(s.To), rowTop(s.Rank)+pathTop
		fmt.Fprintf(p, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", from, top, max(to-from, 0.5), pathHeight, pathColor)
		if number := fmt.Sprint(i + 1); to-from > nameWidth*float64(len(number)) {
			p.label((from+to)/2, top+pathHeight-2, 11, "middle", "#ffffff", number)
		}
		if i > 0 && s.From >= p.window.Begin && p.Path[i-1].Rank != s.Rank {
			before, end := rowTop(p.Path[i-1].Rank)+pathTop+pathHeight/2, top
			if before > top {
				end += pathHeight
			}
			stroke := `stroke-width="1.2" marker-end="url(#arrow)"`
			if to-from < arrowRoom {
				stroke = `stroke-width="0.3"`
			}
			fmt.Fprintf(p, `<line x1="%.1[1]f" y1="%[2]d" x2="%.1[1]f" y2="%[3]d" stroke="%[4]s" %[5]s/>`+"\n", from, before, end, pathColor, stroke)
		}
	}
}

func (p *picture) label(x float64, y, size int, anchor, color, s string) {
	fill := ""
	if color != "" {
		fill = fmt.Sprintf(` fill="%s"`, color)
	}
	fmt.Fprintf(p, `<text x="%.1f" y="%d" font-size="%d" text-anchor="%s"%s>`, x, y, size, anchor, fill)
	_ = xml.EscapeText(p, []byte(s)) // a strings.Builder does not fail
	p.WriteString("</text>\n")
}
