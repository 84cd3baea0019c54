package flow

// State is the state at a point: density, momentum in x, y and z, and energy, per volume.
type State [5]float64

// coefficients of the exact solution: a constant, then x, y, z, their squares, cubes and
// fourth powers, for each component of a state.
var coefficients = [5][13]float64{
	{2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
	{1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
	{2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
	{2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
	{5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
}

// Exact returns the exact solution at a point of the unit cube.
func Exact(x, y, z float64) State {
	var c State
	for m := range c {
		k := coefficients[m]
		c[m] = k[0] + x*(k[1]+x*(k[4]+x*(k[7]+x*k[10]))) +
			y*(k[2]+y*(k[5]+y*(k[8]+y*k[11]))) + z*(k[3]+z*(k[6]+z*(k[9]+z*k[12])))
	}
	return c
}

// Initial returns the state with which a solver starts at a point: the exact solution on
// the boundary, and inside an interpolation between the six faces.
func Initial(x, y, z float64) State {
	if x == 0 || x == 1 || y == 0 || y == 1 || z == 0 || z == 1 {
		return Exact(x, y, z)
	}
	blend := func(a, b, t float64) float64 { return (1-t)*a + t*b }
	x0, x1 := Exact(0, y, z), Exact(1, y, z)
	y0, y1 := Exact(x, 0, z), Exact(x, 1, z)
	z0, z1 := Exact(x, y, 0), Exact(x, y, 1)
	var c State
	for m := range c {
		px, py, pz := blend(x0[m], x1[m], x), blend(y0[m], y1[m], y), blend(z0[m], z1[m], z)
		c[m] = px + py + pz - px*py - py*pz - pz*px + px*py*pz
	}
	return c
}
