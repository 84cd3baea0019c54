package flow

import (
	"fmt"
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Grid is a rank's part of the points, by multi-partition: the cube is divided into q³ cells
// for q² ranks, and the q cells of a rank lie on a diagonal, so that it has one in each slab
// of each dimension. While the lines of a dimension are solved from slab to slab, all ranks
// compute. The neighbors of all cells in a direction belong to one rank.
type Grid struct {
	Comm           *mpi.Comm
	Clock          npb.Clock
	Slabs          [3][]*Cell // the cells in the order of each dimension
	Next, Previous [3]int     // ranks of the neighbors

	n          int
	line       *Line
	send, recv [6][]State // faces, by tag
}

// NewGrid divides n points in each dimension among the ranks of c.
func NewGrid(c *mpi.Comm, n int) (*Grid, error) {
	q := int(math.Round(math.Sqrt(float64(c.Size()))))
	if q*q != c.Size() {
		return nil, fmt.Errorf("%d ranks: the number of ranks must be a square", c.Size())
	}
	if n/q < 3 {
		return nil, fmt.Errorf("%d ranks: cells have less than three of the %d points in a dimension: use fewer ranks", c.Size(), n)
	}
	// The first cell of a rank is at (x, y, 0), the next one at (x+1, y-1, 1).
	x, y := c.Rank()%q, c.Rank()/q
	rank := func(x, y int) int { return (x+q)%q + (y+q)%q*q }
	g := &Grid{
		Comm: c, n: n, line: NewLine(n),
		Next:     [3]int{rank(x+1, y), rank(x, y+1), rank(x-1, y+1)},
		Previous: [3]int{rank(x-1, y), rank(x, y-1), rank(x+1, y-1)},
	}
	for d := range 3 {
		g.Slabs[d] = make([]*Cell, q)
	}
	for z := range q {
		coords := [3]int{(x + z) % q, (y - z + q) % q, z}
		cell := newCell(z, n, q, coords)
		for d := range 3 {
			g.Slabs[d][coords[d]] = cell
		}
		cell.fill(2, Exact)
		cell.addTerms(g.line, cell.forcing)
	}
	return g, nil
}

// Cells returns the cells of the rank.
func (g *Grid) Cells() []*Cell { return g.Slabs[2] }

// Initialize sets the solution to the initial states.
func (g *Grid) Initialize() {
	for _, c := range g.Cells() {
		c.fill(0, Initial)
	}
}

// ComputeRHS computes by how much a step of length dt changes the solution if all terms are
// explicit: it is the right-hand side of the implicit systems.
func (g *Grid) ComputeRHS(dt float64) error {
	if err := g.exchange(); err != nil {
		return err
	}
	for _, c := range g.Cells() {
		c.rows(func(from, to int) {
			for at := from; at < to; at++ {
				for m, f := range c.forcing[at] {
					c.RHS[at][m] = -f
				}
			}
		})
		c.addTerms(g.line, c.RHS)
		c.rows(func(from, to int) {
			for at := from; at < to; at++ {
				for m := range c.RHS[at] {
					c.RHS[at][m] *= dt
				}
			}
		})
	}
	return nil
}

// exchange fills the ghost points of the solution: two planes on each side of a cell. There
// is one message to each side, with the planes of all cells.
func (g *Grid) exchange() error {
	q := len(g.Cells())
	if q == 1 {
		return nil
	}
	up := func(d int) int { return 2 * d } // tags of messages to the next and the previous rank
	down := func(d int) int { return 2*d + 1 }
	var reqs []mpi.Request
	g.Clock.EnterMPI()
	for d := range 3 {
		g.allocateFaces(d)
		reqs = append(reqs,
			mpi.Irecv(g.Comm, g.recv[up(d)], g.Previous[d], up(d)),
			mpi.Irecv(g.Comm, g.recv[down(d)], g.Next[d], down(d)))
	}
	g.Clock.LeaveMPI()
	for d := range 3 {
		above, below := g.send[up(d)][:0], g.send[down(d)][:0]
		for _, c := range g.Slabs[d][:q-1] {
			above = c.pack(above, d, c.Size[d]-2)
		}
		for _, c := range g.Slabs[d][1:] {
			below = c.pack(below, d, 0)
		}
		g.Clock.EnterMPI()
		reqs = append(reqs, mpi.Isend(g.Comm, above, g.Next[d], up(d)), mpi.Isend(g.Comm, below, g.Previous[d], down(d)))
		g.Clock.LeaveMPI()
	}
	g.Clock.EnterMPI()
	err := mpi.WaitAll(reqs...)
	g.Clock.LeaveMPI()
	if err != nil {
		return err
	}
	for d := range 3 {
		below, above := g.recv[up(d)], g.recv[down(d)]
		for _, c := range g.Slabs[d][1:] {
			below = c.unpack(below, d, -2)
		}
		for _, c := range g.Slabs[d][:q-1] {
			above = c.unpack(above, d, c.Size[d])
		}
	}
	return nil
}

// allocateFaces makes the buffers of a dimension when they are needed first. A cell and its
// neighbor have faces of the same size.
func (g *Grid) allocateFaces(d int) {
	if g.send[2*d] != nil {
		return
	}
	var all, first, last int
	for slab, c := range g.Slabs[d] {
		face := 2 * c.Size[(d+1)%3] * c.Size[(d+2)%3]
		all += face
		if slab == 0 {
			first = face
		}
		last = face
	}
	g.send[2*d], g.recv[2*d] = make([]State, 0, all-last), make([]State, all-first)
	g.send[2*d+1], g.recv[2*d+1] = make([]State, 0, all-first), make([]State, all-last)
}

// Add adds the right-hand side, which the solver has replaced by the change, to the solution.
func (g *Grid) Add() {
	for _, c := range g.Cells() {
		c.rows(func(from, to int) {
			for at := from; at < to; at++ {
				for m := range c.U[at] {
					c.U[at][m] += c.RHS[at][m]
				}
			}
		})
	}
}

// Residual returns the norm of the explicit change per time.
func (g *Grid) Residual(dt float64) (State, error) {
	if err := g.ComputeRHS(dt); err != nil {
		return State{}, err
	}
	norm, err := g.norm(func(c *Cell, i, j, k int) State { return c.RHS[c.At(i, j, k)] })
	for m := range norm {
		norm[m] /= dt
	}
	return norm, err
}

// SolutionError returns the norm of the difference from the exact solution.
func (g *Grid) SolutionError() (State, error) {
	return g.norm(func(c *Cell, i, j, k int) State {
		u := Exact(c.position(i, j, k))
		for m := range u {
			u[m] -= c.U[c.At(i, j, k)][m]
		}
		return u
	})
}

// norm returns the root of the mean square of a value at all inner points.
func (g *Grid) norm(value func(c *Cell, i, j, k int) State) (State, error) {
	var sum State
	for _, c := range g.Cells() {
		x, y, z := &c.Axes[0], &c.Axes[1], &c.Axes[2]
		for k := z.Lo; k < z.Hi; k++ {
			for j := y.Lo; j < y.Hi; j++ {
				for i := x.Lo; i < x.Hi; i++ {
					for m, v := range value(c, i, j, k) {
						sum[m] += v * v
					}
				}
			}
		}
	}
	if err := mpi.Allreduce(g.Comm, sum[:], sum[:], mpi.Sum); err != nil {
		return State{}, err
	}
	inner := float64(g.n - 2)
	for m := range sum {
		sum[m] = math.Sqrt(sum[m] / (inner * inner * inner))
	}
	return sum, nil
}
