package mpi

// Reordering: which rank takes which position of a topology. Near first divides the
// positions into parts, one for each node, and then gives each part to the ranks of
// its node. It tries several divisions, betters each by exchanging positions
// (topo_reorder_graph.go), and takes the one with the fewest edges between nodes:
// the positions as they are; blocks, if the positions form a grid
// (topo_reorder_grid.go); and parts that grow along the edges.

import (
	"cmp"
	"slices"
)

// Edge says that From sends to To. The Weight is how much travels compared with
// other edges; 0 counts as 1.
type Edge struct{ From, To, Weight int }

func (e *Edge) weight() int { return max(1, e.Weight) }

// Arrangement is what a [Reorder] may look at: positions, who of them talk to each
// other, and where ranks are.
type Arrangement struct {
	Positions int    // how many positions are to be filled, numbered from 0
	Edges     []Edge // between positions
	Nodes     []int  // the node of each rank; at least Positions ranks
	Dims      []int  // if the positions form a grid: its dimensions, the last runs fastest
	Periods   []bool // and which of them are rings
}

// Reorder chooses which rank takes which position: element p of its result is the
// rank at position p. No rank may occur twice. It is called on one rank only.
type Reorder func(*Arrangement) []int

// Crossing is the weight of all edges between ranks on different nodes, if
// position p is taken by rank order[p]; with a nil order, by rank p.
func (a *Arrangement) Crossing(order []int) int {
	node := func(p int) int {
		if order != nil {
			p = order[p]
		}
		return a.Nodes[p]
	}
	sum := 0
	for i := range a.Edges {
		if e := &a.Edges[i]; node(e.From) != node(e.To) {
			sum += e.weight()
		}
	}
	return sum
}

// Near is a [Reorder] that puts positions which talk to each other onto one node: a
// message between nodes costs many times one inside a node. On a grid it looks for
// blocks that fit the nodes, else for parts that hang together. It never gives
// more edges between nodes than the ranks in their order have, and keeps that
// order if it can.
func Near(a *Arrangement) []int {
	parts := nodeParts(a)
	if len(parts) == 1 {
		return fillPositions(a, parts, make([]int, a.Positions))
	}
	adj := adjacency(a)
	var best []int
	least := 0
	consider := func(division []int) {
		adj.improve(division, len(parts))
		if n := adj.crossing(division); best == nil || n < least {
			best, least = division, n
		}
	}
	consider(asTheyAre(a, parts))
	if a.Dims != nil {
		for _, division := range gridDivisions(a, parts) {
			consider(division)
		}
	}
	consider(adj.grow(parts))
	return fillPositions(a, parts, best)
}

// part is the ranks of one node that take positions.
type part struct {
	node  int
	ranks []int // rising
}

// nodeParts says how many positions go to which node: to those with the most ranks
// first, so that as few nodes as possible take part.
func nodeParts(a *Arrangement) []part {
	index := map[int]int{}
	var parts []part
	for r, n := range a.Nodes {
		i, ok := index[n]
		if !ok {
			i = len(parts)
			index[n] = i
			parts = append(parts, part{node: n})
		}
		parts[i].ranks = append(parts[i].ranks, r)
	}
	if len(a.Nodes) > a.Positions {
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(len(b.ranks), len(a.ranks)) })
	}
	left := a.Positions
	for i := range parts {
		parts[i].ranks = parts[i].ranks[:min(left, len(parts[i].ranks))]
		left -= len(parts[i].ranks)
	}
	for len(parts) > 1 && len(parts[len(parts)-1].ranks) == 0 {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// asTheyAre gives rank p position p as far as that rank takes part; the others fill
// the gaps.
func asTheyAre(a *Arrangement, parts []part) []int {
	division := make([]int, a.Positions)
	for p := range division {
		division[p] = -1
	}
	var later []int
	for i, t := range parts {
		for _, r := range t.ranks {
			if r < a.Positions {
				division[r] = i
			} else {
				later = append(later, i)
			}
		}
	}
	for p := range division {
		if division[p] < 0 {
			division[p], later = later[0], later[1:]
		}
	}
	return division
}

// fillPositions lets the ranks of each part take its positions: the one with its own
// number if that is there, the others in order.
func fillPositions(a *Arrangement, parts []part, division []int) []int {
	order := make([]int, a.Positions)
	keeps := make([]bool, len(a.Nodes))
	for p, i := range division {
		order[p] = -1
		if _, found := slices.BinarySearch(parts[i].ranks, p); found {
			order[p], keeps[p] = p, true
		}
	}
	next := make([]int, len(parts))
	for p, i := range division {
		if order[p] >= 0 {
			continue
		}
		ranks := parts[i].ranks
		for keeps[ranks[next[i]]] {
			next[i]++
		}
		order[p] = ranks[next[i]]
		next[i]++
	}
	return order
}
