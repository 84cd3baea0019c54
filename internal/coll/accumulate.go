package coll

import "github.com/muster-mpi/muster/internal/sched"

// An accumulator is the value of a rank on its way through a reduction: at first its own
// input, then combined with what others send. The one reduction that there is sets
// Dst to Src ∘ Dst, so the place of the value follows from the side of the other:
//
//	other on the left    receive into scratch, reduce that into the value: the value stays
//	other on the right   receive into scratch, reduce the value into that: the value moves
//
// Operations that commute choose the cheaper one: the first receive goes straight
// to where the result must be and the input is reduced into it, later ones stay.
// So no input is copied unless order demands it. It knows all sides
// beforehand, and lets the last move end where the result must be.

type accumulator struct {
	f        *flow
	commutes bool
	acc      sched.Span // the value, or as much of it as the rank still has
	end      sched.Span // where it must be at last; Len is that of acc
	anywhere bool       // it may be anywhere at last
	moves    int        // still to come
	room     *room      // for scratch; may serve several
}

// side says where the ranks of the other value stand.
type side bool

const (
	left  side = false // below
	right side = true  // above
)

// sideOf is the side of a peer.
func sideOf(peer, rank int) side { return peer > rank }

// newAccumulator begins with own. Every later meet has one of the sides, in their order.
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

// part is a part of the value.
func (x *accumulator) part(off, n int) sched.Span { return x.acc.At(off, n) }

// meet receives a peer's value of n bytes from off on and combines it with the own.
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

// finish brings the part of the value that the rank has to where it must be.
func (x *accumulator) finish(off, n int) {
	if !x.anywhere {
		x.f.copy(x.end.At(off, n), x.acc.At(off, n))
		x.acc = x.end
	}
}

// home is a new place for the value, which is not in use: the last one, if it will
// not move again.
func (x *accumulator) home(used sched.Span) sched.Span {
	if x.moves == 0 && !x.anywhere && x.acc != x.end {
		return x.end
	}
	return x.room.get(x.acc.Len, used)
}

// room is scratch. Small receives have room of their own, to be posted early; large
// ones take turns.
type room struct {
	f     *flow
	most  int // bytes to take before places are used again
	took  int
	spans []sched.Span
	next  int
}

// get gives n bytes that are not those in use.
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
