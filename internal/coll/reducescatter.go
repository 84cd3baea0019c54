package coll

import "github.com/muster-mpi/muster/internal/sched"

// Reduce-scatter (MPI-4.1 section 6.10): every rank gets one block of the result. All
// ranks know all blocks, which may differ in length and need not be contiguous.

func reduceScatterAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: ReduceScatter, Name: "circulant", Ref: "Träff 2024, Optimal, non-pipelined reduce-scatter and allreduce algorithms",
			About: "Halves of the blocks are forwarded, at distances that fit any number of ranks.",
			Far:   circulantFar,
			Needs: Needs{Commutes: true},
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				all, largest := s.shares()
				return m.atLeast(circulantCost(s.Size, all, m) + m.Copy*largest)
			},
			Build: circulantReduceScatter,
		},
		{
			Kind: ReduceScatter, Name: "recursive-halving", Ref: "Thakur, Rabenseifner, Gropp 2005",
			About: "Ranks far apart exchange and reduce halves of the blocks, then nearer ones quarters, and so on.",
			Needs: Needs{Commutes: true},
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				all, largest := s.shares()
				whole := Shape{Size: s.Size, Bytes: int(all)}
				halving, extra := halvingCost(&whole, m), foldedCost(&whole, m, false)
				if power(s.Size) != s.Size {
					extra += m.together(1, largest)
				}
				if m.TimeSlices { // the messages of all ranks count: a power of two takes part, the rest goes through them
					share := float64(power(s.Size)) / float64(s.Size)
					halving, extra = halving*share, extra*(1-share)
				}
				return m.atLeast(halving + extra)
			},
			Build: halvingReduceScatter,
		},
		{
			Kind: ReduceScatter, Name: "pairwise", Ref: "Thakur, Rabenseifner, Gropp 2005",
			About: "In step i every rank sends the rank i above its block and reduces the one received from i below: for long blocks, and in order.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				_, largest := s.shares()
				if s.Size == 1 {
					return m.atLeast(0)
				}
				message, reduce := m.together(1, largest), m.Reduce*largest
				next := max(message/float64(min(2, max(m.Ports, 1))), reduce)
				steps := float64(s.Size - 2)
				if m.TimeSlices { // the messages of all ranks count, and empty blocks are not sent
					steps *= float64(s.blocksWithData()) / float64(s.Size)
				}
				return message + reduce + steps*next
			},
			Build: pairwiseReduceScatter, Ops: perRank,
		},
		{
			Kind: ReduceScatter, Name: "ring", Ref: "Patarasuk, Yuan 2009",
			About: "Every block travels around a ring and is reduced on its way.",
			Needs: Needs{Commutes: true},
			Along: true,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				_, largest := s.shares()
				return m.atLeast(float64(s.Size-1) * (m.together(1, largest) + m.Reduce*largest))
			},
			Build: ringReduceScatter, Ops: perRank,
		},
	}
}

// shares returns the bytes of all blocks and of the largest.
func (s *Shape) shares() (all, largest float64) {
	if s.Send.Lens == nil {
		return float64(s.Size * s.Send.Each), float64(s.Send.Each)
	}
	for i := range s.Size {
		_, n := s.Send.Block(i)
		all, largest = all+float64(n), max(largest, float64(n))
	}
	return all, largest
}

// blocksWithData returns the number of blocks that are not empty.
func (s *Shape) blocksWithData() (n int) {
	for i := range s.Size {
		if _, bytes := s.Send.Block(i); bytes > 0 {
			n++
		}
	}
	return n
}

// reduceResult returns the span of the result: at the beginning of Out, also in place.
func (s *Shape) reduceResult() sched.Span {
	_, n := s.Send.Block(s.Rank)
	return sched.Span{Buf: sched.Out, Len: n}
}

// shareRuns calls give with the contiguous runs of the blocks of count ranks from first,
// around the ring.
func (s *Shape) shareRuns(first, count int, give func(sched.Span)) {
	run := sched.Span{}
	for i := range count {
		next := s.share(wrap(first+i, s.Size))
		switch {
		case next.Len == 0:
		case run.Len > 0 && follows(run, next):
			run.Len += next.Len
		default:
			if run.Len > 0 {
				give(run)
			}
			run = next
		}
	}
	if run.Len > 0 {
		give(run)
	}
}

// reduceLast receives the last missing value and leaves the result in its final span. In
// place that span still holds input; the flow waits for its readers.
func (s *Shape) reduceLast(f *flow, peer int, mine sched.Span) {
	if !s.InPlace {
		f.recv(peer, s.reduceResult())
		f.reduce(s.reduceResult(), mine)
		return
	}
	other := f.Tmp(mine.Len)
	f.recv(peer, other)
	f.reduce(other, mine)
	f.copy(s.reduceResult(), other)
}

// inOrder returns the input with all blocks contiguous in rank order, and their offsets:
// the input itself if possible, otherwise a copy.
func (s *Shape) inOrder(f *flow) (all sched.Span, at []int) {
	at = make([]int, s.Size+1)
	for i := range s.Size {
		at[i+1] = at[i] + s.share(i).Len
	}
	pieces := 0
	s.shareRuns(0, s.Size, func(run sched.Span) { all = run; pieces++ })
	if pieces <= 1 {
		all.Len = at[s.Size]
		return all, at
	}
	all = f.Tmp(at[s.Size])
	off := 0
	s.shareRuns(0, s.Size, func(run sched.Span) {
		f.copy(all.At(off, run.Len), run)
		off += run.Len
	})
	return all, at
}

// halvingReduceScatter halves by blocks. Distant ranks are partners first, so that each
// ends with the blocks of its index; a rank that did not take part receives its block
// from its partner.
func halvingReduceScatter(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	d := newFolding(s.Size, -1)
	index, partner, active := d.index(s.Rank), d.partner(s.Rank), power(s.Size)
	last := 1 + log(active, 2)
	all, at := s.inOrder(f)
	if d.at(index) != s.Rank {
		f.send(partner, all)
		b.Step(last)
		f.recv(partner, s.reduceResult())
		return
	}
	step := 0
	have, fixed := all, all.Buf != sched.Tmp // the value, and whether it must not be overwritten because it is the input
	meet := func(peer, off, n int) {
		if !fixed {
			combineInto(f, peer, have.At(off, n), have.At(off, n))
			return
		}
		// Scratch for this range only: the rest is not needed any more.
		have, fixed = f.combineAway(peer, have.At(off, n)).At(-off, all.Len), false
	}
	if d.extra > 0 {
		if partner >= 0 {
			meet(partner, 0, all.Len)
		}
		step++
	}
	from, to := 0, active
	for distance := active / 2; distance > 0; distance /= 2 {
		b.Step(step)
		step++
		middle := from + distance
		keep, end, give, stop := from, middle, middle, to
		if index&distance != 0 {
			keep, end, give, stop = give, stop, keep, end
		}
		first, beyond := at[d.at(keep)], at[d.at(end)]
		peer := d.at(index ^ distance)
		f.send(peer, have.At(at[d.at(give)], at[d.at(stop)]-at[d.at(give)]))
		if distance == 1 && partner < 0 {
			s.reduceLast(f, peer, have.At(first, beyond-first))
			return
		}
		meet(peer, first, beyond-first)
		from, to = keep, end
	}
	f.copy(s.reduceResult(), have.At(at[s.Rank], at[s.Rank+1]-at[s.Rank]))
	if partner >= 0 {
		b.Step(last)
		f.send(partner, have.At(at[partner], at[partner+1]-at[partner]))
	}
}

// combineAway receives a value that commutes with own into scratch and combines
// both there.
func (f *flow) combineAway(peer int, own sched.Span) sched.Span {
	to := f.Tmp(own.Len)
	combineInto(f, peer, to, own)
	return to
}

// pairwiseReduceScatter combines the lower ranks from near to far, each on the left of
// the value, and then the higher ranks from far to near into a second value in the same
// way. Operands thus stay in order, with scratch for a few blocks.
func pairwiseReduceScatter(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	n, own := s.Size, s.share(s.Rank)
	end := s.reduceResult()
	if s.InPlace {
		end = b.Tmp(end.Len) // the final span holds input until the last step
	}
	scratch := &room{f: f, most: 4 * own.Len}
	take := func(peer int, into sched.Span) {
		other := scratch.get(own.Len, into)
		f.recv(peer, other)
		f.reduce(into, other)
	}
	lower := own // the value of the ranks up to this one
	began := false
	var sends []sched.ID
	for i := 1; i < n; i++ {
		b.Step(i - 1)
		to, from := wrap(s.Rank+i, n), wrap(s.Rank-i, n)
		if id := f.send(to, s.share(to), kthLast(sends, 2)); id != sched.None { // at most two under way
			sends = append(sends, id)
		}
		switch {
		case s.Commutes && i == 1:
			combineInto(f, from, end, own)
			began = true
		case s.Commutes:
			take(from, end)
		case from < s.Rank:
			if i == 1 {
				lower = end
				if s.Rank < n-1 {
					lower = b.Tmp(own.Len)
				}
				f.copy(lower, own)
			}
			take(from, lower)
			began = began || lower == end
		case from == n-1:
			f.recv(from, end)
		default:
			take(from, end)
		}
	}
	switch {
	case n == 1:
		f.copy(end, own)
	case !began:
		f.reduce(end, lower)
	}
	f.copy(s.reduceResult(), end)
}

// ringReduceScatter: a block starts at the rank above its destination and is reduced at
// every rank of the ring until it reaches its destination.
func ringReduceScatter(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	n := s.Size
	if n == 1 {
		f.copy(s.reduceResult(), s.share(0))
		return
	}
	next, before := wrap(s.Rank+1, n), wrap(s.Rank-1, n)
	_, largest := s.shares()
	scratch := &room{f: f, most: 4 * int(largest)}
	have := s.share(before)
	for i := range n - 1 {
		b.Step(i)
		f.send(next, have)
		own := s.share(wrap(s.Rank-2-i, n))
		if i == n-2 {
			s.reduceLast(f, before, own)
			return
		}
		to := scratch.get(int(largest), have).At(0, own.Len)
		combineInto(f, before, to, own)
		have = to
	}
}
