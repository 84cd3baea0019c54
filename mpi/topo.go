package mpi

// Topologies: communicators whose ranks have neighbors (MPI-4.1 chapter 8). A topology is
// created in three steps that are the same for a grid, a graph and a distributed graph:
// the positions and the edges between them are checked; a Reorder may assign ranks to
// positions (topo_reorder.go); and the communicator of the ranks in that order is created.
// The differences are in topo_cart.go, topo_graph.go and topo_dist.go.

import "slices"

// Topology is a communicator whose ranks have neighbors: a [Cart], a [Graph] or a
// [DistGraph]. Neighborhood collectives such as [NeighborAlltoall], in which ranks
// exchange data with their neighbors only, take one.
type Topology interface {
	// Neighborhood returns the ranks that the calling rank receives from and those
	// that it sends to, in the order of their blocks in the buffers of neighborhood
	// collectives. At the edge of a grid they include ProcNull.
	Neighborhood() (sources, dests []int)
	neighbors() *neighborhood
}

// neighborhood is the data that neighborhood collectives use.
type neighborhood struct {
	c              *Comm
	sources, dests []int
	// paired is the order of the sources in which receives match the blocks that one
	// rank sends: the n-th block sent to a rank matches the n-th receive from it in this
	// order; nil: in the order of sources.
	paired []int
	// refused is why neighborhood collectives are not possible, or nil.
	refused error
}

func (n *neighborhood) lists() (sources, dests []int) {
	return slices.Clone(n.sources), slices.Clone(n.dests)
}

// arrange creates the communicator of a topology: its rank p is the rank order[p] of c.
// Ranks without a position get nil.
func (c *Comm) arrange(op string, order []int, name string) (*Comm, error) {
	id, err := c.agree(op)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(order, c.rank) {
		return nil, nil
	}
	return c.sub(id, listOf(order), c.Name()+name), nil
}

// order calls a Reorder to assign ranks to positions. The result is a permutation, or a
// selection if there are fewer positions than ranks. Rank 0 calls it and broadcasts the
// result, so that a function whose results vary does no harm. Only rank 0 calls describe,
// which may be expensive.
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
	wire := make([]int64, positions+1) // the first is 0 if the result is valid
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
		return nil, c.refuse(ErrArg, op, "the Reorder does not return %d different ranks of 0 to %d: element %d is wrong or missing",
			positions, c.size-1, wire[0]-1)
	}
	for p := range order {
		order[p] = int(wire[p+1])
	}
	return order, nil
}

// distinct reports whether ranks holds n different numbers below size; if not, wrong is
// the index of the first error.
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

// nodes returns the node of each rank.
func (c *Comm) nodes() []int {
	out := make([]int, c.size)
	for r := range out {
		out[r] = c.w.client.Node(c.world(r))
	}
	return out
}

// together makes a call fail on all ranks if the arguments of one rank are invalid, for
// calls whose arguments differ between ranks. Otherwise the others would wait for a rank
// that has already returned.
func (c *Comm) together(op string, mine error) error {
	if err := c.intra(op); err != nil {
		return err
	}
	first := []int64{int64(c.size)}
	if mine != nil {
		first[0] = int64(c.rank)
	}
	if err := allreduce(c, op, first, first, Min); err != nil {
		return err
	}
	if mine == nil && first[0] < int64(c.size) {
		return c.refuse(ErrArg, op, "rank %d passed invalid arguments; its error says why", first[0])
	}
	return mine
}
