package mpi

// Topologies: communicators that know who talks to whom (MPI-4.1 chapter 8). A
// topology is made in three steps that are the same for a grid, a graph and a
// distributed graph: the positions and the edges between them are checked; a Reorder
// may choose which rank takes which position (topo_reorder.go); and the communicator
// of the ranks in that order is made. What differs is in topo_cart.go,
// topo_graph.go and topo_dist.go.

import "slices"

// Topology is a communicator whose ranks have neighbors: a [Cart], a [Graph] or
// a [DistGraph]. It is what the neighborhood collectives work on, such as
// [NeighborAlltoall], in which ranks exchange with their neighbors only.
type Topology interface {
	// Neighborhood gives the ranks that this rank receives from and those that
	// it sends to, in the order in which their blocks lie in the buffers of
	// neighborhood collectives. At the edge of a grid there are ProcNulls.
	Neighborhood() (sources, dests []int)
	neighbors() *neighborhood
}

// neighborhood is what neighborhood collectives need.
type neighborhood struct {
	c              *Comm
	sources, dests []int
	// paired says how blocks that the same rank sends meet receives: the n-th that
	// goes to a rank is the n-th there in the order paired of its sources; nil: in
	// their own order.
	paired []int
	// refused says why there can be no neighborhood collectives.
	refused error
}

func (n *neighborhood) lists() (sources, dests []int) {
	return slices.Clone(n.sources), slices.Clone(n.dests)
}

// arrange makes the communicator of a topology: its rank p is the rank order[p]
// of c. Those who have no position get nil.
func (c *Comm) arrange(op string, order []int, name string) (*Comm, error) {
	id, err := c.agree(op)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(order, c.rank) {
		return nil, nil
	}
	return c.sub(id, order, c.name+name), nil
}

// order asks a Reorder who takes which position: a permutation, or a choice if there
// are fewer positions than ranks. Rank 0 asks and tells the others, so that a
// function which does not always answer the same does no harm. Only rank 0 calls
// describe, which may cost much.
func (c *Comm) order(op string, positions int, reorder Reorder, describe func() *Arrangement) ([]int, error) {
	order := make([]int, positions)
	if reorder == nil {
		for p := range order {
			order[p] = p
		}
		return order, nil
	}
	if err := c.usable(op); err != nil {
		return nil, err
	}
	wire := make([]int64, positions+1) // the first says whether the answer is usable
	if c.rank == 0 {
		answer := reorder(describe())
		if wrong, ok := distinct(answer, positions, c.size); ok {
			for p, r := range answer {
				wire[p+1] = int64(r)
			}
		} else {
			wire[0] = 1 + int64(wrong)
		}
	}
	if err := c.bcast(op, rawBytes(wire), 0); err != nil {
		return nil, err
	}
	if wire[0] != 0 {
		return nil, c.refuse(ErrArg, op, "the Reorder does not answer with %d different ranks of 0 to %d: element %d is wrong or missing",
			positions, c.size-1, wire[0]-1)
	}
	for p := range order {
		order[p] = int(wire[p+1])
	}
	return order, nil
}

// distinct reports whether ranks holds n different numbers below size, and where
// not.
func distinct(ranks []int, n, size int) (wrong int, ok bool) {
	seen := make([]bool, size)
	for i, r := range ranks {
		if i >= n || r < 0 || r >= size || seen[r] {
			return i, false
		}
		seen[r] = true
	}
	return len(ranks), len(ranks) == n
}

// nodes gives the node of each rank.
func (c *Comm) nodes() []int {
	out := make([]int, c.size)
	for r := range out {
		out[r] = c.w.client.Node(c.world(r))
	}
	return out
}

// together makes a call fail on all ranks if the arguments of one cannot be used,
// for calls whose arguments differ between ranks: else the others would wait for a
// rank that has left.
func (c *Comm) together(op string, mine error) error {
	if err := c.intra(op); err != nil {
		return err
	}
	first := []int64{int64(c.size)}
	if mine != nil {
		first[0] = int64(c.rank)
	}
	if err := allreduce(c, op, first, first, Min[int64]()); err != nil {
		return err
	}
	if mine == nil && first[0] < int64(c.size) {
		return c.refuse(ErrArg, op, "rank %d gave arguments that cannot be used; its error says why", first[0])
	}
	return mine
}
