package coll

import (
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// Gathers (MPI-4.1 section 6.5). The trees collect blocks in scratch, counted from the
// root, and need equal blocks: if lengths differ, only the root knows them, so ranks
// send to it directly.

func gatherAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Gather, Name: "binomial", Ref: "Johnsson, Ho 1989",
			About: "Blocks are collected up a binomial tree.",
			Needs: Needs{Regular: true},
			Cost:  func(s *Shape, m *Model, _ []int) float64 { return spanningTreeCost(s, m, 1) },
			Build: func(b *sched.Builder, s *Shape, _ []int) { treeGather(b, s, 1) },
		},
		{
			Kind: Gather, Name: "tree", Ref: "T2 3.4.2, equation 3.1",
			About:  "Blocks are collected up a (k+1)-ary spanning tree, with k messages at a time: for short blocks.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(3, 2, 7, 15)},
			Cost:   func(s *Shape, m *Model, p []int) float64 { return spanningTreeCost(s, m, p[0]) },
			Build:  func(b *sched.Builder, s *Shape, p []int) { treeGather(b, s, p[0]) },
		},
		{
			Kind: Gather, Name: "linear", Ref: "MPI-4.1 section 6.5",
			About: "All ranks send to the root at once.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return m.atLeast(m.fanIn(s.Size-1, s.Size, float64(s.blockBytes())))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { directGather(b, s, s.Size) }, Ops: perRank,
		},
		{
			Kind: Gather, Name: "direct", Ref: "T2 3.4.2, equation 3.2",
			About:  "The root receives from k ranks at a time: for long blocks.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return m.atLeast(m.fanIn(s.Size-1, p[0], float64(s.blockBytes())))
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { directGather(b, s, p[0]) }, Ops: perRank,
		},
	}
}

// spanningTreeCost returns T2 equation 3.1 for any number of ranks and ports, plus the
// copy that a rank other than the root makes of its own block.
func spanningTreeCost(s *Shape, m *Model, k int) float64 {
	each, ports, cables := float64(s.blockBytes()), *m, 1
	if m.Cable > 0 && m.Stripe > 0 { // messages share the root's processor; striped ones share all cables
		ports.Ports, cables = 1, m.Ports
	}
	return m.atLeast(m.Copy*each + spreadCost(s.Size, &ports, k+1, 0, func(below int) float64 {
		bytes := float64(min(below, s.Size-below)) * each
		return m.startup(bytes) + bytes*m.perByte(cables)
	}))
}

// rootRuns calls give with the contiguous runs at the root of the blocks of count ranks
// from first, counted from the root: one run, or two if the ranks wrap around.
func (s *Shape) rootRuns(first, count int, give func(rank, count int)) {
	rank := wrap(first+s.Root, s.Size)
	if over := rank + count - s.Size; over > 0 {
		give(rank, count-over)
		give(0, over)
		return
	}
	give(rank, count)
}

// treeGather: a rank receives the blocks of its children's subtrees, in order after its
// own block, and sends them to its parent as one message. To the root that is two
// messages if the blocks are not contiguous there.
func treeGather(b *sched.Builder, s *Shape, k int) {
	f := &flow{Builder: b}
	n, each := s.Size, s.Recv.Each
	rank := wrap(s.Rank-s.Root, n)
	t, ok := knomial(b, rank, n, k+1)
	if !ok {
		return
	}
	steps := log(n, k+1)
	up := func(step int) { b.Step(steps - 1 - step) }
	if rank == 0 {
		for i := len(t.children) - 1; i >= 0; i-- {
			c := t.children[i]
			up(c.step)
			s.rootRuns(c.rank, c.span, func(from, count int) {
				f.recv(wrap(c.rank+s.Root, n), sched.Span{Buf: sched.Out, Off: from * each, Len: count * each})
			})
		}
		f.copy(s.outBlock(s.Rank), s.ownInput())
		return
	}
	have := s.ownInput()
	if len(t.children) > 0 {
		have = b.Tmp(t.span * each)
		for i := len(t.children) - 1; i >= 0; i-- {
			c := t.children[i]
			up(c.step)
			f.recv(wrap(c.rank+s.Root, n), have.At((c.rank-rank)*each, c.span*each))
		}
		b.Step(0)
		f.copy(have.At(0, each), s.ownInput())
	}
	up(t.step)
	if t.parent > 0 {
		f.send(wrap(t.parent+s.Root, n), have)
		return
	}
	at := 0
	s.rootRuns(rank, t.span, func(_, count int) {
		f.send(s.Root, have.At(at, count*each))
		at += count * each
	})
}

// farFirst returns the ranks other than the root, from the one above it on: first those on
// other nodes, so that the network is busy while the root copies the data of its node.
func (s *Shape) farFirst() []int {
	others := make([]int, 0, s.Size-1)
	for i := 1; i < s.Size; i++ {
		others = append(others, wrap(s.Root+i, s.Size))
	}
	if s.Nodes != nil {
		near := func(rank int) bool { return s.Nodes.NodeOf(rank) == s.Nodes.NodeOf(s.Root) }
		slices.SortStableFunc(others, func(x, y int) int {
			switch {
			case near(x) == near(y):
				return 0
			case near(y):
				return -1
			}
			return 1
		})
	}
	return others
}

// directGather posts at most k receives at a time.
func directGather(b *sched.Builder, s *Shape, k int) {
	if k < 1 {
		b.Fail("gather: %d ports; there must be at least one", k)
		return
	}
	others := s.farFirst()
	if s.Rank != s.Root {
		b.Step(slices.Index(others, s.Rank) / k)
		sendSome(b, s.Root, s.ownInput())
		return
	}
	var receives []sched.ID
	for i, from := range others {
		b.Step(i / k)
		if id := recvSome(b, from, s.outBlock(from), kthLast(receives, k)); id != sched.None {
			receives = append(receives, id)
		}
	}
	b.Step(0)
	b.Copy(s.outBlock(s.Rank), s.ownInput())
}
