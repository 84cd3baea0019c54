package coll

import "github.com/muster-mpi/muster/internal/sched"

// Node-aware barriers and broadcasts.

func nodesSpreadAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Barrier, Name: "node-dissemination", Ref: "T2 4.4, with no data",
			About:  "The ranks of each node notify its leader, the leaders disseminate with k messages a round, and each releases its node.",
			Needs:  Needs{Nodes: true},
			Params: []Param{portsParam(3, 1, 2, 7)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				near := m.inNode()
				leaders := Shape{Size: s.nodeCount()}
				return m.atLeast(2*near.together(s.Nodes.most-1, 0) + disseminationCost(&leaders, m, p[0]))
			},
			Build: nodesBarrier,
		},
		{
			Kind: Bcast, Name: "node-knomial", Ref: "T2 4.4, 5.5.1",
			About:  "The root sends the data down a tree of one rank of each node, and each of them down a tree of its node.",
			Needs:  Needs{Nodes: true},
			Params: []Param{radixParam(4, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				near, n := m.inNode(), float64(s.Bytes)
				return m.atLeast(knomialCost(s.nodeCount(), m, p[0], n) + knomialCost(s.Nodes.most, &near, p[0], n))
			},
			Build: func(b *sched.Builder, s *Shape, p []int) {
				f, of := &flow{Builder: b}, newParts(s, s.Root)
				if of.isLeader() {
					treeBcast(f, of.betweenNodes(b, s, 0), p[0])
				}
				treeBcast(f, of.inNode(b, s, log(s.nodeCount(), p[0])), p[0])
			},
		},
		{
			Kind: Bcast, Name: "node-chain", Ref: "Watts, van de Geijn 1995; T2 4.4",
			About:  "Segments are pipelined along a chain of one rank of each node, and along a chain within each node.",
			Needs:  Needs{Nodes: true},
			Params: []Param{segmentParam(64<<10, 16<<10, 32<<10, 128<<10)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				k := segments(s.Bytes, s.Elem, p[0])
				near := m.inNode()
				each := float64(s.Bytes) / float64(k)
				inside := float64(s.Nodes.most-1) * near.together(1, each)
				return m.atLeast(pipelineCost(s, m, s.nodeCount()-1, k, 0) + inside)
			},
			Build: func(b *sched.Builder, s *Shape, p []int) {
				f, of := &flow{Builder: b}, newParts(s, s.Root)
				if of.isLeader() {
					chainBcast(f, of.betweenNodes(b, s, 0), p[0])
				}
				// The chain within the node begins one step after that of its leader.
				chainBcast(f, of.inNode(b, s, wrap(of.node-s.Nodes.NodeOf(s.Root), s.nodeCount())), p[0])
			},
		},
	}
}

// nodesBarrier: a leader notifies other nodes when all ranks of its node have entered,
// and releases its node when all nodes have notified it.
func nodesBarrier(b *sched.Builder, s *Shape, params []int) {
	none := sched.Span{Buf: sched.Tmp}
	of := newParts(s, -1)
	b.Restrict(of.local, 0)
	last := 1 + log(s.nodeCount(), params[0]+1)
	if !of.isLeader() {
		b.Send(of.leader, none)
		b.Step(last)
		b.Recv(of.leader, none)
		return
	}
	var heard []sched.ID
	for q := range of.local {
		if q != of.localRank {
			heard = append(heard, b.Recv(q, none))
		}
	}
	heard = disseminate(b, of.betweenNodes(b, s, 1), params[0], heard)
	b.Restrict(of.local, last)
	for q := range of.local {
		if q != of.localRank {
			b.Send(q, none, heard...)
		}
	}
}
