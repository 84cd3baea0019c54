package mpi

// Graph topologies (MPI-4.1 section 8.5.3): every rank has the whole graph. For large jobs
// the distributed graphs of topo_dist.go are better.

import (
	"fmt"
	"slices"
)

// Graph is a communicator with the edges of a graph between its ranks; every rank has all
// of them.
type Graph struct {
	*Comm
	edges [][]int
	near  neighborhood
}

// GraphCreate creates a graph: edges[p] are the neighbors of position p. A position may be
// its own neighbor, and several times that of another. There may be fewer positions than c
// has ranks; ranks without a position get nil.
//
// If reorder is nil, rank p gets position p. [Near] assigns neighbors to the same node
// where it can. All ranks of c call GraphCreate, with the same arguments.
func (c *Comm) GraphCreate(edges [][]int, reorder Reorder) (*Graph, error) {
	h := c.beginCreate("GraphCreate", CallCreate)
	g, err := c.graphCreate(edges, reorder)
	return g, h.finish(err)
}

func (c *Comm) graphCreate(edges [][]int, reorder Reorder) (*Graph, error) {
	order, err := c.graphOrder("GraphCreate", edges, reorder)
	if err != nil {
		return nil, err
	}
	g, err := c.arrange("GraphCreate", order, ".graph")
	if g == nil || err != nil {
		return nil, err
	}
	return newGraph(g, edges), nil
}

// GraphMap returns the position that [Comm.GraphCreate] would assign to the calling rank,
// or Undefined if none. All ranks of c call it, with the same arguments.
func (c *Comm) GraphMap(edges [][]int, reorder Reorder) (int, error) {
	order, err := c.graphOrder("GraphMap", edges, reorder)
	if err != nil {
		return Undefined, err
	}
	return positionOf(order, c.rank), nil
}

func (c *Comm) graphOrder(op string, edges [][]int, reorder Reorder) ([]int, error) {
	if err := c.intra(op); err != nil {
		return nil, err
	}
	if len(edges) > c.size {
		return nil, c.refuse(ErrArg, op, "the graph has %d positions, more than the %d ranks of %s", len(edges), c.size, c.Name())
	}
	for p, to := range edges {
		for _, q := range to {
			if q < 0 || q >= len(edges) {
				return nil, c.refuse(ErrRank, op, "position %d has the neighbor %d; there are positions 0 to %d", p, q, len(edges)-1)
			}
		}
	}
	return c.order(op, len(edges), reorder, func() *Arrangement {
		a := &Arrangement{Positions: len(edges), Nodes: c.nodes()}
		for p, to := range edges {
			for _, q := range to {
				a.Edges = append(a.Edges, Edge{From: p, To: q, Weight: 1})
			}
		}
		return a
	})
}

// newGraph adds the edges to a communicator with as many ranks as there are positions.
func newGraph(c *Comm, edges [][]int) *Graph {
	g := &Graph{Comm: c, edges: make([][]int, len(edges))}
	for p, to := range edges {
		g.edges[p] = slices.Clone(to)
	}
	mine := g.edges[c.rank]
	g.near = neighborhood{c: c, sources: mine, dests: mine}
	if p, q := oneWay(edges); p >= 0 {
		// MPI-4.1 section 8.6 requires symmetric graphs. All ranks find the same error, so
		// none waits for another.
		g.near.refused = fmt.Errorf("the graph has more edges from %d to %d than back; "+
			"use a distributed graph, whose edges have a direction", p, q)
	}
	return g
}

// oneWay returns two positions with more edges one way than the other, or -1.
func oneWay(edges [][]int) (p, q int) {
	type pair struct{ p, q int }
	count := map[pair]int{}
	for p, to := range edges {
		for _, q := range to {
			count[pair{p, q}]++
		}
	}
	for p, to := range edges { // in order, so that all ranks report the same pair
		for _, q := range to {
			if count[pair{p, q}] > count[pair{q, p}] {
				return p, q
			}
		}
	}
	return -1, -1
}

// NeighborsOf returns the neighbors of a rank.
func (g *Graph) NeighborsOf(rank int) ([]int, error) {
	if err := g.checkPeer("NeighborsOf", rank, 0); err != nil {
		return nil, err
	}
	if rank == ProcNull {
		return nil, g.refuse(ErrRank, "NeighborsOf", "ProcNull has no neighbors")
	}
	return slices.Clone(g.edges[rank]), nil
}

// Edges returns the neighbors of each rank.
func (g *Graph) Edges() [][]int {
	out := make([][]int, len(g.edges))
	for p, to := range g.edges {
		out[p] = slices.Clone(to)
	}
	return out
}

// Dup returns the same graph with its own context: see [Comm.Dup].
func (g *Graph) Dup() (*Graph, error) {
	c, err := g.Comm.Dup()
	if err != nil {
		return nil, err
	}
	return newGraph(c, g.edges), nil
}

// Idup starts a Dup: see [Comm.Idup].
func (g *Graph) Idup() (*Graph, Request) {
	c, r := g.Comm.Idup()
	if c == nil {
		return nil, r
	}
	return newGraph(c, g.edges), r
}

// Neighborhood returns the neighbors of the calling rank, which it sends to and receives
// from. It implements [Topology].
func (g *Graph) Neighborhood() (sources, dests []int) { return g.near.lists() }

func (g *Graph) neighbors() *neighborhood { return &g.near }
