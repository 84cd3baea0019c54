package coll

import "github.com/muster-mpi/muster/internal/sched"

// Node-aware reductions: the values of a node are combined within it, and one value per
// node is sent. The ranks of a node need not be consecutive, so operands are not
// combined in rank order: the operation must commute.

func nodesReduceAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Reduce, Name: "node-tree", Ref: "T2 4.4, 4.5; Thakur, Rabenseifner, Gropp 2005",
			About: "Each node combines its values down a tree, and one rank of each node takes part in a tree to the root.",
			Needs: Needs{Nodes: true, Commutes: true},
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return m.atLeast(nodesReduceCost(s, m))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) {
				f, of := &flow{Builder: b}, newParts(s, s.Root)
				sub := of.inNode(b, s, 0)
				x := reduceTreeFrom(f, sub, sub.Root, s.data(), s.Rank != s.Root)
				if !of.isLeader() {
					return
				}
				sub = of.betweenNodes(b, s, log(s.Nodes.most, 2))
				x = reduceTreeFrom(f, sub, sub.Root, x.acc, s.Rank != s.Root)
				if s.Rank == s.Root {
					x.finish(0, s.Bytes)
				}
			},
		},
		{
			Kind: Allreduce, Name: "node-doubling", Ref: "T2 4.4, 4.5; Thakur, Rabenseifner, Gropp 2005",
			About: "Each node combines its values at its leader, the leaders exchange theirs at distance 1, 2, 4 …, and each node gets the result from its leader.",
			Needs: Needs{Nodes: true, Commutes: true},
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				leaders := Shape{Size: s.nodeCount(), Bytes: s.Bytes}
				n := float64(s.Bytes)
				return m.atLeast(insideAllreduceCost(s, m) + foldedCost(&leaders, m, true) +
					float64(log(power(leaders.Size), 2))*(m.together(1, n)+m.Reduce*n))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) {
				nodesAllreduce(b, s, 2+log(s.nodeCount(), 2), doublingAllreduce)
			},
		},
		{
			Kind: Allreduce, Name: "node-circulant", Ref: "T2 4.4, 4.5; Träff 2024",
			About: "Each node combines its values at its leader, the leaders exchange ever smaller parts and collect them again, and each node gets the result from its leader: for long data.",
			Needs: Needs{Nodes: true, Commutes: true},
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				n, bytes := float64(s.nodeCount()), float64(s.Bytes)
				return m.atLeast(insideAllreduceCost(s, m) + 2*circulantCost(s.nodeCount(), bytes, m) - (n-1)/n*bytes*m.Reduce)
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) {
				nodesAllreduce(b, s, 2*log(s.nodeCount(), 2), circulantAllreduce)
			},
		},
	}
}

// nodesAllreduce uses an in-place allreduce of the given number of steps among the
// leaders.
func nodesAllreduce(b *sched.Builder, s *Shape, steps int, leaders func(f *flow, s *Shape)) {
	f, of := &flow{Builder: b}, newParts(s, -1)
	inside := log(s.Nodes.most, 2)
	sub := of.inNode(b, s, 0)
	x := reduceTreeFrom(f, sub, sub.Root, s.data(), !of.isLeader())
	if of.isLeader() {
		x.finish(0, s.Bytes)
		sub = of.betweenNodes(b, s, inside)
		sub.InPlace = true
		leaders(f, sub)
	}
	treeBcast(f, of.inNode(b, s, inside+steps), 2)
}

func insideAllreduceCost(s *Shape, m *Model) float64 {
	near := m.inNode()
	local := Shape{Size: s.Nodes.most, Bytes: s.Bytes}
	return reduceTreeCost(&local, &near) + knomialCost(local.Size, &near, 2, float64(s.Bytes))
}

func nodesReduceCost(s *Shape, m *Model) float64 {
	near := m.inNode()
	local, leaders := Shape{Size: s.Nodes.most, Bytes: s.Bytes}, Shape{Size: s.nodeCount(), Bytes: s.Bytes}
	return reduceTreeCost(&local, &near) + reduceTreeCost(&leaders, m)
}
