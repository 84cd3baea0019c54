package lu

import (
	"math"

	"github.com/muster-mpi/muster/mpi"
)

// coefficients of the exact solution: a constant, then x, y, z, their squares, cubes and
// fourth powers, for each component of a cell.
var coefficients = [5][13]float64{
	{2, 0, 0, 4, 5, 3, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
	{1, 0, 0, 0, 1, 2, 3, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
	{2, 2, 0, 0, 0, 2, 3, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
	{2, 2, 0, 0, 0, 2, 3, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
	{5, 4, 3, 2, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
}

// exact returns the exact solution at a point of the unit cube.
func exact(x, y, z float64) cell {
	var c cell
	for m := range c {
		k := coefficients[m]
		c[m] = k[0] + x*(k[1]+x*(k[4]+x*(k[7]+x*k[10]))) +
			y*(k[2]+y*(k[5]+y*(k[8]+y*k[11]))) + z*(k[3]+z*(k[6]+z*(k[9]+z*k[12])))
	}
	return c
}

// position returns the coordinates of a local point in the unit cube.
func (s *solver) position(i, j, k int) (x, y, z float64) {
	return float64(s.x.first+i) / float64(s.x.n-1), float64(s.y.first+j) / float64(s.y.n-1), float64(k) / float64(s.z.n-1)
}

// force computes the forcing that makes the exact solution the steady state.
func (s *solver) force() {
	for k := range s.nz {
		for j := -2; j < s.ny+2; j++ {
			for i := -2; i < s.nx+2; i++ {
				s.u[s.at(i, j, k)] = exact(s.position(i, j, k))
			}
		}
	}
	s.addTerms(s.u, s.forcing)
}

// initialize sets the solution to the exact one on the boundary, and inside to an
// interpolation between the six faces.
func (s *solver) initialize() {
	blend := func(a, b, t float64) float64 { return (1-t)*a + t*b }
	for k := range s.nz {
		for j := range s.ny {
			for i := range s.nx {
				x, y, z := s.position(i, j, k)
				c := &s.u[s.at(i, j, k)]
				if x == 0 || x == 1 || y == 0 || y == 1 || z == 0 || z == 1 {
					*c = exact(x, y, z)
					continue
				}
				x0, x1 := exact(0, y, z), exact(1, y, z)
				y0, y1 := exact(x, 0, z), exact(x, 1, z)
				z0, z1 := exact(x, y, 0), exact(x, y, 1)
				for m := range c {
					px, py, pz := blend(x0[m], x1[m], x), blend(y0[m], y1[m], y), blend(z0[m], z1[m], z)
					c[m] = px + py + pz - px*py - py*pz - pz*px + px*py*pz
				}
			}
		}
	}
}

// norm returns the root of the mean square of a value at all inner points.
func (s *solver) norm(value func(at int) cell) (cell, error) {
	var sum cell
	s.rows(func(from, to int) {
		for at := from; at < to; at++ {
			for m, v := range value(at) {
				sum[m] += v * v
			}
		}
	})
	if err := mpi.Allreduce(s.c, sum[:], sum[:], mpi.Sum); err != nil {
		return cell{}, err
	}
	n := float64(s.x.n-2) * float64(s.y.n-2) * float64(s.z.n-2)
	for m := range sum {
		sum[m] = math.Sqrt(sum[m] / n)
	}
	return sum, nil
}

// solutionError returns the norm of the difference from the exact solution.
func (s *solver) solutionError() (cell, error) {
	return s.norm(func(at int) cell {
		i, j, k := at%s.y.stride-2, at%s.z.stride/s.y.stride-2, at/s.z.stride-1
		c := exact(s.position(i, j, k))
		for m := range c {
			c[m] -= s.u[at][m]
		}
		return c
	})
}

// surfaceIntegral returns the integral of the pressure over the faces of a box inside the
// grid, by the trapezoidal rule. A rank adds its points with their weights, so that it needs
// none of other ranks.
func (s *solver) surfaceIntegral() (float64, error) {
	// The box, as global indices, and the weight of a point in one dimension.
	low, high := [3]int{1, 1, 2}, [3]int{s.x.n - 2, s.y.n - 3, s.z.n - 2}
	weight := func(dim, p int) float64 {
		switch {
		case p < low[dim] || p > high[dim]:
			return 0
		case p == low[dim] || p == high[dim]:
			return 1
		}
		return 2
	}
	h := [3]float64{1 / s.x.t3, 1 / s.y.t3, 1 / s.z.t3}
	var sum float64
	for k := range s.nz {
		for j := range s.ny {
			for i := range s.nx {
				p := [3]int{s.x.first + i, s.y.first + j, k}
				w := [3]float64{weight(0, p[0]), weight(1, p[1]), weight(2, p[2])}
				c := &s.u[s.at(i, j, k)]
				pressure := c2 * (c[4] - 0.5*(c[1]*c[1]+c[2]*c[2]+c[3]*c[3])/c[0])
				for normal := range 3 {
					if p[normal] == low[normal] || p[normal] == high[normal] {
						a, b := (normal+1)%3, (normal+2)%3
						sum += h[a] * h[b] * w[a] * w[b] * pressure
					}
				}
			}
		}
	}
	total := []float64{sum / 4}
	err := mpi.Allreduce(s.c, total, total, mpi.Sum)
	return total[0], err
}
