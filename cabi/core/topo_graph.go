package core

// Graphs (MPI-4.1 sections 8.5.3, 8.5.4 and 8.5.5).

import "github.com/muster-mpi/muster/mpi"

func graphs() map[string]handler {
	return map[string]handler{
		"Graph_create":               (*Process).graphCreate,
		"Graph_map":                  (*Process).graphMap,
		"Graphdims_get":              (*Process).graphdimsGet,
		"Graph_get":                  (*Process).graphGet,
		"Graph_neighbors_count":      (*Process).graphNeighborsCount,
		"Graph_neighbors":            (*Process).graphNeighbors,
		"Dist_graph_create_adjacent": (*Process).distGraphCreateAdjacent,
		"Dist_graph_create":          (*Process).distGraphCreate,
		"Dist_graph_neighbors_count": (*Process).distGraphNeighborsCount,
		"Dist_graph_neighbors":       (*Process).distGraphNeighbors,
	}
}

// edges returns the neighbors of each position of a graph: index has the numbers of edges up
// to each position.
func (a *args) edges(nodes, index, edges int, size int) [][]int {
	n := a.int(nodes)
	if n < 0 || n > size {
		a.fail(errorf(errArg, "a graph of %d positions does not fit %d ranks", n, size))
		return nil
	}
	if n == 0 {
		return nil
	}
	if a.results(index); a.err != nil {
		return nil
	}
	ends := a.shorts(index, n)
	start := 0
	for i, end := range ends {
		if end < start {
			a.fail(errorf(errArg, "element %d of the index is %d, less than the one before", i, end))
			return nil
		}
		start = end
	}
	if start > 0 {
		if a.results(edges); a.err != nil {
			return nil
		}
	}
	all := a.shorts(edges, start)
	for i, e := range all {
		if e < 0 || e >= n {
			a.fail(errorf(errArg, "edge %d goes to position %d, which is not one of 0 to %d", i, e, n-1))
			return nil
		}
	}
	out := make([][]int, n)
	start = 0
	for i, end := range ends {
		out[i] = all[start:end]
		start = end
	}
	return out
}

func (p *Process) graphCreate(a *args) error {
	c := a.intra(0)
	edges := a.edges(1, 2, 3, c.Size())
	if a.err != nil {
		return nil
	}
	if len(edges) == 0 {
		a.setHandle(5, commNull)
		return nil
	}
	g, err := c.GraphCreate(edges, a.reorder(4))
	if err != nil {
		return err
	}
	if g == nil {
		a.setHandle(5, commNull)
		return nil
	}
	a.addComm(5, g.Comm, c).topo = g
	return nil
}

func (p *Process) graphMap(a *args) error {
	c := a.intra(0)
	edges := a.edges(1, 2, 3, c.Size())
	if a.err != nil {
		return nil
	}
	if a.int(1) < 1 {
		return errorf(errArg, "the graph has no positions")
	}
	rank, err := c.GraphMap(edges, mpi.Near)
	if err == nil {
		a.setInt(4, rank)
	}
	return err
}

// graph returns the graph of a communicator.
func (a *args) graph(i int) *mpi.Graph {
	g, _ := topologyOf[*mpi.Graph](a, i, "graph")
	return g
}

func (p *Process) graphdimsGet(a *args) error {
	g := a.graph(0)
	if a.err != nil {
		return nil
	}
	n := 0
	for _, to := range g.Edges() {
		n += len(to)
	}
	a.setInt(1, len(g.Edges()))
	a.setInt(2, n)
	return nil
}

func (p *Process) graphGet(a *args) error {
	g := a.graph(0)
	if a.err != nil {
		return nil
	}
	var index, edges []int
	for _, to := range g.Edges() {
		edges = append(edges, to...)
		index = append(index, len(edges))
	}
	if a.int(1) < len(index) || a.int(2) < len(edges) {
		return errorf(errArg, "the graph has %d positions and %d edges, and the arrays have %d and %d elements",
			len(index), len(edges), a.int(1), a.int(2))
	}
	a.setInts(3, index)
	a.setInts(4, edges)
	return nil
}

// neighborsOf returns the neighbors of a rank of a graph.
func (a *args) neighborsOf(g *mpi.Graph, i int) []int {
	rank := a.int(i)
	if a.err != nil {
		return nil
	}
	if rank < 0 || rank >= g.Size() {
		a.fail(errorf(errRank, "rank %d is not one of 0 to %d", rank, g.Size()-1))
		return nil
	}
	list, err := g.NeighborsOf(rank)
	if err != nil {
		a.fail(err)
	}
	return list
}

func (p *Process) graphNeighborsCount(a *args) error {
	g := a.graph(0)
	list := a.neighborsOf(g, 1)
	if a.err == nil {
		a.setInt(2, len(list))
	}
	return nil
}

func (p *Process) graphNeighbors(a *args) error {
	g := a.graph(0)
	list := a.neighborsOf(g, 1)
	if a.err != nil {
		return nil
	}
	if a.int(2) < len(list) {
		return errorf(errArg, "the rank has %d neighbors, and the array has %d elements", len(list), a.int(2))
	}
	if len(list) > 0 {
		if a.results(3); a.err != nil {
			return nil
		}
	}
	a.setInts(3, list)
	return nil
}

// weights are the addresses that programs pass instead of weights: MPI_UNWEIGHTED and
// MPI_WEIGHTS_EMPTY, variables of the front.
type weights struct{ none, empty uintptr }

// weights returns n weights, and whether the program has given any.
func (a *args) weights(i, n int) (list []int, given bool) {
	switch addr := a.addr(i); {
	case addr == a.p.weights.none:
		return nil, false
	case n == 0:
		return nil, true
	case addr == 0 || addr == a.p.weights.empty:
		a.fail(errorf(errArg, "argument %d has no weights, but there are %d edges", i+1, n))
		return nil, false
	}
	list = a.shorts(i, n)
	for _, w := range list {
		if w < 0 {
			a.fail(errorf(errArg, "the weight %d is negative", w))
		}
	}
	return list, true
}

// adjacent returns the neighbors in an array and their weights: the length is in position i, the
// arrays follow.
func (a *args) adjacent(i, size int) (list []mpi.Neighbor, weighted bool) {
	n := a.size(i)
	if n > 0 {
		a.results(i + 1)
	}
	if a.err != nil {
		return nil, false
	}
	ranks := a.shorts(i+1, n)
	weights, given := a.weights(i+2, n)
	if a.err != nil {
		return nil, false
	}
	list = make([]mpi.Neighbor, n)
	for k, r := range ranks {
		if r < 0 || r >= size {
			a.fail(errorf(errRank, "neighbor %d is rank %d, which is not one of 0 to %d", k, r, size-1))
			return nil, false
		}
		list[k] = mpi.Neighbor{Rank: r, Weight: 1}
		if given {
			list[k].Weight = weights[k]
		}
	}
	return list, given
}

func (p *Process) distGraphCreateAdjacent(a *args) error {
	c := a.intra(0)
	a.results(9)
	if a.handle(7) != infoNull {
		a.info(7)
	}
	if a.err != nil {
		return nil
	}
	sources, weighted := a.adjacent(1, c.Size())
	dests, _ := a.adjacent(4, c.Size())
	if a.err != nil {
		return nil
	}
	g, err := c.DistGraphCreateAdjacent(sources, dests, a.reorder(8))
	if err != nil {
		return err
	}
	n := a.addComm(9, g.Comm, c)
	n.topo, n.weighted = g, weighted
	return nil
}

func (p *Process) distGraphCreate(a *args) error {
	c, n := a.intra(0), a.size(1)
	a.results(8)
	if n > 0 {
		a.results(2, 3)
	}
	if a.handle(6) != infoNull {
		a.info(6)
	}
	if a.err != nil {
		return nil
	}
	sources, degrees := a.shorts(2, n), a.shorts(3, n)
	total := 0
	for i, d := range degrees {
		if d < 0 {
			return errorf(errArg, "element %d of the degrees is %d", i, d)
		}
		total += d
	}
	if total > 0 {
		a.results(4)
	}
	if a.err != nil {
		return nil
	}
	dests := a.shorts(4, total)
	weights, weighted := a.weights(5, total)
	if a.err != nil {
		return nil
	}
	edges := make([]mpi.Edge, 0, total)
	for i, d := range degrees {
		for range d {
			k := len(edges)
			e := mpi.Edge{From: sources[i], To: dests[k], Weight: 1}
			if weighted {
				e.Weight = weights[k]
			}
			edges = append(edges, e)
		}
	}
	g, err := c.DistGraphCreate(edges, a.reorder(7))
	if err != nil {
		return err
	}
	d := a.addComm(8, g.Comm, c)
	d.topo, d.weighted = g, weighted
	return nil
}

// distGraph returns the distributed graph of a communicator.
func (a *args) distGraph(i int) (*mpi.DistGraph, *comm) {
	return topologyOf[*mpi.DistGraph](a, i, "distributed graph")
}

func (p *Process) distGraphNeighborsCount(a *args) error {
	g, c := a.distGraph(0)
	if a.err == nil {
		a.setInt(1, len(g.Sources()))
		a.setInt(2, len(g.Dests()))
		a.setFlag(3, c.weighted)
	}
	return nil
}

// distGraphNeighbors stores the first neighbors, as many as the arrays have room for.
func (p *Process) distGraphNeighbors(a *args) error {
	g, c := a.distGraph(0)
	if a.err != nil {
		return nil
	}
	store := func(i int, list []mpi.Neighbor) error {
		room := a.int(i)
		if room < 0 {
			return errorf(errArg, "argument %d is %d", i+1, room)
		}
		list = list[:min(room, len(list))]
		for k, n := range list {
			memory[int32](a.addr(i+1), len(list))[k] = int32(n.Rank)
			if w := a.addr(i + 2); c.weighted && w != 0 && w != p.weights.none && w != p.weights.empty {
				memory[int32](w, len(list))[k] = int32(n.Weight)
			}
		}
		return nil
	}
	if err := store(1, g.Sources()); err != nil {
		return err
	}
	return store(4, g.Dests())
}
