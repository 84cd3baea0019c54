package mpi

// Cartesian topologies (MPI-4.1 sections 8.5.1, 8.5.5 to 8.5.7): ranks on a grid of any
// number of dimensions, in row-major order.

import (
	"fmt"
	"slices"
)

// Cart is a communicator whose ranks form a grid. Each rank has coordinates, and two
// neighbors in each dimension: one in the negative direction and one in the positive. A
// periodic dimension is closed to a ring. In other dimensions the ranks at the edge have
// the neighbor [ProcNull], so that programs need no special case there.
type Cart struct {
	*Comm
	dims    []int
	periods []bool
	coords  []int
	near    neighborhood
}

// CartCreate assigns the ranks of c to a grid of dims[0] × dims[1] × … positions. periods
// selects the periodic dimensions; nil means none. The grid may have fewer positions than
// c has ranks; ranks without a position get nil.
//
// If reorder is nil, rank p gets position p. [Near] assigns neighbors to the same node
// where it can. All ranks of c call CartCreate, with the same arguments.
func (c *Comm) CartCreate(dims []int, periods []bool, reorder Reorder) (*Cart, error) {
	h := c.beginCreate("CartCreate", CallCreate)
	g, err := c.cartCreate(dims, periods, reorder)
	return g, h.finish(err)
}

func (c *Comm) cartCreate(dims []int, periods []bool, reorder Reorder) (*Cart, error) {
	order, err := c.gridOrder("CartCreate", dims, periods, reorder)
	if err != nil {
		return nil, err
	}
	g, err := c.arrange("CartCreate", order, ".cart")
	if g == nil || err != nil {
		return nil, err
	}
	return newCart(g, dims, periods), nil
}

// CartMap returns the position that [Comm.CartCreate] would assign to the calling rank, or
// Undefined if none. All ranks of c call it, with the same arguments.
func (c *Comm) CartMap(dims []int, periods []bool, reorder Reorder) (int, error) {
	order, err := c.gridOrder("CartMap", dims, periods, reorder)
	if err != nil {
		return Undefined, err
	}
	return positionOf(order, c.rank), nil
}

func positionOf(order []int, rank int) int {
	if p := slices.Index(order, rank); p >= 0 {
		return p
	}
	return Undefined
}

// gridOrder checks the arguments and assigns ranks to positions.
func (c *Comm) gridOrder(op string, dims []int, periods []bool, reorder Reorder) ([]int, error) {
	if err := c.intra(op); err != nil {
		return nil, err
	}
	if periods != nil && len(periods) != len(dims) {
		return nil, c.refuse(ErrArg, op, "there are %d dimensions, but periods has %d elements", len(dims), len(periods))
	}
	positions := 1
	for i, d := range dims {
		if d < 1 {
			return nil, c.refuse(ErrDims, op, "dimension %d has %d positions; it needs at least 1 (DimsCreate fills in zeros)", i, d)
		}
		if positions > c.size/d {
			return nil, c.refuse(ErrDims, op, "a grid of %v has more positions than the %d ranks of %s", dims, c.size, c.Name())
		}
		positions *= d
	}
	return c.order(op, positions, reorder, func() *Arrangement {
		return gridArrangement(dims, periods, c.nodes())
	})
}

// newCart adds the grid to a communicator with as many ranks as it has positions.
func newCart(c *Comm, dims []int, periods []bool) *Cart {
	g := &Cart{Comm: c, dims: slices.Clone(dims), periods: make([]bool, len(dims))}
	copy(g.periods, periods)
	g.coords = gridCoords(dims, c.rank)
	g.near.c = c
	// Neighbors are in the order of dimensions, and in each the negative direction comes
	// first (MPI-4.1 section 8.6). A block sent in the negative direction arrives from the
	// positive one. If both neighbors are the same rank, in a ring of two or one, only the
	// order distinguishes the two messages, so receives are paired with the positive
	// direction first.
	for i := range dims {
		neg, pos := g.neighborRank(i, -1), g.neighborRank(i, +1)
		g.near.sources = append(g.near.sources, neg, pos)
		g.near.dests = append(g.near.dests, neg, pos)
		g.near.paired = append(g.near.paired, 2*i+1, 2*i)
	}
	return g
}

// gridCoords returns the coordinates of a position.
func gridCoords(dims []int, position int) []int {
	out := make([]int, len(dims))
	for i := len(dims) - 1; i >= 0; i-- {
		out[i] = position % dims[i]
		position /= dims[i]
	}
	return out
}

// gridPosition returns the position with the given coordinates, or ProcNull if they are
// outside of the grid.
func gridPosition(dims []int, periods []bool, coords []int) int {
	position := 0
	for i, x := range coords {
		if x < 0 || x >= dims[i] {
			if periods == nil || !periods[i] {
				return ProcNull
			}
			x = (x%dims[i] + dims[i]) % dims[i]
		}
		position = position*dims[i] + x
	}
	return position
}

// neighborRank returns the rank some steps away in one dimension.
func (g *Cart) neighborRank(dim, steps int) int {
	at := slices.Clone(g.coords)
	at[dim] += steps % g.dims[dim] // at most once around a ring
	if !g.periods[dim] {
		at[dim] = g.coords[dim] + steps
	}
	return gridPosition(g.dims, g.periods, at)
}

// Dims returns the number of positions in each dimension.
func (g *Cart) Dims() []int { return slices.Clone(g.dims) }

// Periods reports which dimensions are periodic.
func (g *Cart) Periods() []bool { return slices.Clone(g.periods) }

// MyCoords returns the coordinates of the calling rank.
func (g *Cart) MyCoords() []int { return slices.Clone(g.coords) }

// Coords returns the coordinates of a rank.
func (g *Cart) Coords(rank int) ([]int, error) {
	if err := g.checkPeer("Coords", rank, 0); err != nil {
		return nil, err
	}
	if rank == ProcNull {
		return nil, g.refuse(ErrRank, "Coords", "ProcNull has no coordinates")
	}
	return gridCoords(g.dims, rank), nil
}

// RankOf returns the rank with the given coordinates. In periodic dimensions, coordinates
// outside of the grid wrap around; in others they are an error.
func (g *Cart) RankOf(coords ...int) (int, error) {
	if len(coords) != len(g.dims) {
		return ProcNull, g.refuse(ErrArg, "RankOf", "the grid has %d dimensions, not %d", len(g.dims), len(coords))
	}
	rank := gridPosition(g.dims, g.periods, coords)
	if rank == ProcNull {
		return ProcNull, g.refuse(ErrArg, "RankOf", "coordinates %v are outside of the grid %v, periodic %v", coords, g.dims, g.periods)
	}
	return rank, nil
}

// Shift returns the source and destination of a shift by some steps in one dimension, in
// the negative direction if steps is negative. They suit [Sendrecv]; beyond an edge they
// are ProcNull.
func (g *Cart) Shift(dim, steps int) (src, dst int, err error) {
	if dim < 0 || dim >= len(g.dims) {
		return ProcNull, ProcNull, g.refuse(ErrDims, "Shift", "there is no dimension %d: the grid has dimensions 0 to %d", dim, len(g.dims)-1)
	}
	return g.neighborRank(dim, -steps), g.neighborRank(dim, steps), nil
}

// Sub divides the grid into grids of the dimensions that keep selects, and returns the one
// that the calling rank is in. With the first of two dimensions kept, that is its column.
// All ranks call it, with the same argument.
func (g *Cart) Sub(keep []bool) (*Cart, error) {
	h := g.beginCreate("Sub", CallCreate)
	s, err := g.subGrid(keep)
	return s, h.finish(err)
}

func (g *Cart) subGrid(keep []bool) (*Cart, error) {
	if len(keep) != len(g.dims) {
		return nil, g.refuse(ErrArg, "Sub", "the grid has %d dimensions, but keep has %d elements", len(g.dims), len(keep))
	}
	var dims []int
	var periods []bool
	color, key := 0, 0
	for i, k := range keep {
		if !k {
			color = color*g.dims[i] + g.coords[i]
			continue
		}
		key = key*g.dims[i] + g.coords[i]
		dims, periods = append(dims, g.dims[i]), append(periods, g.periods[i])
	}
	c, err := g.split(color, key)
	if err != nil {
		return nil, err
	}
	c.SetName(fmt.Sprintf("%s.sub(%d)", g.Name(), color))
	return newCart(c, dims, periods), nil
}

// Dup returns the same grid with its own context: see [Comm.Dup].
func (g *Cart) Dup() (*Cart, error) {
	c, err := g.Comm.Dup()
	if err != nil {
		return nil, err
	}
	return newCart(c, g.dims, g.periods), nil
}

// Idup starts a Dup: see [Comm.Idup].
func (g *Cart) Idup() (*Cart, Request) {
	c, r := g.Comm.Idup()
	if c == nil {
		return nil, r
	}
	return newCart(c, g.dims, g.periods), r
}

// Neighborhood returns the neighbors one step away, by dimension, and in each the negative
// direction first. It implements [Topology].
func (g *Cart) Neighborhood() (sources, dests []int) { return g.near.lists() }

func (g *Cart) neighbors() *neighborhood { return &g.near }
