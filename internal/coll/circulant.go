package coll

import "github.com/muster-mpi/muster/internal/sched"

// Träff's reduce-scatter and allreduce on a circulant graph: as few rounds as halving,
// ⌈log2 N⌉, for any number of ranks, with no idle rank and no byte sent twice. A rank
// counts blocks from its own, around the ring. While it is responsible for c blocks, it
// keeps the lower half, sends the upper half to the rank ⌈c/2⌉ above, and receives its
// own lower half from the rank ⌈c/2⌉ below. In the end it is responsible only for its
// own block. Operands are combined in ring order, so the operation must commute.

// circulantRounds returns the number of blocks before each round, and at the end: n,
// ⌈n/2⌉ … 1.
func circulantRounds(n int) (counts []int) {
	for ; n > 1; n = (n + 1) / 2 {
		counts = append(counts, n)
	}
	return append(counts, 1)
}

// circulantCost returns the cost of the reduce-scatter.
func circulantCost(n int, bytes float64, m *Model) float64 {
	return m.halves(n, bytes) + m.bytes(1, 1, bytes*float64(n-1)/float64(n)) + bytes*float64(n-1)/float64(n)*m.Reduce
}

func circulantAllreduce(f *flow, s *Shape) {
	circulantAmong(f, group{s.Rank, s.Size, s.Elem}, s.data(), s.result())
}

// circulantAmong works in out and keeps every block at its offset, so that the second
// phase needs no copies. A range of blocks that wraps around at the last rank is two
// messages.
func circulantAmong(f *flow, g group, own, out sched.Span) {
	n := g.size
	counts := circulantRounds(n)
	// each calls give with the contiguous ranges of count parts from first.
	each := func(first, count int, give func(i, j int)) {
		first = wrap(first, n)
		for count > 0 {
			here := min(count, n-first)
			give(first, first+here)
			first, count = 0, count-here
		}
	}
	if n == 1 {
		f.copy(out, own)
	}
	for i, have := range counts[:len(counts)-1] {
		f.Step(i)
		keep := counts[i+1]
		from := out
		if i == 0 {
			from = own
		}
		each(g.rank+keep, have-keep, func(i, j int) { f.send(wrap(g.rank+keep, n), g.span(from, i, j)) })
		each(g.rank, have-keep, func(i, j int) {
			combineInto(f, wrap(g.rank-keep, n), g.span(out, i, j), g.span(from, i, j))
		})
		if i == 0 { // an odd number: the middle block is not combined yet
			each(g.rank+have-keep, 2*keep-have, func(i, j int) { f.copy(g.span(out, i, j), g.span(own, i, j)) })
		}
	}
	for i := len(counts) - 2; i >= 0; i-- {
		f.Step(2*(len(counts)-1) - 1 - i)
		have, more := counts[i+1], counts[i]-counts[i+1]
		each(g.rank, more, func(i, j int) { f.send(wrap(g.rank-have, n), g.span(out, i, j)) })
		each(g.rank+have, more, func(i, j int) { f.recv(wrap(g.rank+have, n), g.span(out, i, j)) })
	}
}

// circulantReduceScatter keeps the blocks that a rank is responsible for contiguous in
// scratch. The first messages come from the input, where a range that wraps around at
// the last rank is two messages. They must not be split in any other way, because
// offsets may differ between ranks.
func circulantReduceScatter(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	n := s.Size
	if n == 1 {
		f.copy(s.reduceResult(), s.share(0))
		return
	}
	all, at := s.inOrder(f)
	blocks := func(i, j int) sched.Span { return all.At(at[i], at[j]-at[i]) }
	each := func(first, count int, give func(sched.Span)) {
		here := min(count, n-first)
		give(blocks(first, first+here))
		give(blocks(0, count-here))
	}
	counts := circulantRounds(n)
	begin := make([]int, counts[1]+1) // offsets in scratch of the blocks, from the own one
	for i := range counts[1] {
		block := wrap(s.Rank+i, n)
		begin[i+1] = begin[i] + blocks(block, block+1).Len
	}
	var have sched.Span
	if counts[1] > 1 {
		have = b.Tmp(begin[counts[1]])
	}
	mine := blocks(s.Rank, s.Rank+1) // the value of the own block so far
	for i, count := range counts[:len(counts)-2] {
		b.Step(i)
		keep := counts[i+1]
		up, down := wrap(s.Rank+keep, n), wrap(s.Rank-keep, n)
		if i > 0 {
			f.send(up, have.At(begin[keep], begin[count]-begin[keep]))
			combineInto(f, down, have.At(0, begin[count-keep]), have.At(0, begin[count-keep]))
			continue
		}
		each(up, count-keep, func(run sched.Span) { f.send(up, run) })
		off := 0
		each(s.Rank, count-keep, func(run sched.Span) {
			combineInto(f, down, have.At(off, run.Len), run)
			off += run.Len
		})
		for j := count - keep; j < keep; j++ { // an odd number: the middle block is not combined yet
			block := wrap(s.Rank+j, n)
			f.copy(have.At(begin[j], begin[j+1]-begin[j]), blocks(block, block+1))
		}
		mine = have.At(0, begin[1])
	}
	// The last round has one block in each direction, received at its final offset.
	b.Step(len(counts) - 2)
	up, down := wrap(s.Rank+1, n), wrap(s.Rank-1, n)
	if n == 2 {
		f.send(up, blocks(up, up+1))
	} else {
		f.send(up, have.At(begin[1], begin[2]-begin[1]))
	}
	s.reduceLast(f, down, mine)
}
