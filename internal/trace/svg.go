package trace

// The picture: a row for each rank with its calls as bars, the waits in a lighter color,
// messages as lines, and the critical path below the bars.

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// The picture, in pixels.
const (
	pictureWidth, pictureLeft, pictureRight = 1200, 70, 20
	pictureTop, rowHeight, barHeight        = 64, 34, 18
	messagesShown                           = 400
)

// The colors are distinguishable for most readers (Okabe and Ito).
var colors = map[string]string{"wait": "#0072b2", kindCollective: "#009e73", "access": "#cc79a7", "synchronization": "#cc79a7"}

const (
	otherColor, waitColor, messageColor, pathColor = "#0072b2", "#e69f00", "#999999", "#d55e00"
)

// WriteSVG draws the timeline.
func (a *Analysis) WriteSVG(w io.Writer, t *Trace) error {
	var b strings.Builder
	height := pictureTop + rowHeight*len(t.Ranks) + 30
	span := max(a.End-a.Begin, 1)
	x := func(at int64) float64 {
		return pictureLeft + float64(at-a.Begin)/float64(span)*(pictureWidth-pictureLeft-pictureRight)
	}
	y := func(rank int) int { return pictureTop + rowHeight*rank }
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	label(&b, pictureLeft, 22, 15, fmt.Sprintf("%d ranks, %v", len(t.Ranks), time.Duration(span)))
	for i, l := range []struct{ color, what string }{{otherColor, "calls"}, {colors[kindCollective], "collectives"}, {colors["access"], "one-sided"},
		{waitColor, "waits for another rank"}, {messageColor, "messages"}, {pathColor, "critical path"}} {
		fmt.Fprintf(&b, `<rect x="%d" y="36" width="14" height="10" fill="%s"/>`, pictureLeft+i*170, l.color)
		label(&b, pictureLeft+i*170+20, 45, 12, l.what)
	}
	for r, rank := range t.Ranks {
		label(&b, 8, y(r)+14, 12, fmt.Sprintf("rank %d", rank.Rank))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#f2f2f2"/>`+"\n", pictureLeft, y(r), pictureWidth-pictureLeft-pictureRight, barHeight)
		filled := map[string]float64{} // up to which x a color is drawn: calls shorter than a pixel share one
		for i := range rank.Events {
			e := &rank.Events[i]
			color, ok := colors[e.Kind]
			if !ok {
				color = otherColor
			}
			from, to := x(e.Begin), max(x(e.End), x(e.Begin)+0.5)
			if to-filled[color] < 0.5 {
				continue
			}
			filled[color] = to
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y(r), to-from, barHeight, color)
		}
	}
	for _, wait := range a.Waits {
		if from, to := x(wait.From), x(wait.To); to-from >= 0.5 {
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y(wait.In.Rank)+4, to-from, barHeight-8, waitColor)
		}
	}
	for i, stride := 0, len(a.Messages)/messagesShown+1; i < len(a.Messages); i += stride {
		m := a.Messages[i]
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="0.6"/>`+"\n",
			x(t.at(m.Send).Begin), y(m.Send.Rank)+barHeight/2, x(t.at(t.completing(m.Recv)).End), y(m.Recv.Rank)+barHeight/2, messageColor)
	}
	for i, s := range a.Path {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%[2]d" x2="%.1[3]f" y2="%[2]d" stroke="%[4]s" stroke-width="3"/>`+"\n", x(s.From), y(s.Rank)+barHeight+3, x(s.To), pathColor)
		if i > 0 {
			fmt.Fprintf(&b, `<line x1="%.1[1]f" y1="%[2]d" x2="%.1[1]f" y2="%[3]d" stroke="%[4]s" stroke-width="1"/>`+"\n", x(s.From), y(a.Path[i-1].Rank)+barHeight+3, y(s.Rank)+barHeight+3, pathColor)
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func label(b *strings.Builder, x, y, size int, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="%d">`, x, y, size)
	_ = xml.EscapeText(b, []byte(s)) // a strings.Builder does not fail
	b.WriteString("</text>\n")
}
