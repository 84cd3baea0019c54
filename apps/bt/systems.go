package bt

import "github.com/muster-mpi/muster/apps/internal/flow"

// front is what the elimination of a line passes on: the reduced equation of the last point.
type front struct {
	upper matrix
	rhs   flow.State
}

// systems are the block-tridiagonal systems of a rank. The arrays hold a line after the other.
type systems struct {
	dt              float64
	upper           [][]matrix // by cell: kept for the back-substitution
	lower, diagonal []matrix   // of one cell, or of one line if a rank has only one cell
}

func newSystems(g *flow.Grid, dt float64) *systems {
	s := &systems{dt: dt, upper: make([][]matrix, len(g.Cells()))}
	most := 0
	for i, c := range g.Cells() {
		points := c.Size[0] * c.Size[1] * c.Size[2]
		s.upper[i] = make([]matrix, points)
		if len(g.Cells()) == 1 {
			points = c.Size[0]
		}
		most = max(most, points)
	}
	s.lower, s.diagonal = make([]matrix, most), make([]matrix, most)
	return s
}

// Form computes the matrices of all lines of a cell.
func (s *systems) Form(d int, c *flow.Cell) {
	n := c.Size[d]
	c.EachLine(d, func(line, start int) { s.formLine(d, c, line, start, line*n) })
}

// formLine computes the matrices of a line, lower and diagonal from index at on. The change
// at a point is coupled to the fluxes at the point itself and at its two neighbors.
func (s *systems) formLine(d int, c *flow.Cell, line, start, at int) {
	a, n := &c.Axes[d], c.Size[d]
	lower, diagonal, upper := s.lower[at:at+n], s.diagonal[at:at+n], s.upper[c.Index][line*n:][:n]
	t1, t2 := s.dt*a.T1, s.dt*a.T2
	own := t1 * a.Diffusion
	var convection, diffusion matrix
	for p := a.Lo - 1; p <= a.Hi; p++ {
		setJacobians(&convection, &diffusion, a, &c.U[start+p*a.Stride])
		if p+1 < a.Hi {
			combine(&lower[p+1], &convection, -t2, &diffusion, -t1, -own)
		}
		if p >= a.Lo && p < a.Hi {
			combine(&diagonal[p], &convection, 0, &diffusion, 2*t1, 1+2*own)
		}
		if p-1 >= a.Lo {
			combine(&upper[p-1], &convection, t2, &diffusion, -t1, -own)
		}
	}
}

// combine sets x to u·a + v·b + w.
func combine(x, a *matrix, u float64, b *matrix, v, w float64) {
	for i := range x {
		to, ra, rb := &x[i], &a[i], &b[i]
		for j := range to {
			to[j] = u*ra[j] + v*rb[j]
		}
		to[i] += w
	}
}

// Eliminate reduces the lines of a cell. The lines of the first cell are formed one by one,
// while they are in the cache.
func (s *systems) Eliminate(d int, c *flow.Cell, in, out []front) {
	a, n := &c.Axes[d], c.Size[d]
	c.EachLine(d, func(line, start int) {
		at := line * n
		if in == nil {
			at = 0
			s.formLine(d, c, line, start, at)
		}
		lower, diagonal, upper := s.lower[at:at+n], s.diagonal[at:at+n], s.upper[c.Index][line*n:][:n]
		for p := a.Lo; p < a.Hi; p++ {
			r := &c.RHS[start+p*a.Stride]
			switch {
			case p > a.Lo:
				subtractProduct(&diagonal[p], r, &lower[p], &upper[p-1], &c.RHS[start+(p-1)*a.Stride])
			case in != nil:
				subtractProduct(&diagonal[p], r, &lower[p], &in[line].upper, &in[line].rhs)
			}
			divide(&diagonal[p], &upper[p], r)
		}
		if out != nil {
			out[line] = front{upper[n-1], c.RHS[start+(n-1)*a.Stride]}
		}
	})
}

// Substitute solves the reduced lines of a cell. The change is zero at the boundary.
func (s *systems) Substitute(d int, c *flow.Cell, in, out []flow.State) {
	a, n := &c.Axes[d], c.Size[d]
	c.EachLine(d, func(line, start int) {
		upper := s.upper[c.Index][line*n:][:n]
		var next flow.State
		if in != nil {
			next = in[line]
		}
		for p := a.Hi - 1; p >= a.Lo; p-- {
			r := &c.RHS[start+p*a.Stride]
			for i := range r {
				row := &upper[p][i]
				r[i] -= row[0]*next[0] + row[1]*next[1] + row[2]*next[2] + row[3]*next[3] + row[4]*next[4]
			}
			next = *r
		}
		if out != nil {
			out[line] = next
		}
	})
}
