package mpi

// Distributed graph topologies (MPI-4.1 section 8.5.4): each rank knows its own
// neighbors only. DistGraphCreateAdjacent is told them; DistGraphCreate first
// takes every edge to its two ends. If the ranks are reordered, each rank then
// hands the neighbors of its old position to the rank that has taken it.

import "slices"

// Neighbor is a rank at the other end of an edge. The Weight says how much
// travels along the edge compared with others, for a [Reorder]; 0 counts as 1.
type Neighbor struct{ Rank, Weight int }

// DistGraph is a communicator with the edges of a graph between its ranks, of
// which each rank knows its own. Edges have a direction: a rank has sources, which
// it receives from, and destinations, which it sends to.
type DistGraph struct {
	*Comm
	in, out []Neighbor
	near    neighborhood
}

// DistGraphCreateAdjacent makes a graph from the edges of each rank: sources are
// the ranks that it receives from, dests those that it sends to. Each edge is so
// given twice, once at either end. All ranks of c call it, each with its own
// edges.
//
// With a nil reorder, ranks keep their numbers. Else the edges are those between
// positions, the caller gives those of the position with the number of its rank, and
// reorder says which rank takes which position: [Near] puts neighbors onto the same
// node where it can. [DistGraph.Sources] and [DistGraph.Dests] then tell the
// neighbors of the position that the rank was given.
func (c *Comm) DistGraphCreateAdjacent(sources, dests []Neighbor, reorder Reorder) (*DistGraph, error) {
	const op = "DistGraphCreateAdjacent"
	err := c.checkNeighbors(op, "source", sources)
	if err == nil {
		err = c.checkNeighbors(op, "destination", dests)
	}
	if err := c.together(op, err); err != nil {
		return nil, err
	}
	return c.distGraph(op, slices.Clone(sources), slices.Clone(dests), reorder)
}

func (c *Comm) checkNeighbors(op, what string, list []Neighbor) error {
	for i, n := range list {
		if n.Rank < 0 || n.Rank >= c.size {
			return c.refuse(ErrRank, op, "%s %d is rank %d; %s has ranks 0 to %d", what, i, n.Rank, c.name, c.size-1)
		}
		if n.Weight < 0 {
			return c.refuse(ErrArg, op, "%s %d has the weight %d; weights are not negative", what, i, n.Weight)
		}
	}
	return nil
}

// DistGraphCreate makes a graph from edges that each may be given by any rank,
// once: the lists of all ranks together are the graph. Neighbors are in the order
// of the ranks that gave the edges, and of their lists. All ranks of c call it.
// For reorder, see [Comm.DistGraphCreateAdjacent].
func (c *Comm) DistGraphCreate(edges []Edge, reorder Reorder) (*DistGraph, error) {
	const op = "DistGraphCreate"
	var err error
	for i, e := range edges {
		if e.From < 0 || e.From >= c.size || e.To < 0 || e.To >= c.size {
			err = c.refuse(ErrRank, op, "edge %d goes from rank %d to %d; %s has ranks 0 to %d", i, e.From, e.To, c.name, c.size-1)
		} else if e.Weight < 0 {
			err = c.refuse(ErrArg, op, "edge %d has the weight %d; weights are not negative", i, e.Weight)
		}
	}
	if err := c.together(op, err); err != nil {
		return nil, err
	}
	sources, dests, err := c.distributeEdges(op, edges)
	if err != nil {
		return nil, err
	}
	return c.distGraph(op, sources, dests, reorder)
}

// distributeEdges tells both ends of every edge of it.
func (c *Comm) distributeEdges(op string, edges []Edge) (sources, dests []Neighbor, err error) {
	lists := make(map[int]*[2][]Neighbor) // by rank: its sources and its destinations
	home := func(rank int) *[2][]Neighbor {
		if lists[rank] == nil {
			lists[rank] = new([2][]Neighbor)
		}
		return lists[rank]
	}
	for _, e := range edges {
		h := home(e.To)
		h[0] = append(h[0], Neighbor{e.From, e.Weight})
		h = home(e.From)
		h[1] = append(h[1], Neighbor{e.To, e.Weight})
	}
	// A context of its own, so that nothing else can be taken for these messages.
	x, err := c.Dup()
	if err != nil {
		return nil, nil, err
	}
	// How many ranks have something to tell me?
	incoming := make([]int64, c.size)
	for r := range lists {
		incoming[r] = 1
	}
	if err := allreduce(c, op, incoming, incoming, Sum[int64]()); err != nil {
		return nil, nil, err
	}
	var sends []Request
	for r := range c.size { // in order, so that a failing job fails alike each time
		if l := lists[r]; l != nil {
			sends = append(sends, Isend(x, packNeighbors(l[0], l[1]), r, 0))
		}
	}
	type edgeList struct {
		by   int
		list []int64
	}
	var all []edgeList
	for range incoming[c.rank] {
		list, by, err := receiveList(x, AnySource, 0)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, edgeList{by, list})
	}
	if err := WaitAllInto(sends, nil); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b edgeList) int { return a.by - b.by })
	for _, t := range all {
		in, out := unpackNeighbors(t.list)
		sources, dests = append(sources, in...), append(dests, out...)
	}
	return sources, dests, nil
}

// distGraph makes the communicator, reordered if wanted. The arguments have been
// checked and are kept.
func (c *Comm) distGraph(op string, sources, dests []Neighbor, reorder Reorder) (*DistGraph, error) {
	var edges []Edge
	if reorder != nil {
		var err error
		if edges, err = c.edgesAtZero(dests); err != nil {
			return nil, err
		}
	}
	order, err := c.order(op, c.size, reorder, func() *Arrangement {
		return &Arrangement{Positions: c.size, Nodes: c.nodes(), Edges: edges}
	})
	if err != nil {
		return nil, err
	}
	g, err := c.arrange(op, order, ".dist")
	if err != nil {
		return nil, err
	}
	if reorder != nil {
		// The caller knows the edges of position c.rank; another has taken that position,
		// and the caller's position was described by the rank of its number. Nobody can
		// have sent anything else from there on the new communicator.
		send := Isend(g, packNeighbors(sources, dests), c.rank, 0)
		list, _, err := receiveList(g, positionOf(order, g.rank), 0)
		if err != nil {
			return nil, err
		}
		if _, err := send.Wait(); err != nil {
			return nil, err
		}
		sources, dests = unpackNeighbors(list)
	}
	return newDistGraph(g, sources, dests), nil
}

// edgesAtZero collects all edges at rank 0, which asks the Reorder.
func (c *Comm) edgesAtZero(dests []Neighbor) ([]Edge, error) {
	x, err := c.Dup()
	if err != nil {
		return nil, err
	}
	if c.rank != 0 {
		return nil, Send(x, packNeighbors(nil, dests), 0, 0)
	}
	var edges []Edge
	for r := range c.size {
		if r > 0 {
			list, _, err := receiveList(x, r, 0)
			if err != nil {
				return nil, err
			}
			_, dests = unpackNeighbors(list)
		}
		for _, n := range dests {
			edges = append(edges, Edge{From: r, To: n.Rank, Weight: n.Weight})
		}
	}
	return edges, nil
}

// packNeighbors puts two lists into a message: how many the first has, then rank
// and weight of all.
func packNeighbors(sources, dests []Neighbor) []int64 {
	out := make([]int64, 1, 1+2*(len(sources)+len(dests)))
	out[0] = int64(len(sources))
	for _, l := range [][]Neighbor{sources, dests} {
		for _, n := range l {
			out = append(out, int64(n.Rank), int64(n.Weight))
		}
	}
	return out
}

func unpackNeighbors(list []int64) (sources, dests []Neighbor) {
	all := make([]Neighbor, len(list)/2)
	for i := range all {
		all[i] = Neighbor{int(list[1+2*i]), int(list[2+2*i])}
	}
	return slices.Clip(all[:list[0]]), all[list[0]:]
}

// receiveList receives a message of any length.
func receiveList(c *Comm, src, tag int) (list []int64, from int, err error) {
	st, err := Probe(c, src, tag)
	if err != nil {
		return nil, 0, err
	}
	list = make([]int64, st.Bytes/8)
	_, err = Recv(c, list, st.Source, tag)
	return list, st.Source, err
}

func newDistGraph(c *Comm, sources, dests []Neighbor) *DistGraph {
	g := &DistGraph{Comm: c, in: sources, out: dests}
	g.near = neighborhood{c: c, sources: ranksOf(sources), dests: ranksOf(dests)}
	return g
}

func ranksOf(list []Neighbor) []int {
	out := make([]int, len(list))
	for i, n := range list {
		out[i] = n.Rank
	}
	return out
}

// Sources are the ranks that the calling rank receives from.
func (g *DistGraph) Sources() []Neighbor { return slices.Clone(g.in) }

// Dests are the ranks that the calling rank sends to.
func (g *DistGraph) Dests() []Neighbor { return slices.Clone(g.out) }

// Dup makes the same graph with a context of its own; see [Comm.Dup].
func (g *DistGraph) Dup() (*DistGraph, error) {
	c, err := g.Comm.Dup()
	if err != nil {
		return nil, err
	}
	return newDistGraph(c, g.in, g.out), nil
}

// Neighborhood gives the ranks of Sources and Dests. It makes a DistGraph a
// [Topology].
func (g *DistGraph) Neighborhood() (sources, dests []int) { return g.near.lists() }

func (g *DistGraph) neighbors() *neighborhood { return &g.near }
