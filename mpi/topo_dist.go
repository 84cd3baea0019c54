package mpi

// Distributed graph topologies (MPI-4.1 section 8.5.4): each rank has only its own
// neighbors. DistGraphCreateAdjacent takes them as arguments; DistGraphCreate first sends
// every edge to its two ends. If the ranks are reordered, each rank then sends the
// neighbors of its old position to the rank that now has that position.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Neighbor is a rank at the other end of an edge. Weight is the relative amount of data
// along the edge, for a [Reorder]; 0 counts as 1.
type Neighbor struct{ Rank, Weight int }

// DistGraph is a communicator with the edges of a graph between its ranks; each rank has
// only its own edges. Edges are directed: a rank receives from its sources and sends to
// its destinations.
type DistGraph struct {
	*Comm
	in, out []Neighbor
	near    neighborhood
}

// DistGraphCreateAdjacent creates a graph from the edges of each rank: it receives from
// sources and sends to dests. So each edge is specified twice, once at either end. All
// ranks of c call it, each with its own edges.
//
// If reorder is nil, ranks keep their numbers. Otherwise the edges connect positions, a
// rank specifies those of the position with its number, and reorder assigns ranks to
// positions: [Near] assigns neighbors to the same node where it can. [DistGraph.Sources]
// and [DistGraph.Dests] then return the neighbors of the position that the rank was
// assigned to.
func (c *Comm) DistGraphCreateAdjacent(sources, dests []Neighbor, reorder Reorder) (*DistGraph, error) {
	h := c.beginCreate("DistGraphCreateAdjacent", CallCreate)
	g, err := c.distGraphCreateAdjacent(sources, dests, reorder)
	return g, h.finish(err)
}

func (c *Comm) distGraphCreateAdjacent(sources, dests []Neighbor, reorder Reorder) (*DistGraph, error) {
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
			return c.refuse(ErrRank, op, "%s %d is rank %d; %s has ranks 0 to %d", what, i, n.Rank, c.Name(), c.size-1)
		}
		if n.Weight < 0 {
			return c.refuse(ErrArg, op, "%s %d has the weight %d; weights are not negative", what, i, n.Weight)
		}
	}
	return nil
}

// DistGraphCreate creates a graph from edges that any rank may specify, each once: the
// lists of all ranks together are the graph. Neighbors are in the order of the ranks that
// specified the edges, and of their lists. All ranks of c call it. For reorder, see
// [Comm.DistGraphCreateAdjacent].
func (c *Comm) DistGraphCreate(edges []Edge, reorder Reorder) (*DistGraph, error) {
	h := c.beginCreate("DistGraphCreate", CallCreate)
	g, err := c.distGraphCreate(edges, reorder)
	return g, h.finish(err)
}

func (c *Comm) distGraphCreate(edges []Edge, reorder Reorder) (*DistGraph, error) {
	const op = "DistGraphCreate"
	var err error
	for i, e := range edges {
		if e.From < 0 || e.From >= c.size || e.To < 0 || e.To >= c.size {
			err = c.refuse(ErrRank, op, "edge %d goes from rank %d to %d; %s has ranks 0 to %d", i, e.From, e.To, c.Name(), c.size-1)
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

// distributeEdges sends each edge to the ranks at both of its ends.
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
	// A separate context, so that no other message matches these.
	x, err := c.dup("Dup")
	if err != nil {
		return nil, nil, err
	}
	// How many ranks send a list to this one?
	incoming := make([]int64, c.size)
	for r := range lists {
		incoming[r] = 1
	}
	if err := allreduce(c, op, incoming, incoming, Sum); err != nil {
		return nil, nil, err
	}
	var sends []Request
	for r := range c.size { // in order, so that failures are reproducible
		if l := lists[r]; l != nil {
			sends = append(sends, isend(x, op, packNeighbors(l[0], l[1]), r, 0, p2p.Standard))
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
	if err := completeAll(sends, nil); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b edgeList) int { return a.by - b.by })
	for _, t := range all {
		in, out := unpackNeighbors(t.list)
		sources, dests = append(sources, in...), append(dests, out...)
	}
	return sources, dests, nil
}

// distGraph creates the communicator. The arguments have been checked and are retained.
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
		// The caller has the edges of position c.rank, which another rank has now; the rank
		// with the number of the caller's new position has its edges. No other message can
		// have come from there on the new communicator.
		send := isend(g, op, packNeighbors(sources, dests), c.rank, 0, p2p.Standard)
		list, _, err := receiveList(g, positionOf(order, g.rank), 0)
		if err != nil {
			return nil, err
		}
		if _, err := send.wait(engine.NoContext); err != nil {
			return nil, err
		}
		sources, dests = unpackNeighbors(list)
	}
	return newDistGraph(g, sources, dests), nil
}

// edgesAtZero collects all edges at rank 0, which calls the Reorder.
func (c *Comm) edgesAtZero(dests []Neighbor) ([]Edge, error) {
	x, err := c.dup("Dup")
	if err != nil {
		return nil, err
	}
	if c.rank != 0 {
		return nil, sendFor(x, "DistGraphCreate", packNeighbors(nil, dests), 0, 0, p2p.Standard)
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

// packNeighbors encodes two lists: the length of the first, then rank and weight of all.
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
	st, _, err := c.probe(engine.NoContext, "Probe", src, tag, false)
	if err != nil {
		return nil, 0, err
	}
	list = make([]int64, st.Bytes/8)
	_, err = irecvFor(c, "Recv", list, st.Source, tag).wait(engine.NoContext)
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

// Sources returns the ranks that the calling rank receives from.
func (g *DistGraph) Sources() []Neighbor { return slices.Clone(g.in) }

// Dests returns the ranks that the calling rank sends to.
func (g *DistGraph) Dests() []Neighbor { return slices.Clone(g.out) }

// Dup returns the same graph with its own context: see [Comm.Dup].
func (g *DistGraph) Dup() (*DistGraph, error) {
	c, err := g.Comm.Dup()
	if err != nil {
		return nil, err
	}
	return newDistGraph(c, g.in, g.out), nil
}

// Idup starts a Dup: see [Comm.Idup].
func (g *DistGraph) Idup() (*DistGraph, Request) {
	c, r := g.Comm.Idup()
	if c == nil {
		return nil, r
	}
	return newDistGraph(c, g.in, g.out), r
}

// Neighborhood returns the ranks of Sources and Dests. It implements [Topology].
func (g *DistGraph) Neighborhood() (sources, dests []int) { return g.near.lists() }

func (g *DistGraph) neighbors() *neighborhood { return &g.near }
