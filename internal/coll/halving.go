package coll

// Halving: the first half of Rabenseifner's reductions. In round i the ranks at
// distance 2^i exchange halves of what they have of the data, so that each ends
// with one part of the result. Near ranks meet first, which keeps the operands in
// the order of ranks: an operation need not commute. The number of ranks is brought
// to a power of two before: of neighbors at the lower end, one gives its data to
// the other and waits.

// folding is how ranks are brought to a power of two: the first 2·extra ranks form
// pairs of which one takes part. It is the lower one, or the keeper's.
type folding struct {
	size, extra int
	keeper      int // a rank that must take part; -1: none
}

// power is the largest power of two that is not above n.
func power(n int) int {
	p := 1
	for p <= n/2 {
		p *= 2
	}
	return p
}

func newFolding(size, keeper int) folding { return folding{size, size - power(size), keeper} }

// place is the number of a rank, or of its pair, among those that take part.
func (d folding) index(rank int) int {
	if rank < 2*d.extra {
		return rank / 2
	}
	return rank - d.extra
}

// at is the rank that has a place.
func (d folding) at(index int) int {
	switch {
	case index >= d.extra:
		return index + d.extra
	case d.keeper == 2*index+1:
		return d.keeper
	}
	return 2 * index
}

// partner is the other one of a pair, or -1.
func (d folding) partner(rank int) int {
	if rank < 2*d.extra {
		return rank ^ 1
	}
	return -1
}

// reach is bytes of the data.
type reach struct{ off, n int }

// cutting is a round of the halving: who was met, at what distance, and what of the
// data each kept.
type cutting struct {
	peer, distance int
	keep, give     reach
}

// halved is what the halving leaves for the second half of the algorithm.
type halved struct {
	folding
	out  bool // the rank has given its data to its partner and is done
	rank int  // its place
	step int  // of the next round
	cuts []cutting
}

// halving leaves in the accumulator of each rank that takes part the part of the
// result that it kept last, and room for the rest beside it. With a keeper only
// that rank needs it in Out.
func halving(f *flow, s *Shape, keeper int) (*halved, *accumulator) {
	h := &halved{folding: newFolding(s.Size, keeper)}
	h.rank = h.index(s.Rank)
	partner := h.partner(s.Rank)
	if partner >= 0 && h.at(h.rank) != s.Rank {
		h.out = true
		f.send(partner, s.data())
		return h, nil
	}
	var sides []side
	if partner >= 0 {
		sides = append(sides, sideOf(partner, s.Rank))
	}
	h.cut(s)
	for _, c := range h.cuts {
		sides = append(sides, sideOf(c.peer, s.Rank))
	}
	x := newAccumulator(f, s.Commutes, s.data(), s.result(), keeper >= 0 && keeper != s.Rank, sides)
	if partner >= 0 {
		x.meet(partner, 0, s.Bytes, sideOf(partner, s.Rank))
	}
	if h.extra > 0 {
		h.step++
	}
	have := reach{0, s.Bytes}
	for _, c := range h.cuts {
		f.Step(h.step)
		h.step++
		f.send(c.peer, x.part(c.give.off, c.give.n))
		x.meet(c.peer, c.keep.off, c.keep.n, sideOf(c.peer, s.Rank))
		have = c.keep
	}
	x.finish(have.off, have.n)
	return h, x
}

// cut plans the rounds. The parts are numbered 0 to active-1; the lower one of two
// keeps the lower half.
func (h *halved) cut(s *Shape) {
	active := power(s.Size)
	parts := func(i, j int) reach {
		from, _ := part(s.Bytes, s.Elem, i, active)
		last, n := part(s.Bytes, s.Elem, j-1, active)
		return reach{from, last + n - from}
	}
	from, to := 0, active
	for d := 1; d < active; d *= 2 {
		middle := (from + to) / 2
		c := cutting{peer: h.at(h.rank ^ d), distance: d, keep: parts(from, middle), give: parts(middle, to)}
		if h.rank&d != 0 {
			c.keep, c.give = c.give, c.keep
			from = middle
		} else {
			to = middle
		}
		h.cuts = append(h.cuts, c)
	}
}

// foldedCost is the time that ranks above a power of two cost, before the exchange
// and, if they get the result, after it.
func foldedCost(s *Shape, m *Model, back bool) float64 {
	if power(s.Size) == s.Size {
		return 0
	}
	cost := m.together(1, float64(s.Bytes)) + m.Reduce*float64(s.Bytes)
	if back {
		cost += m.together(1, float64(s.Bytes))
	}
	return cost
}

func halvingCost(s *Shape, m *Model) float64 {
	n := float64(power(s.Size))
	return m.halves(power(s.Size), float64(s.Bytes)) + m.bytes(1, 1, (n-1)/n*float64(s.Bytes)) + (n-1)/n*float64(s.Bytes)*m.Reduce
}
