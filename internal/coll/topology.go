package coll

import (
	"fmt"
	"slices"
)

// Topology is where the ranks of a call are: which of them share a node, and how
// many rails lead from node to node (T2 3.4, 4.4, 5.5). Nodes may have any number
// of ranks, in any order. It is made once for a communicator, is the same on all
// its ranks, and never changes.
type Topology struct {
	// Node is the node of each rank. Nodes are numbered from 0 in the order of
	// their first rank.
	Node []int
	// Place is the place of each rank among those of its node, which are in the
	// order of their ranks. Place 0 is the master (T2 4.4.1).
	LocalRank []int
	// Ranks are the ranks of each node, by place.
	Ranks [][]int
	// Rails is how many messages can be under way from a node to others at a time
	// without sharing a cable; at least 1.
	Rails int

	// order is the ranks node by node, first is where each node begins in it, with
	// one more for the end. inOrder: the ranks are node by node anyway.
	order, first []int
	inOrder      bool
}

// NewTopology makes a topology from a number for each rank, equal for ranks that
// share a node. It gives nil if all do: then there is nothing to know.
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

// String is 4×4, or the number of ranks of each node.
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

// Consecutive is the topology of nodes with so many ranks each, the first ranks on
// the first node and so on.
func Consecutive(rails int, counts ...int) *Topology {
	var nodeOf []int
	for n, count := range counts {
		for range count {
			nodeOf = append(nodeOf, n)
		}
	}
	return NewTopology(nodeOf, rails)
}

// master is the rank that speaks for a node.
func (t *Topology) master(node int) int { return t.Ranks[node][0] }

// most is the largest number of ranks on a node, fewest the smallest.
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

// nodeCount is on how many nodes the ranks are.
func (s *Shape) nodeCount() int {
	if s.Nodes == nil {
		return 1
	}
	return len(s.Nodes.Ranks)
}
