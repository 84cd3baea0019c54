package flow

// Constants of the equations.
const (
	C1, C2 = 1.4, 0.4 // ratio of specific heats, and the same minus 1
	C5     = 1.4
	C34    = 0.1 // viscosity
	C1345  = C1 * C34 * C5
	R43    = 4.0 / 3

	Dissipation = 0.25 // of fourth order
)

// Axis is a dimension of the grid, and the part of it that an array has.
type Axis struct {
	M          int // index of its momentum in a state: 1 to 3
	N          int // points of the whole grid
	Stride     int // between neighboring points in memory
	First      int // global index of the array's first point
	Lo, Hi     int // the array's inner points: local indices from Lo to Hi-1
	Diffusion  float64
	T1, T2, T3 float64    // 1/h², 1/2h and 1/h
	K          [4]float64 // factors of the viscous terms of the momenta, index 1 to 3
}

// NewAxis returns the axis of momentum m, with count of its n points from first on.
func NewAxis(m, n, stride, first, count int) Axis {
	h := float64(n - 1)
	a := Axis{M: m, N: n, Stride: stride, First: first, Hi: count, Diffusion: 0.75, T1: h * h, T2: h / 2, T3: h, K: [4]float64{0, 1, 1, 1}}
	a.K[m] = R43
	if m == 3 {
		a.Diffusion = 1
	}
	if first == 0 {
		a.Lo = 1 // the boundary of the grid is fixed
	}
	if first+count == n {
		a.Hi--
	}
	return a
}

// Position returns the coordinate of a local point in the unit cube.
func (a *Axis) Position(p int) float64 { return float64(a.First+p) / float64(a.N-1) }

// Line computes the terms of lines of points.
type Line struct {
	viscous, flux []State
	speed         []State // twice the kinetic energy, velocities, energy, per mass
}

// NewLine returns a Line for up to n points.
func NewLine(n int) *Line {
	return &Line{make([]State, n+2), make([]State, n+2), make([]State, n+2)}
}

// AddTerms adds the spatial terms of one dimension along a line whose first point has index
// start, at its inner points: central differences of the convective flux, differences of the
// viscous flux, diffusion of second and dissipation of fourth order. It reads two points
// beyond each end.
func (l *Line) AddTerms(a *Axis, u, out []State, start int) {
	m := a.M
	// Index p+1 of the lines is point p, so that the point before the first has one.
	for p := a.Lo - 1; p <= a.Hi; p++ {
		c, f, v := &u[start+p*a.Stride], &l.flux[p+1], &l.speed[p+1]
		inverse := 1 / c[0]
		v[1], v[2], v[3], v[4] = c[1]*inverse, c[2]*inverse, c[3]*inverse, c[4]*inverse
		v[0] = v[1]*v[1] + v[2]*v[2] + v[3]*v[3]
		w, pressure := v[m], C2*(c[4]-0.5*c[0]*v[0])
		f[0], f[1], f[2], f[3], f[4] = c[m], c[1]*w, c[2]*w, c[3]*w, (c[4]+pressure)*w
		f[m] += pressure
	}
	for p := a.Lo; p <= a.Hi; p++ {
		v, b, f := &l.speed[p+1], &l.speed[p], &l.viscous[p]
		f[1], f[2], f[3] = v[1]-b[1], v[2]-b[2], v[3]-b[3]
		f[m] *= R43
		f[4] = 0.5*(1-C1*C5)*(v[0]-b[0]) + (v[m]*v[m]-b[m]*b[m])/6 + C1*C5*(v[4]-b[4])
	}
	diffusion, viscosity := a.Diffusion*a.T1, a.T3*a.T3*C34
	for p := a.Lo; p < a.Hi; p++ {
		w := DissipationWeights(a.First+p, a.N)
		at := start + p*a.Stride
		o, f, b, v, vb := &out[at], &l.flux[p+2], &l.flux[p], &l.viscous[p+1], &l.viscous[p]
		u0, u1, u2, u3, u4 := &u[at-2*a.Stride], &u[at-a.Stride], &u[at], &u[at+a.Stride], &u[at+2*a.Stride]
		for i := range o {
			o[i] += diffusion*(u1[i]-2*u2[i]+u3[i]) - a.T2*(f[i]-b[i]) + viscosity*(v[i]-vb[i]) -
				Dissipation*(w[0]*u0[i]+w[1]*u1[i]+w[2]*u2[i]+w[3]*u3[i]+w[4]*u4[i])
		}
	}
}

// DissipationWeights returns the weights of a point and the two on each side of it. They are
// one-sided at the boundary of the grid.
func DissipationWeights(p, n int) [5]float64 {
	switch p {
	case 1:
		return [5]float64{0, 0, 5, -4, 1}
	case 2:
		return [5]float64{0, -4, 6, -4, 1}
	case n - 3:
		return [5]float64{1, -4, 6, -4, 0}
	case n - 2:
		return [5]float64{1, -4, 5, 0, 0}
	}
	return [5]float64{1, -4, 6, -4, 1}
}
