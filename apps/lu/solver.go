package lu

import (
	"fmt"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// cell is the state at a point: density, momentum in x, y and z, and energy, per volume.
type cell [5]float64

// Constants of the equations and of the method.
const (
	c1, c2 = 1.4, 0.4 // ratio of specific heats, and the same minus 1
	c5     = 1.4
	c34    = 0.1 // viscosity
	c1345  = c1 * c34 * c5
	r43    = 4.0 / 3

	omega       = 1.2  // over-relaxation
	dissipation = 0.25 // of fourth order
)

// axis is a dimension of the grid.
type axis struct {
	m          int // index of its momentum in a cell
	n          int // points of the whole grid
	stride     int // between neighboring points in memory
	first      int // global index of the rank's first point
	lo, hi     int // the rank's inner points: local indices from lo to hi-1
	diffusion  float64
	t1, t2, t3 float64    // 1/h², 1/2h and 1/h
	k          [4]float64 // factors of the viscous terms of the momenta, index 1 to 3
}

// solver is a rank's part of the grid. Arrays have two ghost points at each end of x and y,
// and one of z, which is read but has no effect.
type solver struct {
	c          *mpi.Comm // the ranks as a grid: y, x
	clock      npb.Clock
	nx, ny, nz int // points of this rank
	x, y, z    axis
	dt         float64

	u, rsd, forcing []cell
	viscous, flux   []cell // of a line
	speed           []cell // of a line: twice the kinetic energy, velocities, energy, per mass

	north, south, west, east int // ranks next in -x, +x, -y, +y, or ProcNull
	columns                  *mpi.Layout[cell]
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
	s := &solver{c: cart.Comm, nz: p.n, dt: p.dt}
	share := func(dim int) (first, count int) {
		first, end := p.n*coords[dim]/dims[dim], p.n*(coords[dim]+1)/dims[dim]
		return first, end - first
	}
	firstY, ny := share(0)
	firstX, nx := share(1)
	s.nx, s.ny = nx, ny
	s.x = newAxis(1, p.n, 1, firstX, nx, 0.75)
	s.y = newAxis(2, p.n, nx+4, firstY, ny, 0.75)
	s.z = newAxis(3, p.n, (nx+4)*(ny+4), 0, p.n, 1)
	if s.west, s.east, err = cart.Shift(0, 1); err != nil {
		return nil, err
	}
	if s.north, s.south, err = cart.Shift(1, 1); err != nil {
		return nil, err
	}
	if s.columns, err = mpi.Vector[cell](ny, 1, s.y.stride); err != nil {
		return nil, err
	}
	if s.edgeX, err = mpi.Vector[cell]((ny+4)*s.nz, 2, s.y.stride); err != nil {
		return nil, err
	}
	if s.edgeY, err = mpi.Vector[cell](s.nz, 2*s.y.stride, s.z.stride); err != nil {
		return nil, err
	}
	cells := s.z.stride * (s.nz + 2)
	s.u, s.rsd, s.forcing = make([]cell, cells), make([]cell, cells), make([]cell, cells)
	s.viscous, s.flux, s.speed = make([]cell, p.n+2), make([]cell, p.n+2), make([]cell, p.n+2)
	s.force()
	return s, nil
}

func newAxis(m, n, stride, first, count int, diffusion float64) axis {
	h := float64(n - 1)
	a := axis{m: m, n: n, stride: stride, first: first, hi: count, diffusion: diffusion, t1: h * h, t2: h / 2, t3: h, k: [4]float64{0, 1, 1, 1}}
	a.k[m] = r43
	if first == 0 {
		a.lo = 1 // the boundary of the grid is fixed
	}
	if first+count == n {
		a.hi--
	}
	return a
}

// at returns the index of a local point.
func (s *solver) at(i, j, k int) int {
	return (k+1)*s.z.stride + (j+2)*s.y.stride + i + 2
}

// rows calls fn with the index range of each row of inner points.
func (s *solver) rows(fn func(from, to int)) {
	for k := s.z.lo; k < s.z.hi; k++ {
		for j := s.y.lo; j < s.y.hi; j++ {
			fn(s.at(s.x.lo, j, k), s.at(s.x.hi, j, k))
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
