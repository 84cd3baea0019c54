package coll

import (
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// Scatters (MPI-4.1 section 6.6): gathers in reverse. In place, the root's own block
// stays in In, and the root has no Out.

func scatterAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Scatter, Name: "binomial", Ref: "Johnsson, Ho 1989",
			About: "Blocks are sent down a binomial tree, each rank forwarding half of what it received.",
			Needs: Needs{Regular: true},
			Cost:  func(s *Shape, m *Model, _ []int) float64 { return spanningTreeCost(s, m, 1) },
			Build: func(b *sched.Builder, s *Shape, _ []int) { treeScatter(b, s, 1) },
		},
		{
			Kind: Scatter, Name: "tree", Ref: "T2 3.4.1, equation 3.1",
			About:  "Blocks are sent down a (k+1)-ary spanning tree, with k messages at a time: for short blocks.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(3, 2, 7, 15)},
			Cost:   func(s *Shape, m *Model, p []int) float64 { return spanningTreeCost(s, m, p[0]) },
			Build:  func(b *sched.Builder, s *Shape, p []int) { treeScatter(b, s, p[0]) },
		},
		{
			Kind: Scatter, Name: "linear", Ref: "MPI-4.1 section 6.6",
			About: "The root sends to all ranks at once.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return m.atLeast(m.window(s.Size-1, s.Size, float64(s.blockBytes())))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { directScatter(b, s, s.Size) }, Ops: perRank,
		},
		{
			Kind: Scatter, Name: "direct", Ref: "T2 3.4.1, equation 3.2",
			About:  "The root sends to k ranks at a time: for long blocks.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return m.atLeast(m.window(s.Size-1, p[0], float64(s.blockBytes())))
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { directScatter(b, s, p[0]) }, Ops: perRank,
		},
	}
}

// scatterBlock returns the root's block for a rank, in place or not.
func (s *Shape) scatterBlock(rank int) sched.Span {
	off, n := s.Send.Block(rank)
	return sched.Span{Buf: sched.In, Off: off, Len: n}
}

// scatterResult returns the span of the result.
func (s *Shape) scatterResult() sched.Span {
	_, n := s.Send.Block(s.Rank)
	return sched.Span{Buf: sched.Out, Len: n}
}

// keepOwn copies the root's own block to Out, unless the root is in place.
func (s *Shape) keepOwn(b *sched.Builder) {
	if !s.InPlace {
		b.Copy(s.scatterResult(), s.scatterBlock(s.Rank))
	}
}

// treeScatter: a rank receives the blocks of its subtree, its own first, and sends each
// child its share. The root sends two messages if a share is not contiguous in In.
func treeScatter(b *sched.Builder, s *Shape, k int) {
	f := &flow{Builder: b}
	n, each := s.Size, s.Send.Each
	rank := wrap(s.Rank-s.Root, n)
	t, ok := knomial(b, rank, n, k+1)
	if !ok {
		return
	}
	if rank == 0 {
		for _, c := range t.children {
			b.Step(c.step)
			s.rootRuns(c.rank, c.span, func(from, count int) {
				f.send(wrap(c.rank+s.Root, n), sched.Span{Buf: sched.In, Off: from * each, Len: count * each})
			})
		}
		s.keepOwn(b)
		return
	}
	have := s.scatterResult()
	if len(t.children) > 0 {
		have = b.Tmp(t.span * each)
	}
	b.Step(t.step)
	if t.parent > 0 {
		f.recv(wrap(t.parent+s.Root, n), have)
	} else {
		at := 0
		s.rootRuns(rank, t.span, func(_, count int) {
			f.recv(s.Root, have.At(at, count*each))
			at += count * each
		})
	}
	for _, c := range t.children {
		b.Step(c.step)
		f.send(wrap(c.rank+s.Root, n), have.At((c.rank-rank)*each, c.span*each))
	}
	f.copy(s.scatterResult(), have.At(0, each))
}

// directScatter has at most k sends under way at a time.
func directScatter(b *sched.Builder, s *Shape, k int) {
	if k < 1 {
		b.Fail("scatter: %d ports; there must be at least one", k)
		return
	}
	others := s.farFirst()
	if s.Rank != s.Root {
		b.Step(slices.Index(others, s.Rank) / k)
		recvSome(b, s.Root, s.scatterResult())
		return
	}
	var sends []sched.ID
	for i, to := range others {
		b.Step(i / k)
		if id := sendSome(b, to, s.scatterBlock(to), kthLast(sends, k)); id != sched.None {
			sends = append(sends, id)
		}
	}
	b.Step(0)
	s.keepOwn(b)
}
