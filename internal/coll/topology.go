package coll

import (
	"fmt"
	"slices"
)

// Topology describes which ranks of a communicator share a node, and how many rails
// connect the nodes (T2 3.4, 4.4, 5.5). Nodes may have any number of ranks, in any
// order. A topology is the same on all ranks and never changes.
type Topology struct {
	// Node is the node of each rank. Nodes are numbered from 0 in the order of their
	// first rank.
	Node []int
	// LocalRank is the index of each rank among the ranks of its node. Local rank 0 is
	// the node leader (the master of T2 4.4.1).
	LocalRank []int
	// Ranks are the ranks of each node, by local rank.
	Ranks [][]int
	// Rails is the number of messages that a node can send to others at a time without
	// sharing a cable; at least 1.
	Rails int

	// order holds the ranks node by node; first is the index of each node's first rank
	// in it, and the end. inOrder means that the ranks are numbered node by node.
	order, first []int
	inOrder      bool
}

// NewTopology returns a topology from a number for each rank, equal for ranks that
// share a node. It returns nil if all ranks share one node.
func NewTopology(nodeOf []int, rails int) *Topology {
	t := &Topology{Node: make([]int, len(nodeOf)), LocalRank: make([]int, len(nodeOf)), Rails: max(rails, 1)}
	numbers := map[int]int{}
	for r, name := range nodeOf {
		n, seen := numbers[name]
		if !seen {
			n = len(t.Ranks)
			numbers[name] = n
			t.Ranks = append(t.Ranks, nil)
		}
		t.Node[r], t.LocalRank[r] = n, len(t.Ranks[n])
		t.Ranks[n] = append(t.Ranks[n], r)
	}
	if len(t.Ranks) < 2 {
		return nil
	}
	for _, ranks := range t.Ranks {
		t.first = append(t.first, len(t.order))
		t.order = append(t.order, ranks...)
	}
	t.first = append(t.first, len(t.order))
	t.inOrder = slices.IsSorted(t.order)
	return t
}

// String returns "4×4" for 4 nodes with 4 ranks each, or the number of ranks of each
// node.
func (t *Topology) String() string {
	if t == nil {
		return "one"
	}
	counts := make([]int, len(t.Ranks))
	for n, ranks := range t.Ranks {
		counts[n] = len(ranks)
	}
	text := fmt.Sprint(counts)
	if slices.Min(counts) == slices.Max(counts) {
		text = fmt.Sprintf("%d×%d", len(counts), counts[0])
	}
	if !t.inOrder {
		text += " mixed"
	}
	return text
}

// Consecutive returns the topology of nodes with the given numbers of consecutive
// ranks.
func Consecutive(rails int, counts ...int) *Topology {
	var nodeOf []int
	for n, count := range counts {
		for range count {
			nodeOf = append(nodeOf, n)
		}
	}
	return NewTopology(nodeOf, rails)
}

// leader returns the rank that communicates with other nodes on behalf of a node.
func (t *Topology) leader(node int) int { return t.Ranks[node][0] }

// most returns the largest number of ranks on a node, fewest the smallest.
func (t *Topology) most() (n int) {
	for _, ranks := range t.Ranks {
		n = max(n, len(ranks))
	}
	return n
}

func (t *Topology) fewest() int {
	n := len(t.Node)
	for _, ranks := range t.Ranks {
		n = min(n, len(ranks))
	}
	return n
}

// nodeCount returns the number of nodes.
func (s *Shape) nodeCount() int {
	if s.Nodes == nil {
		return 1
	}
	return len(s.Nodes.Ranks)
}

// railCount returns the number of rails between the nodes; one if there is one node.
func (s *Shape) railCount() int {
	if s.Nodes == nil {
		return 1
	}
	return s.Nodes.Rails
}
