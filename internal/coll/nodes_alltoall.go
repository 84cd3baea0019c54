package coll

import "github.com/muster-mpi/muster/internal/sched"

// Node-aware alltoall: the blocks from the ranks of a node to those of another are sent
// as one message (T2 4.5 names it as the next step). A carrier is a leader that
// communicates with some of the other nodes.
//
//	phase 1   the ranks of a node send their blocks for another node to a carrier
//	phase 2   the carriers of two nodes exchange all blocks between the nodes
//	phase 3   the carriers distribute the blocks
//
// With one carrier per node all blocks pass through it, also those within the node, so
// that a rank sends and receives one message. With several, the other nodes are divided
// among them, and the ranks of a node exchange their own blocks directly.

func nodesAlltoallAlgorithms() []Algorithm {
	return []Algorithm{{
		Kind: Alltoall, Name: "node-carriers", Ref: "T2 4.4, 4.5, 5.5.2",
		About:  "Blocks between two nodes are sent as one message, packed and distributed by carriers, among which the other nodes are divided.",
		Needs:  Needs{Nodes: true, Regular: true},
		Params: []Param{{Name: "carriers", Values: []int{1, 2, 4}, About: "ranks of a node that communicate with other nodes"}},
		Cost:   carriersCost,
		Build:  carriersAlltoall,
		Plan:   carriersPlan,
		Ops:    func(s *Shape, p []int) int { return int(carriedBlocks(s, p)) },
	}}
}

func carriersCost(s *Shape, m *Model, params []int) float64 {
	each, most, nodes := float64(s.blockBytes()), s.Nodes.most, s.nodeCount()
	near := m.inNode()
	carriers := min(params[0], most)
	handled := (nodes - 1 + carriers - 1) / carriers
	given := each * float64(handled*most) // from one rank to one carrier
	t := 0.0
	if carriers == 1 {
		given = each * float64(s.Size)
	} else {
		t = near.together(most-1, each)
	}
	// A rank sends to all carriers, a carrier receives from all ranks.
	inside := near.together(max(most-1, carriers), given)
	bytes := each*float64(most*most*(nodes-1))*m.perByte(m.cables()) + 3*m.Copy*given*float64(most)
	if m.TimeSlices { // all of them, one after the other
		bytes *= 3 // a carrier has one core, while direct has all: measured with 16 ranks on two
		inside = near.together(carriers*(most-1), given)
		t *= float64(most)
	}
	between := m.together(handled, 0) + m.startup(each*float64(most*most)) - m.Startup
	return m.atLeast(t + 2*inside + between + bytes)
}

// carriersPlan estimates the time to plan the work of a carrier: for each block that passes
// through it the flow finds, and moves, the others. The constants are measured.
func carriersPlan(s *Shape, params []int) float64 {
	blocks := carriedBlocks(s, params)
	return 0.5e-6*blocks + 1e-9*blocks*blocks
}

// carriedBlocks returns the number of blocks that pass through a carrier, in and out.
func carriedBlocks(s *Shape, params []int) float64 {
	most := s.Nodes.most
	return 2 * float64(most*s.Size) / float64(min(params[0], most, s.nodeCount()-1))
}

// carried builds the alltoall of one rank.
type carried struct {
	f        *flow
	s        *Shape
	t        *Topology
	node     int
	carriers int // wanted on each node
}

func carriersAlltoall(b *sched.Builder, s *Shape, params []int) {
	c := &carried{f: &flow{Builder: b}, s: s, t: s.Nodes, node: s.Nodes.NodeOf(s.Rank), carriers: params[0]}
	local := c.t.RanksOf(c.node)
	count := c.count(c.node)
	if count > 1 {
		c.exchangeInside()
	}
	for i := range count {
		if carrier := local[i]; carrier != s.Rank {
			c.f.sendAll(carrier, c.outgoing(s.Rank, c.nodesOf(c.node, i), c.input))
		}
	}
	// In place, received blocks may overwrite blocks still to be sent; the flow orders
	// the operations.
	if localRank := c.t.LocalRankOf(s.Rank); localRank < count {
		c.carry(localRank)
	}
	b.Step(2)
	for i := range count {
		if carrier := local[i]; carrier != s.Rank {
			c.f.recvAll(carrier, c.spans(c.nodesOf(c.node, i)))
		}
	}
}

// count returns the number of carriers of a node.
func (c *carried) count(node int) int {
	return min(c.carriers, c.t.Count(node), c.t.Nodes()-1)
}

// nodesOf returns the nodes that a carrier communicates with, in order. A single carrier
// also handles its own node.
func (c *carried) nodesOf(node, carrier int) (list []int) {
	for n := range c.t.Nodes() {
		if n == node && c.count(node) == 1 || n != node && c.carrier(node, n) == carrier {
			list = append(list, n)
		}
	}
	return list
}

// carrier returns the local rank of a node's carrier for another node.
func (c *carried) carrier(node, other int) int {
	return (wrap(other-node, c.t.Nodes()) - 1) % c.count(node)
}

// input returns the block of this rank for another.
func (c *carried) input(_, to int) sched.Span { return c.s.sentTo(to) }

// outgoing returns the blocks of a rank for the ranks of some nodes.
func (c *carried) outgoing(from int, nodes []int, at func(from, to int) sched.Span) (spans []sched.Span) {
	for _, n := range nodes {
		for _, to := range c.t.RanksOf(n) {
			spans = append(spans, at(from, to))
		}
	}
	return spans
}

// spans returns the final spans of the blocks from the ranks of some nodes.
func (c *carried) spans(nodes []int) (spans []sched.Span) {
	for _, n := range nodes {
		for _, from := range c.t.RanksOf(n) {
			spans = append(spans, c.s.outBlock(from))
		}
	}
	return spans
}

// carry builds the operations of a carrier.
func (c *carried) carry(localRank int) {
	s, f, each := c.s, c.f, c.s.Recv.Each
	local, nodes := c.t.RanksOf(c.node), c.nodesOf(c.node, localRank)
	// The position of a node's blocks in the message of a rank.
	index := map[int]int{}
	for _, n := range nodes {
		for _, to := range c.t.RanksOf(n) {
			index[to] = len(index)
		}
	}
	taken := make([]sched.Span, len(local)) // of each rank of the node
	for q, rank := range local {
		if rank != s.Rank {
			taken[q] = f.Tmp(len(index) * each)
			f.recv(rank, taken[q])
		}
	}
	block := func(from, to int) sched.Span {
		if from == s.Rank {
			return s.sentTo(to)
		}
		return taken[c.t.LocalRankOf(from)].At(index[to]*each, each)
	}
	f.Step(1)
	came := map[int]sched.Span{} // by node, sorted by source and then by local rank here
	for _, n := range c.nodesAfter(nodes) {
		peer := c.t.RanksOf(n)[c.carrier(n, c.node)]
		var spans []sched.Span
		for _, from := range local {
			spans = append(spans, c.outgoing(from, []int{n}, block)...)
		}
		f.sendAll(peer, spans)
		came[n] = f.Tmp(c.t.Count(n) * len(local) * each)
		f.recv(peer, came[n])
	}
	f.Step(2)
	for q, rank := range local {
		var spans []sched.Span
		for _, n := range nodes {
			for i, from := range c.t.RanksOf(n) {
				if n == c.node {
					spans = append(spans, block(from, rank))
				} else {
					spans = append(spans, came[n].At((i*len(local)+q)*each, each))
				}
			}
		}
		if rank != s.Rank {
			f.sendAll(rank, spans)
		} else {
			defer func() { f.copyRuns(c.spans(nodes), spans) }() // after all reads of the input
		}
	}
}

// nodesAfter returns the nodes other than the own, beginning with the next one.
func (c *carried) nodesAfter(nodes []int) (list []int) {
	for i := 1; i < c.t.Nodes(); i++ {
		for _, n := range nodes {
			if n == wrap(c.node+i, c.t.Nodes()) {
				list = append(list, n)
			}
		}
	}
	return list
}

// exchangeInside exchanges the blocks within the node.
func (c *carried) exchangeInside() {
	s, f := c.s, c.f
	local, localRank := c.t.RanksOf(c.node), c.t.LocalRankOf(s.Rank)
	for i := 1; i < len(local); i++ {
		to := local[wrap(localRank+i, len(local))]
		if s.InPlace {
			saved := f.Tmp(s.sentTo(to).Len)
			f.copy(saved, s.sentTo(to))
			f.send(to, saved)
		} else {
			f.send(to, s.sentTo(to))
		}
	}
	for i := 1; i < len(local); i++ {
		from := local[wrap(localRank-i, len(local))]
		f.recv(from, s.outBlock(from))
	}
	f.copy(s.outBlock(s.Rank), s.sentTo(s.Rank))
}
