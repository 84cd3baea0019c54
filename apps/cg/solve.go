package cg

// steps is the number of steps of conjugate gradients for one linear system.
const steps = 25

// solver holds the vectors of the algorithm, each with the elements of the rank's block of
// columns. The ranks of a column of the grid have the same elements.
type solver struct {
	*grid
	a             *matrix
	x, z, p, q, r []float64
}

func newSolver(g *grid, a *matrix) *solver {
	n := g.cols.len()
	return &solver{
		grid: g, a: a,
		x: make([]float64, n), z: make([]float64, n), p: make([]float64, n), q: make([]float64, n), r: make([]float64, n),
	}
}

// solve computes an approximate solution z of A·z = x.
func (s *solver) solve() error {
	n := len(s.x)
	z, p, q, r := s.z[:n], s.p[:n], s.q[:n], s.r[:n]
	clear(z)
	copy(r, s.x)
	copy(p, s.x)
	rho, err := s.sum(dot(r, r))
	if err != nil {
		return err
	}
	for range steps {
		if err := s.multiply(p, q); err != nil {
			return err
		}
		pq, err := s.sum(dot(p, q))
		if err != nil {
			return err
		}
		alpha := rho / pq
		square := 0.0
		for i := range z {
			z[i] += alpha * p[i]
			v := r[i] - alpha*q[i]
			r[i] = v
			square += v * v
		}
		before := rho
		if rho, err = s.sum(square); err != nil {
			return err
		}
		beta := rho / before
		for i, v := range r {
			p[i] = v + beta*p[i]
		}
	}
	return s.residual()
}

// residual computes the norm of x - A·z, which the specification includes in the time. The
// norm itself is not used.
func (s *solver) residual() error {
	r := s.r[:len(s.x)]
	if err := s.multiply(s.z, r); err != nil {
		return err
	}
	square := 0.0
	for i, v := range s.x {
		d := v - r[i]
		square += d * d
	}
	_, err := s.sum(square)
	return err
}

// multiply computes out = A·in: the rank's block first, then its sum with those of the
// others.
func (s *solver) multiply(in, out []float64) error {
	s.a.multiply(in, s.w)
	return s.reduce(out)
}

func dot(a, b []float64) (sum float64) {
	b = b[:len(a)]
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
