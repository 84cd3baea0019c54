package core

// Topologies: what all have in common, and grids (MPI-4.1 sections 8.5.1, 8.5.2 and 8.5.5 to
// 8.5.8).

import (
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

func topologies() map[string]handler {
	return map[string]handler{
		"Topo_test":   (*Process).topoTest,
		"Dims_create": (*Process).dimsCreate,
		"Cart_create": (*Process).cartCreate,
		"Cart_map":    (*Process).cartMap,
		"Cartdim_get": query((*args).cart, func(g *mpi.Cart) int { return len(g.Dims()) }),
		"Cart_get":    (*Process).cartGet,
		"Cart_rank":   (*Process).cartRank,
		"Cart_coords": (*Process).cartCoords,
		"Cart_shift":  (*Process).cartShift,
		"Cart_sub":    (*Process).cartSub,
	}
}

// Kinds of topologies of MPI_Topo_test.
const (
	topoGraph     = 1
	topoCart      = 2
	topoDistGraph = 3
)

func (p *Process) topoTest(a *args) error {
	c := a.comm(0)
	kind := undefined
	switch c.topo.(type) {
	case *mpi.Cart:
		kind = topoCart
	case *mpi.Graph:
		kind = topoGraph
	case *mpi.DistGraph:
		kind = topoDistGraph
	}
	a.setInt(1, kind)
	return nil
}

// reorder is what makes the order of ranks of a topology: neighbors are on the same node where
// possible, if the program allows it.
func (a *args) reorder(i int) mpi.Reorder {
	if a.int(i) != 0 {
		return mpi.Near
	}
	return nil
}

// flags returns n logical values of an array of int.
func (a *args) flags(i, n int) []bool {
	out := make([]bool, n)
	for k, v := range memory[int32](a.addr(i), n) {
		out[k] = v != 0
	}
	return out
}

// peerOf converts a rank of package mpi.
func peerOf(rank int) int {
	if rank == mpi.ProcNull {
		return procNull
	}
	return rank
}

func (p *Process) dimsCreate(a *args) error {
	n, k := a.int(0), a.int(1)
	switch {
	case n <= 0:
		return errorf(errArg, "the number of nodes is %d", n)
	case k < 0:
		return errorf(errDims, "the number of dimensions is %d", k)
	case k == 0:
		return nil
	}
	if a.results(2); a.err != nil {
		return nil
	}
	dims, err := mpi.DimsCreate(n, a.shorts(2, k))
	if err == nil {
		a.setInts(2, dims)
	}
	return err
}

// grid returns the dimensions of a grid, which are in the positions n, dims and periods.
func (a *args) grid(n int) (dims []int, periods []bool) {
	k := a.int(n)
	if k < 0 {
		a.fail(errorf(errDims, "the number of dimensions is %d", k))
		return nil, nil
	}
	if k > 0 {
		a.results(n+1, n+2)
	}
	if a.err != nil {
		return nil, nil
	}
	dims, periods = a.shorts(n+1, k), a.flags(n+2, k)
	for i, d := range dims {
		if d < 0 {
			a.fail(errorf(errDims, "dimension %d is %d", i, d))
		}
	}
	return dims, periods
}

func (p *Process) cartCreate(a *args) error {
	c := a.intra(0)
	dims, periods := a.grid(1)
	if a.err != nil {
		return nil
	}
	if err := fits(dims, c.Size()); err != nil {
		a.setHandle(5, commNull)
		return err
	}
	g, err := c.CartCreate(dims, periods, a.reorder(4))
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

// fits returns an error if a grid has more positions than there are ranks.
func fits(dims []int, size int) error {
	n := 1
	for _, d := range dims {
		if d > 0 && n > size/d {
			return errorf(errArg, "a grid of %v has more positions than the %d ranks", dims, size)
		}
		n *= d
	}
	return nil
}

func (p *Process) cartMap(a *args) error {
	c := a.intra(0)
	dims, periods := a.grid(1)
	if a.err != nil {
		return nil
	}
	if err := fits(dims, c.Size()); err != nil {
		return err
	}
	rank, err := c.CartMap(dims, periods, mpi.Near)
	if err == nil {
		a.setInt(4, rank)
	}
	return err
}

// cart returns the grid of a communicator.
func (a *args) cart(i int) *mpi.Cart {
	g, _ := topologyOf[*mpi.Cart](a, i, "grid")
	return g
}

// topologyOf returns the topology of a communicator, which must be of type T.
func topologyOf[T mpi.Topology](a *args, i int, kind string) (topology T, c *comm) {
	if c = a.comm(i); c == nil {
		return topology, nil
	}
	topology, ok := c.topo.(T)
	if !ok {
		a.fail(errorf(errTopology, "%s is not a %s", c.Name(), kind))
	}
	return topology, c
}

func (p *Process) cartGet(a *args) error {
	g, room := a.cart(0), a.int(1)
	if a.err != nil {
		return nil
	}
	dims := g.Dims()
	if len(dims) == 0 {
		return nil
	}
	if room < len(dims) {
		return errorf(errArg, "the grid has %d dimensions, and the arrays have %d elements", len(dims), room)
	}
	if a.results(2, 3, 4); a.err != nil {
		return nil
	}
	a.setInts(2, dims)
	for i, v := range g.Periods() {
		memory[int32](a.addr(3), len(dims))[i] = flag(v)
	}
	a.setInts(4, g.MyCoords())
	return nil
}

func (p *Process) cartRank(a *args) error {
	g := a.cart(0)
	if a.err != nil {
		return nil
	}
	n := len(g.Dims())
	if n > 0 {
		if a.results(1); a.err != nil {
			return nil
		}
	}
	rank, err := g.RankOf(a.shorts(1, n)...)
	if err == nil {
		a.setInt(2, rank)
	}
	return err
}

func (p *Process) cartCoords(a *args) error {
	g, rank, room := a.cart(0), a.int(1), a.int(2)
	if a.err != nil {
		return nil
	}
	if rank < 0 || rank >= g.Size() {
		return errorf(errRank, "rank %d is not one of 0 to %d", rank, g.Size()-1)
	}
	coords, err := g.Coords(rank)
	if err != nil || len(coords) == 0 {
		return err
	}
	if room < len(coords) {
		return errorf(errArg, "the grid has %d dimensions, and the array has %d elements", len(coords), room)
	}
	if a.results(3); a.err == nil {
		a.setInts(3, coords)
	}
	return nil
}

func (p *Process) cartShift(a *args) error {
	g, dim, steps := a.cart(0), a.int(1), a.int(2)
	if a.err != nil {
		return nil
	}
	if dim < 0 || dim >= len(g.Dims()) {
		return errorf(errArg, "there is no dimension %d: the grid has %d", dim, len(g.Dims()))
	}
	src, dst, err := g.Shift(dim, steps)
	if err == nil {
		a.setInt(3, peerOf(src))
		a.setInt(4, peerOf(dst))
	}
	return err
}

func (p *Process) cartSub(a *args) error {
	g := a.cart(0)
	if a.err != nil {
		return nil
	}
	n := len(g.Dims())
	if n > 0 {
		if a.results(1); a.err != nil {
			return nil
		}
	}
	keep := a.flags(1, n)
	var sub *mpi.Cart
	var err error
	if slices.Contains(keep, true) {
		sub, err = g.Sub(keep)
	} else { // as in MPICH, a grid without dimensions has one rank, and the others have none
		sub, err = g.CartCreate(nil, nil, nil)
	}
	if err != nil {
		return err
	}
	if sub == nil {
		a.setHandle(2, commNull)
		return nil
	}
	a.addComm(2, sub.Comm, a.comm(0)).topo = sub
	return nil
}
