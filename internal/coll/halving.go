package coll

// Halving: the first phase of Rabenseifner's reductions. In round i the ranks at
// distance 2^i exchange halves of their remaining data, so that each ends with one part
// of the result. Near ranks are partners first, which keeps the operands in rank order:
// an operation need not commute. The number of ranks is first reduced to a power of
// two: of adjacent lower ranks, one sends its data to the other and waits.

// folding reduces the ranks to a power of two: the first 2·extra ranks form pairs of
// which one takes part, the lower one or the keeper.
type folding struct {
	size, extra int
	keeper      int // a rank that must take part, or -1
}

// power returns the largest power of two that is not above n.
func power(n int) int {
	p := 1
	for p <= n/2 {
		p *= 2
	}
	return p
}

func newFolding(size, keeper int) folding { return folding{size, size - power(size), keeper} }

// index returns the index of a rank, or of its pair, among those that take part.
func (d folding) index(rank int) int {
	if rank < 2*d.extra {
		return rank / 2
	}
	return rank - d.extra
}

// at returns the rank with an index.
func (d folding) at(index int) int {
	switch {
	case index >= d.extra:
		return index + d.extra
	case d.keeper == 2*index+1:
		return d.keeper
	}
	return 2 * index
}

// partner returns the other rank of a pair, or -1.
func (d folding) partner(rank int) int {
	if rank < 2*d.extra {
		return rank ^ 1
	}
	return -1
}

// reach is a range of bytes of the data.
type reach struct{ off, n int }

// cutting is a round of the halving: the partner, its distance, and the parts of the
// data that are kept and sent.
type cutting struct {
	peer, distance int
	keep, give     reach
}

// halved is the state that the halving leaves for the second phase of the algorithm.
type halved struct {
	folding
	out  bool // the rank has sent its data to its partner and is done
	rank int  // its index among the ranks that take part
	step int  // of the next round
	cuts []cutting
}

// halving leaves in the accumulator of each participating rank its part of the result,
// and room for the rest. With a keeper, only that rank needs the result in Out.
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

// cut plans the rounds. The parts are numbered 0 to active-1; the lower of two partners
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

// foldedCost returns the additional time for ranks beyond a power of two, before the
// exchange and, if they get the result, after it.
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
