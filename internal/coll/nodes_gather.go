package coll

import "github.com/muster-mpi/muster/internal/sched"

// Node-aware gathers and scatters: a node's blocks are sent as one message. They need
// equal blocks: if lengths differ, only the root knows them.

func nodesGatherAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Gather, Name: "node-direct", Ref: "T2 3.4.2, 4.4.1 (phases 1 and 2)",
			About:  "Each node gathers its blocks at one rank, and the root receives them from k nodes at a time.",
			Needs:  Needs{Nodes: true, Regular: true},
			Params: []Param{portsParam(16, 1, 2, 4)},
			Cost:   nodesGatherCost,
			Build:  nodesGather,
		},
		{
			Kind: Scatter, Name: "node-direct", Ref: "T2 3.4.2, the other way round",
			About:  "The root sends the blocks of k nodes at a time to one rank of each, which distributes them.",
			Needs:  Needs{Nodes: true, Regular: true},
			Params: []Param{portsParam(16, 1, 2, 4)},
			Cost:   nodesGatherCost,
			Build:  nodesScatter,
		},
	}
}

func nodesGatherCost(s *Shape, m *Model, p []int) float64 {
	each, most := float64(s.blockBytes()), s.Nodes.most
	near := m.inNode()
	copied := each // of the leader
	if !s.Nodes.inOrder() {
		copied += each * float64(s.Size)
	}
	second := 0.0
	if m.TimeSlices && m.Cable > 0 && s.Kind == Gather { // the senders' work begins when the leaders have all blocks, and is not overlapped
		second = 2 * m.PerByte * each * float64(most)
	}
	return m.atLeast(second + near.together(most-1, each) + m.window(s.nodeCount()-1, p[0], each*float64(most)) + m.Copy*copied)
}

// nodesGather: the root receives the blocks of its own node at their final offsets.
func nodesGather(b *sched.Builder, s *Shape, params []int) {
	f, of := &flow{Builder: b}, newParts(s, s.Root)
	b.Restrict(of.local, 0)
	if !of.isLeader() {
		f.send(of.leader, s.ownInput())
		return
	}
	block := s.outBlock
	if s.Rank != s.Root {
		all := b.Tmp(len(of.local) * s.Recv.Each)
		block = func(rank int) sched.Span { return all.At(s.Nodes.LocalRankOf(rank)*s.Recv.Each, s.Recv.Each) }
	}
	for q, rank := range of.local {
		if q != of.localRank {
			f.recv(q, block(rank))
		}
	}
	f.copy(block(s.Rank), s.ownInput())
	b.Restrict(nil, 1)
	if s.Rank != s.Root {
		f.sendAll(s.Root, spansOf(of.local, block))
		return
	}
	var receives []sched.ID
	for i := 1; i < s.nodeCount(); i++ {
		n := wrap(of.node+i, s.nodeCount())
		b.Step((i - 1) / params[0])
		receives = append(receives, f.recvAll(of.leaderOf(n), spansOf(s.Nodes.RanksOf(n), s.outBlock), kthLast(receives, params[0])))
	}
}

// nodesScatter: the root sends the blocks of its own node directly from In.
func nodesScatter(b *sched.Builder, s *Shape, params []int) {
	f, of := &flow{Builder: b}, newParts(s, s.Root)
	out := sched.Span{Buf: sched.Out, Len: s.Send.Each}
	b.Restrict(nil, 0)
	var block func(rank int) sched.Span
	if s.Rank == s.Root {
		block = func(rank int) sched.Span { return sched.Span{Buf: sched.In, Off: rank * s.Send.Each, Len: s.Send.Each} }
		var sends []sched.ID
		for i := 1; i < s.nodeCount(); i++ {
			n := wrap(of.node+i, s.nodeCount())
			b.Step((i - 1) / params[0])
			sends = append(sends, f.sendAll(of.leaderOf(n), spansOf(s.Nodes.RanksOf(n), block), kthLast(sends, params[0])))
		}
	} else if of.isLeader() {
		all := b.Tmp(len(of.local) * s.Send.Each)
		block = func(rank int) sched.Span { return all.At(s.Nodes.LocalRankOf(rank)*s.Send.Each, s.Send.Each) }
		f.recv(s.Root, all)
	}
	b.Restrict(of.local, 1)
	if !of.isLeader() {
		f.recv(of.leader, out)
		return
	}
	for q, rank := range of.local {
		if q != of.localRank {
			f.send(q, block(rank))
		}
	}
	if !s.InPlace {
		f.copy(out, block(s.Rank))
	}
}

// spansOf returns the spans of some ranks' blocks.
func spansOf(ranks []int, block func(rank int) sched.Span) []sched.Span {
	spans := make([]sched.Span, len(ranks))
	for i, rank := range ranks {
		spans[i] = block(rank)
	}
	return spans
}
