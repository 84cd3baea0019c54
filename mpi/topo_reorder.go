package mpi

// Reordering: the assignment of ranks to the positions of a topology. Near first divides
// the positions into parts, one for each node, and then assigns each part to the ranks of
// its node. It tries several divisions: the positions in their order; blocks, if the
// positions form a grid (topo_reorder_grid.go); and parts that grow along the edges. It
// improves each of them by swapping positions (topo_reorder_graph.go), and selects the one
// with the fewest edges between nodes.

import (
	"cmp"
	"slices"
)

// Edge is a directed edge: From sends to To. Weight is the relative amount of data along
// the edge; 0 counts as 1.
type Edge struct{ From, To, Weight int }

func (e *Edge) weight() int { return max(1, e.Weight) }

// Arrangement is the input of a [Reorder]: the positions of a topology, the edges between
// them, and the nodes of the ranks.
type Arrangement struct {
	Positions int    // number of positions, numbered from 0
	Edges     []Edge // between positions
	Nodes     []int  // the node of each rank; at least Positions ranks
	Dims      []int  // the dimensions, if the positions form a grid in row-major order
	Periods   []bool // which of the dimensions are periodic
}

// Reorder assigns ranks to positions: element p of its result is the rank at position p.
// No rank may occur twice. One rank calls it and broadcasts the result.
type Reorder func(*Arrangement) []int

// Crossing returns the weight of all edges between different nodes if rank order[p] has
// position p; if order is nil, rank p has.
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

// Near is a [Reorder] that assigns connected positions to the same node, because a message
// between nodes costs many times one inside a node. On a grid it looks for blocks that fit
// the nodes, otherwise for connected parts. The result never has more edges between nodes
// than the ranks in their order, and keeps that order if possible.
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

// part is the ranks of one node that get positions.
type part struct {
	node  int
	ranks []int // ascending
}

// nodeParts returns how many positions each node gets. Nodes with the most ranks come
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

// asTheyAre assigns position p to the node of rank p if that rank takes part; the others
// fill the gaps.
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

// fillPositions assigns the positions of each part to its ranks: position p to rank p if
// that is among them, the rest in order.
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
