package sched

import (
	"cmp"
	"fmt"
	"slices"
)

// The end. Every byte of every output is compared: with its piece, or with what
// it was at the start if no piece names it. The input needs no look: no operation
// writes into it. If ranks must agree, equal pieces must also be equal terms:
// combined in the same brackets, so that a sum of floating-point numbers has the
// same rounding everywhere, and programs that decide by it decide alike.

// checkEnd compares memory with the pieces that must be there.
func (w *world) checkEnd(v *values) *Fault {
	agreed := map[Piece][]run{} // by piece, placed at 0
	for r := range w.graphs {
		m := &v.task.Ranks[r]
		pieces := slices.Clone(m.End)
		slices.SortFunc(pieces, func(a, b Piece) int { return cmp.Or(a.Off-b.Off, a.Len-b.Len) })
		done := 0
		for _, p := range pieces {
			if p.Len == 0 {
				continue
			}
			if p.Buf != Out || p.Off < done || p.Off+p.Len > m.Out {
				return &Fault{"form", r, -1, fmt.Sprintf("the task itself is wrong: %s is asked for, after [:%d) of %d bytes", place(p.Span), done, m.Out)}
			}
			if f := w.checkStill(r, done, p.Off); f != nil {
				return f
			}
			done = p.Off + p.Len
			if p.Free {
				continue
			}
			if f := w.checkPiece(v, r, &p); f != nil {
				return f
			}
			if v.task.Agree {
				if f := checkAgree(v, r, p, agreed); f != nil {
					return f
				}
			}
		}
		if f := w.checkStill(r, done, m.Out); f != nil {
			return f
		}
	}
	return nil
}

// checkStill checks that bytes were not touched, not even to be restored later:
// the caller may be using them.
func (w *world) checkStill(rank, off, end int) *Fault {
	if off >= end {
		return nil
	}
	for _, op := range w.graphs[rank].Ops {
		if op.Kind != Send && overlap(op.Dst, Span{Out, off, end - off}) {
			return &Fault{"value", rank, -1, fmt.Sprintf("%s writes between the results, into bytes of %s that are the caller's", describe(&op), place(Span{Out, off, end - off}))}
		}
	}
	return nil
}

// checkPiece compares the sequences of a piece.
func (w *world) checkPiece(v *values, rank int, p *Piece) *Fault {
	id, base := v.expected(p)
	v.dst = v.read(v.dst[:0], rank, p.Span)
	for _, x := range v.dst {
		want := base + x.off
		if v.terms[x.term].sequence == v.terms[id].sequence && x.base == want {
			continue
		}
		s := p.Span.At(x.off, x.n)
		return &Fault{"value", rank, -1, fmt.Sprintf("%s must end as %s, and ends as %s, %s",
			place(s), v.say(id, want, x.n), v.say(x.term, x.base, x.n), w.writer(rank, s))}
	}
	return nil
}

// writer names the operation that wrote into a span last.
func (w *world) writer(rank int, s Span) string {
	for k := len(w.order) - 1; k >= 0; k-- {
		r, i := w.who(w.order[k])
		if op := &w.graphs[r].Ops[i]; r == rank && op.Kind != Send && overlap(op.Dst, s) {
			return fmt.Sprintf("last written by operation %d (%s)", i, describe(op))
		}
	}
	return "written by no operation"
}

// checkAgree compares the terms of a piece with those of the first rank that has
// the same one.
func checkAgree(v *values, rank int, p Piece, agreed map[Piece][]run) *Fault {
	v.dst = v.read(v.dst[:0], rank, p.Span)
	var now []run
	for _, x := range v.dst {
		now = appendRun(now, x)
	}
	p.Span = Span{Len: p.Len}
	first, known := agreed[p]
	if !known {
		agreed[p] = now
		return nil
	}
	if !slices.Equal(first, now) {
		return &Fault{"value", rank, -1, fmt.Sprintf("%s is combined in other brackets than on a rank before: rounding would differ", v.say(int32(p.From), p.At, p.Len))}
	}
	return nil
}
