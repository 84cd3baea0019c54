package mg

import (
	"fmt"
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWABC"

// params are the points of the cube along an edge, the number of cycles, the coefficients
// of the smoother, and the norm of the residual that the specification gives.
type params struct {
	n, cycles int
	smoother  [3]float64
	norm      float64
}

var (
	smallSmoother = [3]float64{-3.0 / 8, 1.0 / 32, -1.0 / 64}
	largeSmoother = [3]float64{-3.0 / 17, 1.0 / 33, -1.0 / 61}

	classes = map[byte]params{
		'S': {32, 4, smallSmoother, 0.5307707005734e-04},
		'W': {128, 4, smallSmoother, 0.6467329375339e-05},
		'A': {256, 4, smallSmoother, 0.2433365309069e-05},
		'B': {256, 20, largeSmoother, 0.1800564401355e-05},
		'C': {512, 20, largeSmoother, 0.5706732285740e-06},
	}
)

// Run solves the equation of a class on the ranks of c, whose number is a power of two.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	s, err := newSolver(c, p)
	if err != nil {
		return npb.Result{}, err
	}
	// The first cycle is not timed: it touches all memory and connects the ranks.
	if _, err := s.solve(1); err != nil {
		return npb.Result{}, err
	}
	if err := s.clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	norm, err := s.solve(p.cycles)
	if err != nil {
		return npb.Result{}, err
	}
	s.clock.Stop()
	if err := s.cart.Free(); err != nil {
		return npb.Result{}, err
	}
	points := float64(p.n) * float64(p.n) * float64(p.n)
	return s.clock.Finish(c, npb.Result{
		Name: "MG", Class: class, Size: fmt.Sprintf("%dx%dx%d", p.n, p.n, p.n), Iterations: p.cycles,
		Operation: "floating point", Operations: 58 * float64(p.cycles) * points,
		Checks: []npb.Check{{Name: "Residual norm", Got: norm, Want: p.norm, Tolerance: 1e-8}},
	})
}

// solve makes cycles, from a solution of zero, and returns the norm of the residual.
func (s *solver) solve(cycles int) (float64, error) {
	top := s.top()
	clear(top.u)
	if err := s.residual(top, s.v); err != nil {
		return 0, err
	}
	if _, err := s.norm(top); err != nil { // part of the time, but not of the result
		return 0, err
	}
	for range cycles {
		if err := s.cycle(); err != nil {
			return 0, err
		}
		if err := s.residual(top, s.v); err != nil {
			return 0, err
		}
	}
	return s.norm(top)
}

// norm returns the root mean square of the residual.
func (s *solver) norm(b *box) (float64, error) {
	sum := 0.0
	b.rows(func(y, z int) {
		for _, v := range b.row(b.r, y, z)[1 : b.own[0]+1] {
			sum += v * v
		}
	})
	all := []float64{sum}
	s.clock.EnterMPI()
	err := mpi.Allreduce(s.cart.Comm, all, all, mpi.Sum)
	s.clock.LeaveMPI()
	return math.Sqrt(all[0] / float64(s.p.n*s.p.n*s.p.n)), err
}
