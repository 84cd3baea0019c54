package sched

// The contents of every rank's buffers after every step, as pieces of the ranks'
// initial data. They are for the labels of a picture; Validate proves that a schedule
// is correct.

import (
	"cmp"
	"slices"
)

// piece is a part of a buffer: its bytes at to at+n are the bytes off to off+n of the
// data of the ranks in from, combined. A negative off means unknown origin.
type piece struct {
	at, n int
	off   int
	from  []int // in order; shared, never changed
	how   Kind  // what wrote it: Recv, Copy, Reduce; Send for initial contents
	step  int32 // the step that wrote it
}

func (p piece) part(from, to int) piece {
	if p.off >= 0 {
		p.off += from - p.at
	}
	p.at, p.n = from, to-from
	return p
}

// contents are the pieces of a buffer in order. Bytes never written have no piece.
type contents []piece

// read returns the pieces of a part, at offsets relative to its start.
func (c contents) read(off, n int) contents {
	var out contents
	for _, p := range c {
		if from, to := max(p.at, off), min(p.at+p.n, off+n); from < to {
			q := p.part(from, to)
			q.at -= off
			out = append(out, q)
		}
	}
	return out
}

// write returns c with pieces, which begin at 0, written into a part. c does not
// change, because earlier steps may still show it.
func (c contents) write(off, n int, pieces contents, how Kind, step int32) contents {
	var out contents
	for _, p := range c {
		if to := min(p.at+p.n, off); p.at < to {
			out = append(out, p.part(p.at, to))
		}
		if from := max(p.at, off+n); from < p.at+p.n {
			out = append(out, p.part(from, p.at+p.n))
		}
	}
	for _, p := range pieces {
		p.at, p.how, p.step = p.at+off, how, step
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
	return out
}

// combine returns a ∘ b. Both begin at 0 and have n bytes. Bytes that only one of them
// has, or that come from different offsets of the data, are of unknown origin.
func combine(a, b contents, n int) contents {
	cuts := []int{0, n}
	for _, p := range slices.Concat(a, b) {
		cuts = append(cuts, p.at, p.at+p.n)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var out contents
	for i := 1; i < len(cuts); i++ {
		from, to := cuts[i-1], cuts[i]
		p := piece{at: from, n: to - from, off: -1}
		x, y := a.read(from, to-from), b.read(from, to-from)
		if len(x) == 1 && len(y) == 1 && x[0].off == y[0].off && x[0].off >= 0 {
			p.off = x[0].off
			p.from = slices.Concat(x[0].from, y[0].from)
			slices.Sort(p.from)
			p.from = slices.Compact(p.from)
		}
		out = append(out, p)
	}
	return out
}

// holding is the contents of a rank's buffers.
type holding [Bufs]contents

// trace holds the buffer contents after each step of a collective.
type trace struct {
	*fitted
	steps []int32
	start []holding
	after [][]holding          // by index of the step, by rank
	sent  []map[int32]contents // by rank, by operation
}

// follow executes all graphs step by step. An operation that could not run in its own
// step runs in a later one.
func follow(f *fitted, begin func(rank int) []Piece) *trace {
	t := &trace{fitted: f}
	now := make([]holding, len(f.graphs))
	for r, g := range f.graphs {
		t.sent = append(t.sent, map[int32]contents{})
		t.steps = append(t.steps, f.step[r]...)
		pieces := []Piece{{Span: g.reads(), From: r, To: r + 1}}
		if begin != nil {
			pieces = begin(r)
		}
		for _, p := range pieces {
			if p.Len > 0 {
				now[r][p.Buf] = append(now[r][p.Buf], piece{at: p.Off, n: p.Len, off: p.At, from: upTo(p.From, p.To), how: Send, step: -1})
			}
		}
	}
	t.start = slices.Clone(now)
	slices.Sort(t.steps)
	t.steps = slices.Compact(t.steps)
	done := f.newDone()
	for _, s := range t.steps {
		f.order(done, func(r, i int) bool { return f.step[r][i] <= s }, func(r, i int) { t.do(now, r, int32(i), s) })
		t.after = append(t.after, slices.Clone(now))
	}
	return t
}

func upTo(from, to int) []int {
	var list []int
	for ; from < to; from++ {
		list = append(list, from)
	}
	return list
}

func (t *trace) do(now []holding, r int, i, step int32) {
	op := &t.graphs[r].Ops[i]
	src := now[r][op.Src.Buf].read(op.Src.Off, op.Src.Len)
	dst := &now[r][op.Dst.Buf]
	switch op.Kind {
	case Send:
		t.sent[r][i] = src
		return
	case Recv:
		src = t.sent[op.Peer][t.partner[r][i]]
	case Reduce:
		src = combine(src, dst.read(op.Dst.Off, op.Dst.Len), op.Dst.Len)
	}
	*dst = dst.write(op.Dst.Off, op.Dst.Len, src, op.Kind, step)
}

// reads returns the part of the input that the graph reads.
func (g *Graph) reads() Span {
	low, high := -1, 0
	for _, op := range g.Ops {
		if op.Kind != Recv && op.Src.Buf == In && op.Src.Len > 0 {
			if low < 0 || op.Src.Off < low {
				low = op.Src.Off
			}
			high = max(high, op.Src.Off+op.Src.Len)
		}
	}
	if low < 0 {
		return Span{}
	}
	return Span{In, low, high - low}
}
