package sched

import (
	"cmp"
	"fmt"
	"slices"
)

// Final contents. Every byte of every output is compared with its piece, or with its
// initial value if it is in no piece. The input needs no check, because no operation
// writes into it. If ranks must agree, equal pieces must also be equal terms: the
// operands must be grouped alike. Sums of floating-point numbers then have the same
// rounding on all ranks, and decisions based on them agree.

// checkEnd compares memory with the required pieces.
func (w *world) checkEnd(v *values) *Fault {
	agreed := map[Piece][]run{} // by piece, moved to offset 0
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
				return &Fault{"form", r, -1, fmt.Sprintf("the task itself is wrong: it requires %s, after [:%d) of %d bytes", spanText(p.Span), done, m.Out)}
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

// checkStill checks that bytes are never written, not even to be restored later: the
// caller may be using them.
func (w *world) checkStill(rank, off, end int) *Fault {
	if off >= end {
		return nil
	}
	for _, op := range w.graphs[rank].Ops {
		if op.Kind != Send && overlap(op.Dst, Span{Out, off, end - off}) {
			return &Fault{"value", rank, -1, fmt.Sprintf("%s writes outside the results, into the caller's bytes of %s", describe(&op), spanText(Span{Out, off, end - off}))}
		}
	}
	return nil
}

// checkPiece compares the sequences of a piece with the expected one.
func (w *world) checkPiece(v *values, rank int, p *Piece) *Fault {
	id, base := v.expectedTerm(p)
	v.dst = v.read(v.dst[:0], rank, p.Span)
	for _, x := range v.dst {
		want := base + x.off
		if v.terms[x.term].sequence == v.terms[id].sequence && x.base == want {
			continue
		}
		s := p.Span.At(x.off, x.n)
		return &Fault{"value", rank, -1, fmt.Sprintf("%s must be %s at the end, but is %s, %s",
			spanText(s), v.describe(id, want, x.n), v.describe(x.term, x.base, x.n), w.writer(rank, s))}
	}
	return nil
}

// writer describes the operation that last wrote into a span.
func (w *world) writer(rank int, s Span) string {
	for k := len(w.order) - 1; k >= 0; k-- {
		r, i := w.locate(w.order[k])
		if op := &w.graphs[r].Ops[i]; r == rank && op.Kind != Send && overlap(op.Dst, s) {
			return fmt.Sprintf("last written by operation %d (%s)", i, describe(op))
		}
	}
	return "written by no operation"
}

// checkAgree compares the terms of a piece with those of the first rank that has the
// same piece.
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
		return &Fault{"value", rank, -1, fmt.Sprintf("the operands of %s are grouped differently than on an earlier rank: rounding would differ", v.describe(int32(p.From), p.At, p.Len))}
	}
	return nil
}
