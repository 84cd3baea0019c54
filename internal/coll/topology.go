package coll

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Topology describes which ranks of a communicator share a node, and how many rails
// connect the nodes (T2 3.4, 4.4, 5.5). Nodes may have any number of ranks, in any
// order. A topology is the same on all ranks and never changes, so that ranks of a
// process can share it.
//
// Launchers place ranks node by node, mostly equally many on each. Such a topology is a
// few blocks, whatever the number of ranks; only ranks in another order need a table.
type Topology struct {
	// Rails is the number of messages that a node can send to others at a time without
	// sharing a cable; at least 1.
	Rails int

	size, nodes  int
	most, fewest int        // ranks on a node
	blocks       []block    // by rank
	table        *nodeTable // of ranks that are not numbered node by node; nil: see blocks
}

// block is a number of nodes with equally many consecutive ranks.
type block struct {
	rank, node int // the first ones
	nodes      int
	each       int // ranks on each node
}

// nodeTable lists the ranks.
type nodeTable struct {
	node, localRank []int32 // by rank
	order           []int   // the ranks, node by node
	first           []int   // index of each node's first rank in order, and the end
}

// NewTopology returns a topology from a number for each rank, equal for ranks that
// share a node. It returns nil if all ranks share one node.
func NewTopology(nodeOf []int, rails int) *Topology {
	return TopologyOf(len(nodeOf), func(rank int) int { return nodeOf[rank] }, rails)
}

// TopologyOf is NewTopology with a function instead of a list.
func TopologyOf(size int, nodeOf func(rank int) int, rails int) *Topology {
	t := &Topology{Rails: max(rails, 1), size: size, fewest: size}
	seen := map[int]bool{}
	for r := 0; r < size; {
		name, first := nodeOf(r), r
		if seen[name] {
			return t.tabulate(nodeOf)
		}
		seen[name] = true
		for r++; r < size && nodeOf(r) == name; r++ {
		}
		t.add(first, r-first)
	}
	if t.nodes < 2 {
		return nil
	}
	t.blocks = slices.Clip(t.blocks)
	return t
}

// add adds a node with consecutive ranks.
func (t *Topology) add(first, ranks int) {
	if last := len(t.blocks) - 1; last >= 0 && t.blocks[last].each == ranks {
		t.blocks[last].nodes++
	} else {
		t.blocks = append(t.blocks, block{rank: first, node: t.nodes, nodes: 1, each: ranks})
	}
	t.nodes++
	t.most, t.fewest = max(t.most, ranks), min(t.fewest, ranks)
}

// tabulate lists the ranks of a topology that is not a few blocks.
func (t *Topology) tabulate(nodeOf func(rank int) int) *Topology {
	table := &nodeTable{node: make([]int32, t.size), localRank: make([]int32, t.size), order: make([]int, t.size)}
	numbers := map[int]int32{}
	var counts []int
	for r := range t.size {
		name := nodeOf(r)
		n, known := numbers[name]
		if !known {
			n = int32(len(counts))
			numbers[name] = n
			counts = append(counts, 0)
		}
		table.node[r], table.localRank[r] = n, int32(counts[n])
		counts[n]++
	}
	table.first = make([]int, len(counts)+1)
	for n, count := range counts {
		table.first[n+1] = table.first[n] + count
	}
	for r := range t.size {
		table.order[table.first[table.node[r]]+int(table.localRank[r])] = r
	}
	t.blocks, t.table = nil, table
	t.nodes, t.most, t.fewest = len(counts), slices.Max(counts), slices.Min(counts)
	return t
}

// Size returns the number of ranks, Nodes that of nodes.
func (t *Topology) Size() int  { return t.size }
func (t *Topology) Nodes() int { return t.nodes }

// NodeOf returns the node of a rank. Nodes are numbered from 0 in the order of their first
// rank.
func (t *Topology) NodeOf(rank int) int {
	if t.table != nil {
		return int(t.table.node[rank])
	}
	b := t.ofRank(rank)
	return b.node + (rank-b.rank)/b.each
}

// LocalRankOf returns the index of a rank among the ranks of its node. Local rank 0 is
// the node leader (the master of T2 4.4.1).
func (t *Topology) LocalRankOf(rank int) int {
	if t.table != nil {
		return int(t.table.localRank[rank])
	}
	b := t.ofRank(rank)
	return (rank - b.rank) % b.each
}

// Count returns the number of ranks on a node.
func (t *Topology) Count(node int) int {
	if t.table != nil {
		return t.table.first[node+1] - t.table.first[node]
	}
	return t.ofNode(node).each
}

// RankAt returns the rank on a node with a local rank.
func (t *Topology) RankAt(node, localRank int) int {
	if t.table != nil {
		return t.table.order[t.table.first[node]+localRank]
	}
	b := t.ofNode(node)
	return b.rank + (node-b.node)*b.each + localRank
}

// RanksOf returns the ranks of a node, by local rank. They must not be modified.
func (t *Topology) RanksOf(node int) []int {
	if t.table != nil {
		return t.table.order[t.table.first[node]:t.table.first[node+1]]
	}
	ranks := make([]int, t.Count(node))
	for i, first := 0, t.RankAt(node, 0); i < len(ranks); i++ {
		ranks[i] = first + i
	}
	return ranks
}

// NodeList returns the node of each rank, and lists the ranks of each node.
func (t *Topology) NodeList() []int {
	list := make([]int, t.size)
	for r := range list {
		list[r] = t.NodeOf(r)
	}
	return list
}

func (t *Topology) lists() [][]int {
	list := make([][]int, t.nodes)
	for n := range list {
		list[n] = t.RanksOf(n)
	}
	return list
}

// ofRank and ofNode return the block of a rank and of a node.
func (t *Topology) ofRank(rank int) *block {
	if len(t.blocks) == 1 {
		return &t.blocks[0]
	}
	return &t.blocks[sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].rank > rank })-1]
}

func (t *Topology) ofNode(node int) *block {
	if len(t.blocks) == 1 {
		return &t.blocks[0]
	}
	return &t.blocks[sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].node > node })-1]
}

// inOrder reports whether the ranks are numbered node by node.
func (t *Topology) inOrder() bool { return t.table == nil }

// ranksBefore returns the number of ranks on the nodes below a node.
func (t *Topology) ranksBefore(node int) int {
	switch {
	case node >= t.nodes:
		return t.size
	case t.table != nil:
		return t.table.first[node]
	}
	return t.RankAt(node, 0)
}

// String returns "4×4" for 4 nodes with 4 ranks each, or the number of ranks of each
// node.
func (t *Topology) String() string {
	if t == nil {
		return "one"
	}
	text := fmt.Sprintf("%d×%d", t.nodes, t.most)
	if t.most != t.fewest {
		counts := make([]int, t.nodes)
		for n := range counts {
			counts[n] = t.Count(n)
		}
		text = fmt.Sprint(counts)
	}
	if !t.inOrder() {
		text += " mixed"
	}
	return text
}

// Consecutive returns the topology of nodes with the given numbers of consecutive
// ranks.
func Consecutive(rails int, counts ...int) *Topology {
	t := &Topology{Rails: max(rails, 1), fewest: math.MaxInt}
	for _, count := range counts {
		if count > 0 {
			t.add(t.size, count)
			t.size += count
		}
	}
	if t.nodes < 2 {
		return nil
	}
	return t
}

// leader returns the rank that communicates with other nodes on behalf of a node.
func (t *Topology) leader(node int) int { return t.RankAt(node, 0) }

// nodeCount returns the number of nodes.
func (s *Shape) nodeCount() int {
	if s.Nodes == nil {
		return 1
	}
	return s.Nodes.nodes
}

// railCount returns the number of rails between the nodes; one if there is one node.
func (s *Shape) railCount() int {
	if s.Nodes == nil {
		return 1
	}
	return s.Nodes.Rails
}
