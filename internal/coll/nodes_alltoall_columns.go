package coll

import "github.com/muster-mpi/muster/internal/sched"

// Alltoall by columns: a rank sends all its blocks for another node as one message to
// the rank in its column there, which hands each block on to its destination as soon as
// the message has arrived. Every rank of a node is a carrier (nodes_alltoall.go), so
// nothing is collected before it is sent, and blocks leave a node from where they are.
// With blocks of different lengths a rank needs those that it hands on
// (nodes_alltoall_lengths.go).

func nodesAlltoallColumnsAlgorithms() []Algorithm {
	return []Algorithm{{
		Kind: Alltoall, Name: "node-columns", Ref: "T2 4.5; Träff, Hunold 2020",
		About: "Each rank sends its blocks for another node as one message to the rank in its column there, which hands them on as they arrive: for blocks of medium length.",
		Needs: Needs{Nodes: true, Lengths: true},
		Cost:  columnsAlltoallCost,
		Ops:   perRank,
		Build: func(b *sched.Builder, s *Shape, _ []int) { columnsAlltoall(b, s) },
	}}
}

// inColumn returns the rank of a node that receives the message of a rank of another
// node.
func (t *Topology) inColumn(node, from int) int {
	ranks := t.RanksOf(node)
	return ranks[t.LocalRankOf(from)%len(ranks)]
}

func columnsAlltoall(b *sched.Builder, s *Shape) {
	f, t := &flow{Builder: b}, s.Nodes
	node := t.NodeOf(s.Rank)
	local, nodes := t.RanksOf(node), t.Nodes()
	for i := 1; i < nodes; i++ {
		n := wrap(node+i, nodes)
		f.sendAll(t.inColumn(n, s.Rank), spansOf(t.RanksOf(n), s.sentTo))
	}
	(&carried{f: f, s: s, t: t, node: node}).exchangeInside()
	taken := 0 // messages to hand on
	for i := 1; i < nodes; i++ {
		n := wrap(node-i, nodes)
		for _, from := range t.RanksOf(n) {
			b.Stream(0)
			b.Step(0)
			carrier := t.inColumn(node, from)
			if carrier != s.Rank {
				b.Stream(handOn(n)) // a late node does not delay the others (T2 6.4.5)
				b.Step(1)
				f.recv(carrier, s.outBlock(from))
				continue
			}
			blocks, bytes := s.carriedBlocks(taken, len(local))
			taken++
			came := f.Tmp(bytes)
			f.recv(from, came)
			b.Stream(handOn(n))
			b.Step(1)
			for j := 1; j < len(local); j++ {
				q := wrap(t.LocalRankOf(s.Rank)+j, len(local))
				f.send(local[q], came.At(blocks.Block(q)))
			}
			f.copy(s.outBlock(from), came.At(blocks.Block(t.LocalRankOf(s.Rank))))
		}
	}
	b.Stream(0)
}

// carriedBlocks returns the blocks for the ranks of this node in the message of rank i of
// CarriedFrom, and the length of the message.
func (s *Shape) carriedBlocks(i, local int) (blocks Blocks, bytes int) {
	if !s.Recv.irregular() {
		return Blocks{Each: s.Recv.Each}, local * s.Recv.Each
	}
	return s.Carried[i], sum(s.Carried[i].Lens)
}

func columnsAlltoallCost(s *Shape, m *Model, _ []int) float64 {
	each, most, nodes := float64(s.blockBytes()), s.Nodes.most, s.nodeCount()
	far, near := m.amongNodes(most, 1), m.inNode()
	message := each * float64(most)
	handed := (nodes - 1) * (most - 1)
	inside := near.together(handed+most-1, each)
	if m.TimeSlices { // one rank of a core after the other, each sends and receives when it runs
		inside *= float64(most)
	} else {
		inside *= 2 // a rank receives as many as it sends
	}
	return m.atLeast(far.together(nodes-1, message)*far.crush(nodes-1, message) + inside + 2*m.Copy*each*float64(nodes))
}
