package sched

// The picture of a collective as SVG. It needs no script and no special font, follows
// the reader's light or dark color scheme, and has a tooltip for every mark.

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Picture holds what WriteSVG cannot derive from the graphs.
type Picture struct {
	Title, Subtitle string
	// Start returns the initial contents of a rank's buffers, as for Validate. If it
	// is nil, the part of the input that a rank reads is its data.
	Start func(rank int) []Piece
	// Parts holds the end offsets of the parts of each rank's data if parts are
	// numbered, as in alltoall: part k is for rank k. If it is nil, parts get letters
	// at the offsets at which the schedule cuts data.
	Parts []int
}

// WriteSVG draws the graphs of all ranks, rank 0 first.
func WriteSVG(w io.Writer, graphs []*Graph, p Picture) error {
	if len(graphs) == 0 {
		return errors.New("there is no graph to draw")
	}
	f, err := fit(graphs)
	if err != nil {
		return err
	}
	t := follow(f, p.Start)
	s := svg{drawing: newDrawing(t, p.Parts)}
	s.legend = s.legendOf()
	s.open(p)
	s.columns()
	for i := range s.stages {
		s.stage(&s.stages[i])
	}
	s.writeLegend()
	s.b.WriteString("</svg>\n")
	_, err = io.WriteString(w, s.b.String())
	return err
}

// portColours are distinguishable for most readers (Okabe and Ito), on white and on
// black.
var portColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8a8a"}

// style holds the colors of both schemes. The fill of a cell shows whether it was
// received, copied or combined in this step, or unchanged.
const style = `<style>
text{font-family:ui-sans-serif,system-ui,"Helvetica Neue",Arial,sans-serif;font-size:11px;fill:#1f2328;text-anchor:middle}
.title{font-size:17px;font-weight:600;text-anchor:start}.left{text-anchor:start}.faint{fill:#6e7781}.small{font-size:9px}
.paper{fill:#ffffff}.rule{stroke:#d0d7de;stroke-width:1}.lifeline{stroke:#d0d7de;stroke-width:1;stroke-dasharray:2 4}
.head{fill:#f0f2f5;stroke:#afb8c1}.rank{font-weight:600}
.cell,.note{stroke:#afb8c1;stroke-width:.8}.kept{fill:#f0f2f5}.recv{fill:#cce3f5}.copy{fill:#fce6c0}.reduce{fill:#c8ebdc}.none{fill:none;stroke-dasharray:2 2}
.parcel{fill:#ffffff;stroke-width:1.4}.arrow{fill:none;stroke-width:1.6;stroke-opacity:.8}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#8d96a0}.paper{fill:#0d1117}.rule,.lifeline{stroke:#30363d}.head,.kept{fill:#21262d}
.head,.cell,.note{stroke:#59636e}.recv{fill:#123f63}.copy{fill:#5c4208}.reduce{fill:#0f4a36}.none{fill:none}.parcel{fill:#0d1117}}
</style>
`

// svg writes a drawing.
type svg struct {
	*drawing
	b      strings.Builder
	legend []legendEntry
}

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(&s.b, format, args...) }

// escapeText escapes text between tags.
func escapeText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no errors
	return b.String()
}

func (s *svg) text(x, y float64, class, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	s.printf(`<text x="%.1f" y="%.1f"%s>%s</text>`+"\n", x, y, class, escapeText(text))
}

// box draws a rectangle with text and a tooltip.
func (s *svg) box(x, y, w, h float64, class, more, text, tip string) {
	s.printf(`<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" class="%s"%s/>`, escapeText(tip), x, y, w, h, class, more)
	if text != "" {
		s.printf(`<text x="%.1f" y="%.1f">%s</text>`, x+w/2, y+h/2+4, escapeText(text))
	}
	s.b.WriteString("</g>\n")
}

// fitting truncates a label to a width.
func fitting(label string, width float64) string {
	room := int((width - 4) / letterWidth)
	if utf8.RuneCountInString(label) <= room {
		return label
	}
	return string([]rune(label)[:max(room-1, 0)]) + "…"
}

func (s *svg) open(p Picture) {
	s.width = max(s.width, 40+10*float64(utf8.RuneCountInString(p.Title)), 40+letterWidth*float64(utf8.RuneCountInString(p.Subtitle)))
	for _, e := range s.legend {
		s.width = max(s.width, marginLeft+20+letterWidth*float64(utf8.RuneCountInString(e.text)))
	}
	s.height += float64(len(s.legend)*18 + 30)
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="title about">`+"\n",
		s.width, s.height, s.width, s.height)
	s.printf("<title id=\"title\">%s</title>\n<desc id=\"about\">%s. Ranks are columns, time goes down.</desc>\n", escapeText(p.Title), escapeText(p.Subtitle))
	s.b.WriteString(style)
	s.b.WriteString("<defs>\n")
	for i, c := range portColours {
		s.printf(`<marker id="head%d" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker>`+"\n", i, c)
	}
	s.b.WriteString("</defs>\n")
	s.printf(`<rect class="paper" width="%.0f" height="%.0f"/>`+"\n", s.width, s.height)
	s.text(20, 30, "title", p.Title)
	s.text(20, 49, "left faint", p.Subtitle)
}

// columns draws the head and the lifeline of each rank.
func (s *svg) columns() {
	last := s.stages[len(s.stages)-1]
	for r := range s.graphs {
		x := s.middle(r)
		s.printf(`<line class="lifeline" x1="%.1f" y1="%d" x2="%.1f" y2="%.1f"/>`+"\n", x, marginTop, x, last.bottom-stageGap)
		s.printf(`<rect class="head" x="%.1f" y="%d" width="40" height="20" rx="10"/>`+"\n", x-20, marginTop-26)
		s.text(x, marginTop-12, "rank", fmt.Sprint(r))
	}
	s.text(20, marginTop-12, "left faint", "rank")
}

func (s *svg) stage(st *stage) {
	right := marginLeft + float64(len(s.graphs))*s.column
	s.printf(`<line class="rule" x1="20" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", st.top, right, st.top)
	name := "start"
	if st.index >= 0 {
		name = fmt.Sprintf("step %d", s.steps[st.index])
	}
	s.text(20, st.top+20, "left", name)
	s.messages(st)
	for r := range s.graphs {
		s.notes(r, st.earlyTop, st.early[r])
		s.notes(r, st.lateTop, st.late[r])
		if st.writes {
			s.holding(st, r)
		}
	}
}

// messages draws arrows first, so that parcels cover them.
func (s *svg) messages(st *stage) {
	end := st.lateTop - 3
	for _, list := range st.parcels {
		for _, p := range list {
			bend := (end - p.y) * .55
			c := p.port % len(portColours)
			s.printf(`<g><title>%s</title><path class="arrow" stroke="%s" marker-end="url(#head%d)" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f"/></g>`+"\n",
				escapeText(s.message(p)), portColours[c], c, p.x, p.y, p.x, p.y+bend, p.toX, end-bend, p.toX, end)
		}
	}
	for _, list := range st.parcels {
		for _, p := range list {
			s.box(p.x-s.parcelWidth/2, p.y-rowHeight, s.parcelWidth, rowHeight, "parcel",
				fmt.Sprintf(` stroke="%s"`, portColours[p.port%len(portColours)]), fitting(p.label, s.parcelWidth), s.message(p))
		}
	}
}

// message returns the tooltip of a message.
func (s *svg) message(p parcel) string {
	op := s.graphs[p.from].Ops[p.op]
	what := ""
	if p.label != "" {
		what = ": " + p.label
	}
	to := s.graphs[p.to].Ops[s.partner[p.from][p.op]].Dst
	return fmt.Sprintf("rank %d to rank %d, %d bytes, %v to %v%s", p.from, p.to, op.Src.Len, op.Src, to, what)
}

// notes draws the numbers of copies and reductions of a rank.
func (s *svg) notes(r int, y float64, ops []int32) {
	tips := map[Kind][]string{}
	for _, i := range ops {
		op := s.graphs[r].Ops[i]
		tips[op.Kind] = append(tips[op.Kind], op.String())
	}
	kinds := make([]Kind, 0, 2)
	for _, k := range []Kind{Copy, Reduce} {
		if tips[k] != nil {
			kinds = append(kinds, k)
		}
	}
	const w = 56
	for i, k := range kinds {
		x := s.middle(r) + (float64(i)-float64(len(kinds)-1)/2)*(w+2) - w/2
		text := k.String()
		if n := len(tips[k]); n > 1 {
			text = fmt.Sprintf("%s ×%d", text, n)
		}
		s.box(x, y, w, rowHeight-2, "note "+k.String(), ` stroke-dasharray="1 0"`, fitting(text, w+4), fmt.Sprintf("rank %d: %s", r, strings.Join(tips[k], "; ")))
	}
}

// holding draws the contents of a rank's buffers after a stage.
func (s *svg) holding(st *stage, r int) {
	width := -4.0
	for buf := In; buf < Bufs; buf++ {
		if len(s.shownCells(st, r, buf)) > 0 {
			width += s.cellWidth[buf] + 4
		}
	}
	x := s.middle(r) - width/2
	for buf := In; buf < Bufs; buf++ {
		cells := s.shownCells(st, r, buf)
		if len(cells) == 0 {
			continue
		}
		y := st.holdTop
		s.text(x+s.cellWidth[buf]/2, y+11, "small faint", buf.String())
		for _, c := range cells {
			y += rowHeight
			s.cell(st, r, Span{buf, c.off, c.n}, x, y)
		}
		x += s.cellWidth[buf] + 4
	}
}

func (s *svg) cell(st *stage, r int, at Span, x, y float64) {
	now, when := s.holds(st, r, at.Buf).read(at.Off, at.Len), "at the start"
	if st.index >= 0 {
		when = fmt.Sprintf("after step %d", s.steps[st.index])
	}
	class := "kept"
	if now == nil {
		class = "none"
	}
	for _, p := range now {
		if st.index >= 0 && p.step == s.steps[st.index] {
			class = p.how.String()
		}
	}
	label := s.names.label(now)
	tip := label
	if label == "" {
		tip = "nothing"
	}
	s.box(x, y, s.cellWidth[at.Buf], rowHeight, "cell "+class, "", fitting(label, s.cellWidth[at.Buf]),
		fmt.Sprintf("rank %d, %s, %v: %s", r, when, at, tip))
}
