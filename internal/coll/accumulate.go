package coll

import "github.com/muster-mpi/muster/internal/sched"

// An accumulator is the value of a rank during a reduction: initially its own input,
// then combined with the values received. The only reduction sets Dst to Src ∘ Dst, so
// the location of the value depends on the side of the other operand:
//
//	other on the left    receive into scratch, reduce that into the value: the value stays
//	other on the right   receive into scratch, reduce the value into that: the value moves
//
// Commuting operations choose the less expensive way: the first receive goes directly
// to the final location and the input is reduced into it; later values stay. Input is
// thus copied only if the order requires it. The accumulator knows all sides in
// advance, and makes the last move end at the final location.

type accumulator struct {
	f        *flow
	commutes bool
	acc      sched.Span // the value, or the part of it that the rank still has
	end      sched.Span // the final location; as long as acc
	anywhere bool       // any final location will do
	moves    int        // moves left
	room     *room      // scratch; may be shared
}

// side is the side of the other operand.
type side bool

const (
	left  side = false // lower ranks
	right side = true  // higher ranks
)

// sideOf returns the side of a peer.
func sideOf(peer, rank int) side { return peer > rank }

// newAccumulator returns an accumulator with the value own. sides holds the side of
// each later call of meet, in order.
func newAccumulator(f *flow, commutes bool, own, end sched.Span, anywhere bool, sides []side) *accumulator {
	x := &accumulator{f: f, commutes: commutes, acc: own, end: end, anywhere: anywhere, room: &room{f: f, most: 2 * own.Len}}
	for _, s := range sides {
		if s == right {
			x.moves++
		}
	}
	if commutes {
		x.moves = 0
		if own.Buf == sched.In && len(sides) > 0 {
			x.moves = 1
		}
	}
	return x
}

// part returns a part of the value.
func (x *accumulator) part(off, n int) sched.Span { return x.acc.At(off, n) }

// meet receives n bytes at off of a peer's value and combines them with the own value.
func (x *accumulator) meet(peer, off, n int, s side) {
	moves := s == right
	if x.commutes {
		moves = x.acc.Buf == sched.In
	}
	if moves {
		x.moves--
		to := x.home(x.acc)
		x.f.recv(peer, to.At(off, n))
		x.f.reduce(to.At(off, n), x.acc.At(off, n))
		x.acc = to
		return
	}
	other := x.room.get(n, x.acc)
	x.f.recv(peer, other)
	if x.acc.Buf == sched.In {
		to := x.home(other)
		x.f.copy(to.At(off, n), x.acc.At(off, n))
		x.acc = to
	}
	x.f.reduce(x.acc.At(off, n), other)
}

// finish copies a part of the value to its final location.
func (x *accumulator) finish(off, n int) {
	if !x.anywhere {
		x.f.copy(x.end.At(off, n), x.acc.At(off, n))
		x.acc = x.end
	}
}

// home returns an unused location for the value: the final one, if it will not move
// again.
func (x *accumulator) home(used sched.Span) sched.Span {
	if x.moves == 0 && !x.anywhere && x.acc != x.end {
		return x.end
	}
	return x.room.get(x.acc.Len, used)
}

// room allocates scratch. Small receives get separate spans, so that they can be posted
// early; large ones share spans.
type room struct {
	f     *flow
	most  int // bytes to allocate before spans are reused
	took  int
	spans []sched.Span
	next  int
}

// get returns n bytes of scratch that do not overlap used.
func (r *room) get(n int, used sched.Span) sched.Span {
	const plenty = 32 << 10
	if r.took+n > max(plenty, r.most) {
		for range r.spans {
			p := r.spans[r.next]
			r.next = (r.next + 1) % len(r.spans)
			if p.Len >= n && (used.Buf != sched.Tmp || p.Off != used.Off) {
				return p.At(0, n)
			}
		}
	}
	p := r.f.Tmp(n)
	r.took += n
	r.spans = append(r.spans, p)
	return p
}
