package coll

import "github.com/muster-mpi/muster/internal/sched"

// The alltoalls that combine blocks in messages and forward them: Bruck and Standard
// Exchange. A block is copied only to pack a message, or at the end.

// bruckAlltoall forwards a block for a rank x above in steps of the digits of x to the
// base k+1. In the round of a digit, all blocks with digit j are sent j times the
// digit's weight upwards, in one message; these k messages are under way together. The
// block of distance x that a rank sends is replaced by the block of distance x that it
// receives.
//
// T2 3.4.4 rotates the blocks before and after, so that x is their index. Here the
// first rotation is only a change of index, and the last one is part of unpacking.
// Messages hold distances from the largest down, because the blocks at their
// destination are then in the order of Out.
func bruckAlltoall(b *sched.Builder, s *Shape, params []int) {
	n, r, base := s.Size, s.Rank, params[0]+1
	held := make([]piece, n) // by distance
	read := make([]sched.ID, n)
	for x := range held {
		held[x] = piece{s.sentTo(wrap(r+x, n)), sched.None}
		read[x] = sched.None
	}
	step := 0
	pieces, travels := make([]piece, 0, n), make([]int, 0, n)
	for weight := 1; weight < n; weight *= base {
		b.Step(step)
		step++
		for j := 1; j < base && j*weight < n; j++ {
			pieces, travels = pieces[:0], travels[:0]
			for x := n - 1; x >= j*weight; x-- {
				if x/weight%base == j {
					pieces, travels = append(pieces, held[x]), append(travels, x)
				}
			}
			readers := sendPieces(b, wrap(r+j*weight, n), pieces)
			size := len(travels) * s.Recv.Each
			dst, straight := s.endOf(travels, n <= weight*base)
			if !straight {
				dst = b.Tmp(size)
			}
			got := recvSome(b, wrap(r-j*weight, n), dst)
			reader := sched.None
			if s.InPlace {
				reader = b.Join(readers...)
			}
			for i, x := range travels {
				if held[x].by == sched.None {
					read[x] = reader // the block was input
				}
				held[x] = piece{dst.At(i*s.Recv.Each, s.Recv.Each), got}
			}
		}
	}
	b.Step(step)
	m := mover{b: b}
	for x := n - 1; x >= 0; x-- {
		from := wrap(r-x, n) // the source, whose distance is n-x
		free := sched.None
		if s.InPlace {
			free = read[wrap(-x, n)]
		}
		m.copy(s.outBlock(from), held[x].at, held[x].by, free)
	}
	m.flush()
}

// endOf returns the final span of the blocks of a message of the last round, if they
// can be received there: contiguous in Out, and Out is not also the input.
func (s *Shape) endOf(travels []int, last bool) (dst sched.Span, ok bool) {
	first := wrap(s.Rank-travels[0], s.Size)
	if !last || s.InPlace || first+len(travels) > s.Size {
		return dst, false
	}
	dst = s.outBlock(first)
	dst.Len *= len(travels)
	return dst, true
}

func bruckAlltoallCost(s *Shape, m *Model, params []int) float64 {
	n, base := s.Size, params[0]+1
	each := float64(s.blockBytes())
	t, copied := 0.0, 1.0
	for weight := 1; weight < n; weight *= base {
		messages, largest := 0, 0
		for j := 1; j < base && j*weight < n; j++ {
			count := withDigit(n, weight, base, j)
			messages++
			largest = max(largest, count)
			if count > 1 {
				copied += float64(count) // packed
			}
		}
		if n-1 == weight && weight > 1 && messages < m.Ports {
			continue // one block, not sent before: it is sent together with the first round
		}
		t += m.together(messages, float64(largest)*each) * m.everyPair(float64(largest)*each)
		if weight*base < n {
			copied += float64(weight * (base - 1)) // at their destination, and unpacked
		}
	}
	return m.atLeast(t + m.Copy*copied*each)
}

// withDigit counts the numbers below n whose digit of this weight is j.
func withDigit(n, weight, base, j int) int {
	cycle := weight * base
	return n/cycle*weight + min(max(n%cycle-j*weight, 0), weight)
}

// exchangeAlltoall: the first ranks of the groups of a fold exchange, digit by digit of
// the groups' numbers, all blocks for the groups that have the partner's digit. It
// begins with the highest digit: the blocks for a partner are then contiguous in In and
// later in long runs. The other ranks of a group send all their blocks to the first
// before, and receive theirs after: the correction steps of T2 3.4.3.
func exchangeAlltoall(b *sched.Builder, s *Shape, params []int) {
	base := params[0] + 1
	f := newFold(s.Size, base)
	g := f.group(s.Rank)
	lead, end := f.first(g), f.first(g+1)
	each := s.Recv.Each
	if s.Rank != lead {
		in, out := s.sentTo(0), s.outBlock(0)
		in.Len, out.Len = s.Size*each, s.Size*each
		sent := sendSome(b, lead, in)
		if !s.InPlace {
			sent = sched.None
		}
		b.Step(1 + log(f.groups, base))
		recvSome(b, lead, out, sent)
		return
	}
	h := hold{f: f, g: g, lo: 0, hi: s.Size, weight: f.groups}
	for m := lead; m < end; m++ {
		from, by := s.sentTo(0), sched.None
		if m != lead {
			from = b.Tmp(s.Size * each)
			by = recvSome(b, m, from)
		}
		for d := range s.Size {
			h.at = append(h.at, piece{from.At(d*each, each), by})
		}
	}
	var readers []sched.ID // of the input
	step := 0
	if f.others() > 0 {
		step++
	}
	for h.weight > 1 {
		b.Step(step)
		step++
		readers = append(readers, h.exchange(b, base, each)...)
	}
	b.Step(step)
	for m := lead + 1; m < end; m++ {
		readers = append(readers, sendPieces(b, m, h.column(m))...)
	}
	if !s.InPlace {
		readers = nil
	}
	// Out is free once the input has been read.
	free := b.Join(readers...)
	m := mover{b: b}
	for src, p := range h.column(lead) {
		m.copy(s.outBlock(src), p.at, p.by, free)
	}
	m.flush()
}

// hold is the blocks that a group's first rank holds: those for ranks lo to hi-1 from
// the ranks of all groups whose number equals its own modulo weight, sorted by source
// and then by destination.
type hold struct {
	f              fold
	g              int
	lo, hi, weight int
	at             []piece
}

// exchange performs the round of the digit below the weight. It returns the operations
// that read the input.
func (h *hold) exchange(b *sched.Builder, base, each int) (readers []sched.ID) {
	weight := h.weight / base
	digit := h.g / weight % base
	first := h.g - h.g%h.weight
	part := func(c int) (lo, hi int) { // the ranks of groups with this digit
		return h.f.first(first + c*weight), h.f.first(first + (c+1)*weight)
	}
	lo, hi := part(digit)
	arrived := make([][]piece, base) // by the digit of the sender
	for j := 1; j < base; j++ {
		to := (digit + j) % base
		read := sendPieces(b, h.f.first(h.g+(to-digit)*weight), h.columns(part(to)))
		readers = append(readers, read...)
	}
	for j := 1; j < base; j++ {
		from := wrap(digit-j, base)
		peer := h.g + (from-digit)*weight
		count := h.f.sources(peer, h.weight) * (hi - lo)
		area := b.Tmp(count * each)
		by := recvSome(b, h.f.first(peer), area)
		for i := range count {
			arrived[from] = append(arrived[from], piece{area.At(i*each, each), by})
		}
	}
	arrived[digit] = h.columns(lo, hi)
	// Sort by source: the groups that are equal modulo the smaller weight, which come
	// from each digit in turn.
	h.at, h.lo, h.hi, h.weight = h.at[:0:0], lo, hi, weight
	for u := h.g % weight; u < h.f.groups; u += weight {
		c := u / weight % base
		n := (h.f.first(u+1) - h.f.first(u)) * (hi - lo)
		h.at = append(h.at, arrived[c][:n]...)
		arrived[c] = arrived[c][n:]
	}
	return readers
}

// columns returns the blocks for destinations lo to hi-1.
func (h *hold) columns(lo, hi int) []piece {
	var cut []piece
	for row := 0; row < len(h.at); row += h.hi - h.lo {
		cut = append(cut, h.at[row+lo-h.lo:row+hi-h.lo]...)
	}
	return cut
}

func (h *hold) column(rank int) []piece { return h.columns(rank, rank+1) }

// sources counts the ranks of the groups that are equal to one modulo a weight.
func (f fold) sources(group, weight int) int {
	n := 0
	for u := group % weight; u < f.groups; u += weight {
		n += f.first(u+1) - f.first(u)
	}
	return n
}

func exchangeAlltoallCost(s *Shape, m *Model, params []int) float64 {
	k := params[0]
	f := newFold(s.Size, k+1)
	each := float64(s.blockBytes())
	group := float64(s.Size) / float64(f.groups)
	all := float64(s.Size) * each
	t := 2 * m.together(f.others(), all)
	copied := all * group
	for weight := f.groups; weight > 1; weight /= k + 1 {
		t += m.together(k, group*all/float64(k+1))
		if weight < f.groups || f.others() > 0 {
			copied += group * all * float64(k) / float64(k+1)
		}
	}
	return m.atLeast(t + m.Copy*copied)
}
