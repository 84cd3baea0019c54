package lu

import (
	"fmt"

	"github.com/muster-mpi/muster/apps/internal/flow"
	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// cell is the state at a point.
type cell = flow.State

// omega is the factor of over-relaxation.
const omega = 1.2

// solver is a rank's part of the grid. Arrays have two ghost points at each end of x and y,
// and one of z, which is read but has no effect.
type solver struct {
	c          *mpi.Comm // the ranks as a grid: y, x
	clock      npb.Clock
	nx, ny, nz int // points of this rank
	x, y, z    flow.Axis
	dt         float64

	u, rsd, forcing []cell
	line            *flow.Line

	north, south, west, east int    // ranks next in -x, +x, -y, +y, or ProcNull
	edge                     []cell // a packed column or row of a plane
	edgeX, edgeY             *mpi.Layout[cell]
}

func newSolver(c *mpi.Comm, p params) (*solver, error) {
	dims, err := mpi.DimsCreate(c.Size(), []int{0, 0})
	if err != nil {
		return nil, err
	}
	dims[0], dims[1] = dims[1], dims[0]
	if p.n/dims[1] < 3 {
		return nil, fmt.Errorf("%d ranks: a grid of %d×%d leaves less than three of the %d points in x to a rank: use fewer ranks",
			c.Size(), dims[1], dims[0], p.n)
	}
	cart, err := c.CartCreate(dims, nil, nil)
	if err != nil {
		return nil, err
	}
	coords := cart.MyCoords()
	s := &solver{c: cart.Comm, nz: p.n, dt: p.dt, line: flow.NewLine(p.n)}
	share := func(dim int) (first, count int) {
		first, end := p.n*coords[dim]/dims[dim], p.n*(coords[dim]+1)/dims[dim]
		return first, end - first
	}
	firstY, ny := share(0)
	firstX, nx := share(1)
	s.nx, s.ny = nx, ny
	s.x = flow.NewAxis(1, p.n, 1, firstX, nx)
	s.y = flow.NewAxis(2, p.n, nx+4, firstY, ny)
	s.z = flow.NewAxis(3, p.n, (nx+4)*(ny+4), 0, p.n)
	if s.west, s.east, err = cart.Shift(0, 1); err != nil {
		return nil, err
	}
	if s.north, s.south, err = cart.Shift(1, 1); err != nil {
		return nil, err
	}
	s.edge = make([]cell, max(nx, ny))
	if s.edgeX, err = mpi.Vector[cell]((ny+4)*s.nz, 2, s.y.Stride); err != nil {
		return nil, err
	}
	if s.edgeY, err = mpi.Vector[cell](s.nz, 2*s.y.Stride, s.z.Stride); err != nil {
		return nil, err
	}
	cells := s.z.Stride * (s.nz + 2)
	s.u, s.rsd, s.forcing = make([]cell, cells), make([]cell, cells), make([]cell, cells)
	s.force()
	return s, nil
}

// at returns the index of a local point.
func (s *solver) at(i, j, k int) int {
	return (k+1)*s.z.Stride + (j+2)*s.y.Stride + i + 2
}

// rows calls fn with the index range of each row of inner points.
func (s *solver) rows(fn func(from, to int)) {
	for k := s.z.Lo; k < s.z.Hi; k++ {
		for j := s.y.Lo; j < s.y.Hi; j++ {
			fn(s.at(s.x.Lo, j, k), s.at(s.x.Hi, j, k))
		}
	}
}

// scale multiplies the residual by the length of the step.
func (s *solver) scale() {
	s.rows(func(from, to int) {
		for at := from; at < to; at++ {
			for m := range s.rsd[at] {
				s.rsd[at][m] *= s.dt
			}
		}
	})
}

// update adds the relaxed correction to the solution.
func (s *solver) update() {
	const weight = 1 / (omega * (2 - omega))
	s.rows(func(from, to int) {
		for at := from; at < to; at++ {
			for m := range s.u[at] {
				s.u[at][m] += weight * s.rsd[at][m]
			}
		}
	})
}
