package cg

import (
	"math"
	"strconv"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWABC"

// params are the order of the matrix, the nonzero elements of the vectors that it is made
// of, the iterations of the power method, the shift of the diagonal, and the eigenvalue
// estimate that the specification gives.
type params struct {
	n, nonzeros, iterations int
	shift, zeta             float64
}

var classes = map[byte]params{
	'S': {1400, 7, 15, 10, 8.5971775078648},
	'W': {7000, 8, 15, 12, 10.362595087124},
	'A': {14000, 11, 15, 20, 17.130235054029},
	'B': {75000, 13, 75, 60, 22.712745482631},
	'C': {150000, 15, 75, 110, 28.973605592845},
}

// Run estimates the eigenvalue on the ranks of c, whose number is a power of two.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	g, err := newGrid(c, p.n)
	if err != nil {
		return npb.Result{}, err
	}
	s := newSolver(g, newMatrix(p, g))
	// The first iteration is not timed: it touches all memory and connects the ranks.
	if _, err := s.power(p, 1); err != nil {
		return npb.Result{}, err
	}
	if err := g.clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	zeta, err := s.power(p, p.iterations)
	if err != nil {
		return npb.Result{}, err
	}
	g.clock.Stop()
	if err := g.free(); err != nil {
		return npb.Result{}, err
	}
	return g.clock.Finish(c, p.result(class, zeta))
}

// result returns the result without its times.
func (p params) result(class byte, zeta float64) npb.Result {
	return npb.Result{
		Name: "CG", Class: class, Size: strconv.Itoa(p.n), Iterations: p.iterations,
		Operation: "floating point", Operations: operations(p),
		Checks: []npb.Check{{Name: "Zeta", Got: zeta, Want: p.zeta, Tolerance: 1e-10}},
	}
}

// power makes iterations of the inverse power method, from a vector of ones. It returns the
// estimate of the eigenvalue.
func (s *solver) power(p params, iterations int) (zeta float64, err error) {
	s.begin()
	for range iterations {
		if zeta, err = s.iterate(p); err != nil {
			return 0, err
		}
	}
	return zeta, nil
}

// begin sets the vector to ones.
func (s *solver) begin() {
	for i := range s.x {
		s.x[i] = 1
	}
}

// iterate is an iteration: z = A⁻¹x, and the next x is z normalized.
func (s *solver) iterate(p params) (zeta float64, err error) {
	if err := s.solve(); err != nil {
		return 0, err
	}
	x, z := s.x, s.z[:len(s.x)]
	xz, zz := 0.0, 0.0
	for i, v := range z {
		xz += x[i] * v
		zz += v * v
	}
	if xz, zz, err = s.sum2(xz, zz); err != nil {
		return 0, err
	}
	norm := 1 / math.Sqrt(zz)
	for i, v := range z {
		x[i] = norm * v
	}
	return p.shift + 1/xz, nil
}

// operations counts the floating point operations as the specification does.
func operations(p params) float64 {
	row := float64(p.nonzeros * (p.nonzeros + 1))
	return 2 * float64(p.iterations) * float64(p.n) * (3 + row + steps*(5+row) + 3)
}
