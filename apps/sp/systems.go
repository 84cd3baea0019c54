package sp

import "github.com/muster-mpi/muster/apps/internal/flow"

// The systems of a line, by the speed of their variable. Components 0 to 2 have that of the
// fluid.
const (
	withFluid = iota
	faster    // by the speed of sound: component 3
	slower    // component 4
	kinds
)

// bands are the coefficients of an equation of each system: of the points two before, one
// before, at, one after and two after it.
type bands [kinds][5]float64

// upper are the coefficients of a reduced equation of each system: of the next two points. That
// of its own is 1.
type upper [kinds][2]float64

// equation is a reduced one, with its right-hand side.
type equation struct {
	upper upper
	rhs   flow.State
}

// front is what the elimination of a line passes on: the reduced equations of the last two
// points, the last one first. solution is what the substitution passes back.
type (
	front    [2]equation
	solution [2]flow.State
)

// systems are the pentadiagonal systems of a rank. The arrays hold a line after the other.
type systems struct {
	dt    float64
	upper [][]upper // by cell: kept for the back-substitution
	bands []bands   // of one cell, or of one line if a rank has only one cell
}

func newSystems(g *flow.Grid, dt float64) *systems {
	s := &systems{dt: dt, upper: make([][]upper, len(g.Cells()))}
	most := 0
	for i, c := range g.Cells() {
		points := c.Size[0] * c.Size[1] * c.Size[2]
		s.upper[i] = make([]upper, points)
		if len(g.Cells()) == 1 {
			points = c.Size[0]
		}
		most = max(most, points)
	}
	s.bands = make([]bands, most)
	return s
}

// Form computes the coefficients of all lines of a cell.
func (s *systems) Form(d int, c *flow.Cell) {
	n := c.Size[d]
	c.EachLine(d, func(line, start int) { s.formLine(d, c, start, line*n) })
}

// formLine computes the coefficients of a line from index at on.
func (s *systems) formLine(d int, c *flow.Cell, start, at int) {
	a := &c.Axes[d]
	lines := s.bands[at : at+c.Size[d]]
	t1, t2 := s.dt*a.T1, s.dt*a.T2
	for p := a.Lo - 1; p <= a.Hi; p++ {
		u := &c.U[start+p*a.Stride]
		x, y, z, _, sound := fluid(u)
		velocity := [3]float64{x, y, z}[d]
		// The largest coefficient of diffusion, that of energy, for all components.
		diffusion := t1 * (a.Diffusion + flow.C1345/u[0])
		for kind, speed := range [kinds]float64{velocity, velocity + sound, velocity - sound} {
			if p+1 < a.Hi {
				lines[p+1][kind][1] = -t2*speed - diffusion
			}
			if p >= a.Lo && p < a.Hi {
				lines[p][kind][2] = 1 + 2*diffusion
			}
			if p-1 >= a.Lo {
				lines[p-1][kind][3] = t2*speed - diffusion
			}
		}
	}
	for p := a.Lo; p < a.Hi; p++ {
		w := flow.DissipationWeights(a.First+p, a.N)
		for kind := range kinds {
			b := &lines[p][kind]
			b[0], b[4] = 0, 0
			for i := range b {
				b[i] += s.dt * flow.Dissipation * w[i]
			}
		}
	}
}

// Eliminate reduces the lines of a cell. The lines of the first cell are formed one by one,
// while they are in the cache.
func (s *systems) Eliminate(d int, c *flow.Cell, in, out []front) {
	a, n := &c.Axes[d], c.Size[d]
	c.EachLine(d, func(line, start int) {
		at := line * n
		var last front // zero at the boundary, where nothing changes
		if in != nil {
			last = in[line]
		} else {
			at = 0
			s.formLine(d, c, start, at)
		}
		lines, reduced := s.bands[at:at+n], s.upper[c.Index][line*n:][:n]
		for p := a.Lo; p < a.Hi; p++ {
			r := &c.RHS[start+p*a.Stride]
			reduce(&lines[p], &last, r)
			last = front{{rhs: *r}, last[0]}
			for kind := range kinds {
				last[0].upper[kind] = [2]float64{lines[p][kind][3], lines[p][kind][4]}
			}
			reduced[p] = last[0].upper
		}
		if out != nil {
			out[line] = last
		}
	})
}

// reduce subtracts the equations of the two points before from those of a point, so that only
// the coefficients of the points after it remain, and divides by that of its own.
func reduce(b *bands, last *front, r *flow.State) {
	one, two := &last[0], &last[1]
	var below, before, scale [kinds]float64
	for kind := range kinds {
		row := &b[kind]
		below[kind] = row[0]
		before[kind] = row[1] - row[0]*two.upper[kind][0]
		scale[kind] = 1 / (row[2] - row[0]*two.upper[kind][1] - before[kind]*one.upper[kind][0])
		row[3] = (row[3] - before[kind]*one.upper[kind][1]) * scale[kind]
		row[4] *= scale[kind]
	}
	for m, kind := range [5]int{withFluid, withFluid, withFluid, faster, slower} {
		r[m] = (r[m] - below[kind]*two.rhs[m] - before[kind]*one.rhs[m]) * scale[kind]
	}
}

// Substitute solves the reduced lines of a cell. The change is zero at the boundary.
func (s *systems) Substitute(d int, c *flow.Cell, in, out []solution) {
	a, n := &c.Axes[d], c.Size[d]
	c.EachLine(d, func(line, start int) {
		reduced := s.upper[c.Index][line*n:][:n]
		var next solution
		if in != nil {
			next = in[line]
		}
		for p := a.Hi - 1; p >= a.Lo; p-- {
			r := &c.RHS[start+p*a.Stride]
			for m, kind := range [5]int{withFluid, withFluid, withFluid, faster, slower} {
				r[m] -= reduced[p][kind][0]*next[0][m] + reduced[p][kind][1]*next[1][m]
			}
			next = solution{*r, next[0]}
		}
		if out != nil {
			out[line] = next
		}
	})
}
