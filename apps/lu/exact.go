package lu

import (
	"math"

	"github.com/muster-mpi/muster/apps/internal/flow"
	"github.com/muster-mpi/muster/mpi"
)

// position returns the coordinates of a local point in the unit cube.
func (s *solver) position(i, j, k int) (x, y, z float64) {
	return s.x.Position(i), s.y.Position(j), s.z.Position(k)
}

// force computes the forcing that makes the exact solution the steady state.
func (s *solver) force() {
	for k := range s.nz {
		for j := -2; j < s.ny+2; j++ {
			for i := -2; i < s.nx+2; i++ {
				s.u[s.at(i, j, k)] = flow.Exact(s.position(i, j, k))
			}
		}
	}
	s.addTerms(s.u, s.forcing)
}

// initialize sets the solution to the initial states.
func (s *solver) initialize() {
	for k := range s.nz {
		for j := range s.ny {
			for i := range s.nx {
				s.u[s.at(i, j, k)] = flow.Initial(s.position(i, j, k))
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
	n := float64(s.x.N-2) * float64(s.y.N-2) * float64(s.z.N-2)
	for m := range sum {
		sum[m] = math.Sqrt(sum[m] / n)
	}
	return sum, nil
}

// solutionError returns the norm of the difference from the exact solution.
func (s *solver) solutionError() (cell, error) {
	return s.norm(func(at int) cell {
		i, j, k := at%s.y.Stride-2, at%s.z.Stride/s.y.Stride-2, at/s.z.Stride-1
		c := flow.Exact(s.position(i, j, k))
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
	low, high := [3]int{1, 1, 2}, [3]int{s.x.N - 2, s.y.N - 3, s.z.N - 2}
	weight := func(dim, p int) float64 {
		switch {
		case p < low[dim] || p > high[dim]:
			return 0
		case p == low[dim] || p == high[dim]:
			return 1
		}
		return 2
	}
	h := [3]float64{1 / s.x.T3, 1 / s.y.T3, 1 / s.z.T3}
	var sum float64
	for k := range s.nz {
		for j := range s.ny {
			for i := range s.nx {
				p := [3]int{s.x.First + i, s.y.First + j, k}
				w := [3]float64{weight(0, p[0]), weight(1, p[1]), weight(2, p[2])}
				c := &s.u[s.at(i, j, k)]
				pressure := flow.C2 * (c[4] - 0.5*(c[1]*c[1]+c[2]*c[2]+c[3]*c[3])/c[0])
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
