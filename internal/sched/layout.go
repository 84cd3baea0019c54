package sched

// The layout of a collective's picture: ranks are columns, time runs downwards. A
// stage shows one step. From top to bottom it has the local work before the
// messages, the messages (data sent, then arrows to the receivers), the local work
// after them, and the contents of every rank's buffers.

import (
	"slices"
	"unicode/utf8"
)

// Sizes in pixels.
const (
	marginLeft, marginTop, marginEnd = 78, 96, 22
	rowHeight                        = 16 // of a cell, a note, a parcel
	letterWidth                      = 6.1
	stageGap, columnGap              = 16, 18
	maxCells                         = 24 // of a buffer; one with more is drawn as one cell
	longestLabel                     = 14
)

// drawing is the picture before it is written as SVG.
type drawing struct {
	*trace
	names *naming

	cells         [][Bufs][]cell // of each rank
	cellWidth     [Bufs]float64
	parcelWidth   float64
	perRow        int // parcels side by side
	column        float64
	stages        []stage
	width, height float64
}

// cell is a part of a buffer that the picture shows.
type cell struct{ off, n int }

// stage is a band of the picture; index -1 of steps is the start.
type stage struct {
	index                     int
	parcels                   [][]parcel // by sender
	early, late               [][]int32  // copies and reductions by rank, before and after messages
	top                       float64
	earlyTop, sendTop         float64
	arrowTop, lateTop         float64
	holdTop, bottom           float64
	hasEarly, hasLate, writes bool
	parcelRows                int
	rows                      [Bufs]int // of cells that are shown of each buffer
}

// parcel is a message.
type parcel struct {
	from, to  int
	op        int32
	port      int // which of the sender's in this step
	label     string
	x, y, toX float64 // the middle of its lower edge; where the arrow ends
}

func newDrawing(t *trace, ends []int) *drawing {
	d := &drawing{trace: t, names: t.naming(ends)}
	d.findCells()
	for i := -1; i < len(t.steps); i++ {
		d.stages = append(d.stages, d.newStage(i))
	}
	d.arrange()
	return d
}

// findCells cuts the buffers of each rank into cells at every offset at which a
// piece or a part begins or ends in any step, and omits cells that are never filled.
// Input and output are cut alike on all ranks, so that ranks can be compared.
func (d *drawing) findCells() {
	all := append([][]holding{d.start}, d.after...)
	d.cells = make([][Bufs][]cell, len(d.graphs))
	for buf := In; buf < Bufs; buf++ {
		cuts := make([][]int, len(d.graphs))
		for r := range d.graphs {
			for _, ranks := range all {
				cuts[r] = append(cuts[r], d.cuts(ranks[r][buf])...)
			}
		}
		if buf < Tmp {
			together := slices.Concat(cuts...)
			for r := range cuts {
				cuts[r] = together
			}
		}
		for r := range d.graphs {
			held := slices.Clone(cuts[r])
			slices.Sort(held)
			held = slices.Compact(held)
			for k := 1; k < len(held); k++ {
				c := cell{held[k-1], held[k] - held[k-1]}
				if slices.ContainsFunc(all, func(ranks []holding) bool { return ranks[r][buf].read(c.off, c.n) != nil }) {
					d.cells[r][buf] = append(d.cells[r][buf], c)
				}
			}
			if c := d.cells[r][buf]; len(c) > maxCells {
				last := c[len(c)-1]
				d.cells[r][buf] = []cell{{c[0].off, last.off + last.n - c[0].off}}
			}
		}
	}
}

// cuts returns the offsets at which pieces, and the parts in them, begin and end.
func (d *drawing) cuts(c contents) []int {
	var cuts []int
	for _, p := range c {
		cuts = append(cuts, p.at, p.at+p.n)
		for _, end := range d.names.ends {
			if p.off >= 0 && p.off < end && end < p.off+p.n {
				cuts = append(cuts, p.at+end-p.off)
			}
		}
	}
	return cuts
}

// newStage groups the operations of a step.
func (d *drawing) newStage(index int) stage {
	n := len(d.graphs)
	s := stage{index: index, parcels: make([][]parcel, n), early: make([][]int32, n), late: make([][]int32, n)}
	if index < 0 {
		s.writes = true
		return s
	}
	for r, g := range d.graphs {
		follows := make([]bool, len(g.Ops)) // a message of this step came before it
		for i, op := range g.Ops {
			if d.step[r][i] != d.steps[index] {
				continue
			}
			s.writes = s.writes || op.Kind != Send && op.Dst.Len > 0
			follows[i] = op.Kind == Recv
			for _, b := range d.before[r][i] {
				follows[i] = follows[i] || follows[b]
			}
			switch {
			case op.Kind == Send:
				label := d.names.label(d.sent[r][int32(i)])
				s.parcels[r] = append(s.parcels[r], parcel{from: r, to: int(op.Peer), op: int32(i), port: len(s.parcels[r]), label: label})
			case op.Kind == Recv || op.Dst.Len == 0:
			case follows[i]:
				s.late[r] = append(s.late[r], int32(i))
				s.hasLate = true
			default:
				s.early[r] = append(s.early[r], int32(i))
				s.hasEarly = true
			}
		}
	}
	return s
}

// arrange assigns all coordinates.
func (d *drawing) arrange() {
	d.measure()
	y := float64(marginTop)
	for i := range d.stages {
		s := &d.stages[i]
		s.top = y
		y += 8
		if s.earlyTop = y; s.hasEarly {
			y += rowHeight + 4
		}
		s.sendTop = y
		far := 0
		for _, list := range s.parcels {
			s.parcelRows = max(s.parcelRows, (len(list)+d.perRow-1)/max(d.perRow, 1))
			for _, p := range list {
				far = max(far, p.to-p.from, p.from-p.to)
			}
		}
		y += float64(s.parcelRows * (rowHeight + 3))
		if s.arrowTop = y; s.parcelRows > 0 {
			y += min(64+float64(far)*9, 150)
		}
		if s.lateTop = y; s.hasLate {
			y += rowHeight + 4
		}
		if s.holdTop = y; s.writes {
			d.findRows(s)
			y += rowHeight + float64(slices.Max(s.rows[:])*rowHeight)
		}
		y += stageGap
		s.bottom = y
		d.aim(s)
	}
	d.height = y
	d.width = marginLeft + float64(len(d.graphs))*d.column + marginEnd
}

// measure derives the width of columns from their longest labels.
func (d *drawing) measure() {
	longest := func(s string, w float64) float64 {
		return max(w, float64(min(utf8.RuneCountInString(s), longestLabel))*letterWidth+10)
	}
	for _, ranks := range append([][]holding{d.start}, d.after...) {
		for r, h := range ranks {
			for buf, cells := range d.cells[r] {
				for _, c := range cells {
					d.cellWidth[buf] = longest(d.names.label(h[buf].read(c.off, c.n)), max(d.cellWidth[buf], 34))
				}
			}
		}
	}
	d.column = max(d.cellWidth[In], d.cellWidth[Out]+d.cellWidth[Tmp]+4+d.sharedWidth(), 60)
	d.parcelWidth = 24
	most := 1
	for _, s := range d.stages {
		for _, list := range s.parcels {
			most = max(most, len(list))
			for _, p := range list {
				d.parcelWidth = longest(p.label, d.parcelWidth)
			}
		}
	}
	d.perRow = max(1, min(most, int(max(d.column, 110)/(d.parcelWidth+4))))
	d.column = max(d.column, float64(d.perRow)*(d.parcelWidth+4)) + columnGap
}

// sharedWidth returns the width of the shared buffer and the gap before it.
func (d *drawing) sharedWidth() float64 {
	if d.cellWidth[Shared] == 0 {
		return 0
	}
	return d.cellWidth[Shared] + 4
}

// findRows counts the cells that a stage shows of each buffer. Trailing cells of the
// output that no rank has filled yet are omitted, so that ranks stay comparable. Of
// scratch and of shared memory only filled cells are shown. The input does not change, so only the start
// shows it.
func (d *drawing) findRows(s *stage) {
	for r := range d.graphs {
		for buf := In; buf < Bufs; buf++ {
			if s.index >= 0 && buf == In {
				continue
			}
			filled := 0
			for row, c := range d.cells[r][buf] {
				if d.holds(s, r, buf).read(c.off, c.n) == nil {
					continue
				}
				if filled++; buf < Tmp {
					filled = row + 1
				}
			}
			s.rows[buf] = max(s.rows[buf], filled)
		}
	}
}

// shownCells returns the cells of a rank's buffer that a stage shows.
func (d *drawing) shownCells(s *stage, rank int, buf Buf) []cell {
	cells := d.cells[rank][buf]
	if buf < Tmp {
		return cells[:min(s.rows[buf], len(cells))]
	}
	now := d.holds(s, rank, buf)
	return slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return now.read(c.off, c.n) == nil })
}

// holds returns the contents of a rank's buffer at the end of a stage. Of scratch and
// of shared memory it returns what the stage wrote and what later steps read.
func (d *drawing) holds(s *stage, rank int, buf Buf) contents {
	if s.index < 0 {
		return d.start[rank][buf]
	}
	now := d.after[s.index][rank][buf]
	if buf < Tmp {
		return now
	}
	return slices.DeleteFunc(slices.Clone(now), func(p piece) bool {
		return p.step != d.steps[s.index] && !d.readLater(rank, buf, p, d.steps[s.index])
	})
}

// readLater reports whether scratch will be read in a later step.
func (d *drawing) readLater(rank int, buf Buf, p piece, step int32) bool {
	meets := func(s Span) bool { return s.Buf == buf && s.Off < p.at+p.n && p.at < s.Off+s.Len }
	for i, op := range d.graphs[rank].Ops {
		if d.step[rank][i] > step && (op.Kind != Recv && meets(op.Src) || op.Kind == Reduce && meets(op.Dst)) {
			return true
		}
	}
	return false
}

// middle returns the horizontal middle of a rank's column.
func (d *drawing) middle(rank int) float64 {
	return marginLeft + (float64(rank)+.5)*d.column
}

// aim sets the coordinates of the parcels of a stage and of their arrow heads.
// Arrows that end at the same rank are sorted by sender.
func (d *drawing) aim(s *stage) {
	arrive := make([][]*parcel, len(d.graphs))
	for r := range s.parcels {
		list := s.parcels[r]
		for k := range list {
			p := &list[k]
			row, inRow := k/d.perRow, min(d.perRow, len(list)-k/d.perRow*d.perRow)
			p.x = d.middle(r) + (float64(k%d.perRow)-float64(inRow-1)/2)*(d.parcelWidth+4)
			p.y = s.sendTop + float64(row*(rowHeight+3)) + rowHeight
			arrive[p.to] = append(arrive[p.to], p)
		}
	}
	for r, list := range arrive {
		slices.SortStableFunc(list, func(a, b *parcel) int { return a.from - b.from })
		gap := min(16, (d.column-columnGap)/float64(max(len(list), 1)))
		for k, p := range list {
			p.toX = d.middle(r) + (float64(k)-float64(len(list)-1)/2)*gap
		}
	}
}
