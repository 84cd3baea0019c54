package heat

import (
	"fmt"
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWA"

const (
	duration      = 0.05 // in which the plate cools to a third
	tolerance     = 1e-10
	maxIterations = 10000
)

// params are the inner points of the plate in each dimension, and the number of steps.
type params struct{ n, steps int }

var classes = map[byte]params{'S': {63, 20}, 'W': {255, 40}, 'A': {1023, 80}}

// Run computes the cooling of a class on the ranks of c. Any number of ranks up to that of
// the rows will do.
func Run(c *mpi.Comm, class byte) (npb.Result, error) { return RunSaved(c, class, npb.Saving{}) }

// RunSaved is Run with checkpoints, for mpi.Recover: it goes on from the last one.
func RunSaved(c *mpi.Comm, class byte, saving npb.Saving) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	s, err := newPlate(c, p)
	if err != nil {
		return npb.Result{}, err
	}
	done := 0
	if saving.Every > 0 {
		if done, err = s.restore(c); err != nil {
			return npb.Result{}, err
		}
	}
	if err := s.clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	for step := done + 1; step <= p.steps; step++ {
		saving.Begin(step)
		if err := s.step(); err != nil {
			return npb.Result{}, err
		}
		if saving.Due(step) {
			if err := s.save(c, step); err != nil {
				return npb.Result{}, err
			}
		}
	}
	s.clock.Stop()
	check, err := s.verify()
	if err != nil {
		return npb.Result{}, err
	}
	return s.clock.Finish(c, npb.Result{
		Name: "HEAT", Class: class, Size: fmt.Sprintf("%dx%d", p.n, p.n), Iterations: s.iterations,
		Operation: "floating point", Operations: float64(s.iterations) * operations * float64(p.n*p.n),
		Checks: []npb.Check{check},
	})
}

// operations is the number of floating-point operations at a point in an iteration.
const operations = 16

// step advances the temperature by one time step. It solves A·next = (2-A)·now, where A is
// the method's matrix, starting from the temperature now. The residual is then 2·(now-A·now).
func (s *plate) step() error {
	copy(s.search, s.now)
	if err := s.multiply(); err != nil {
		return err
	}
	sums := s.sums[:1]
	sums[0] = 0
	s.rows(func(from, to int) {
		search, residual, product := s.search[from:to], s.residual[from:to], s.product[from:to]
		for i := range search {
			r := 2 * (search[i] - product[i])
			residual[i], search[i] = r, r
			sums[0] += r * r
		}
	})
	if err := s.reduce(sums); err != nil {
		return err
	}
	square := sums[0]
	limit := square * tolerance * tolerance
	for range maxIterations {
		if square <= limit {
			return nil
		}
		s.iterations++
		next, err := s.iterate(square)
		if err != nil {
			return err
		}
		square = next
	}
	return fmt.Errorf("no convergence in %d iterations: the residual is %g, not below %g", maxIterations, math.Sqrt(square), math.Sqrt(limit))
}

// iterate is an iteration of the method of conjugate gradients. It takes and returns the
// square of the residual.
func (s *plate) iterate(square float64) (float64, error) {
	if err := s.multiply(); err != nil {
		return 0, err
	}
	sums := s.sums[:1]
	sums[0] = 0
	s.rows(func(from, to int) {
		search, product := s.search[from:to], s.product[from:to]
		for i := range search {
			sums[0] += search[i] * product[i]
		}
	})
	if err := s.reduce(sums); err != nil {
		return 0, err
	}
	alpha := square / sums[0]
	sums[0] = 0
	s.rows(func(from, to int) {
		now, search, residual, product := s.now[from:to], s.search[from:to], s.residual[from:to], s.product[from:to]
		for i := range now {
			now[i] += alpha * search[i]
			residual[i] -= alpha * product[i]
			sums[0] += residual[i] * residual[i]
		}
	})
	if err := s.reduce(sums); err != nil {
		return 0, err
	}
	beta := sums[0] / square
	s.rows(func(from, to int) {
		search, residual := s.search[from:to], s.residual[from:to]
		for i := range search {
			search[i] = residual[i] + beta*search[i]
		}
	})
	return sums[0], nil
}

// reduce adds the sums of all ranks.
func (s *plate) reduce(sums []float64) error {
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	return mpi.Allreduce(s.cart.Comm, sums, sums, mpi.Sum)
}

// verify compares with the analytic solution: a series of sine waves, each of which decays
// by itself.
func (s *plate) verify() (npb.Check, error) {
	const terms = 20 // more are too small to matter after the duration
	worst := []float64{0, 0}
	for j := range s.ny {
		for i := range s.nx {
			x, y := s.position(i, j)
			sumX, sumY := 0.0, 0.0
			for m := 1; m < 2*terms; m += 2 {
				f := float64(m) * math.Pi
				a := 8 / (f * f * f) * math.Exp(-f*f*duration)
				sumX += a * math.Sin(f*x)
				sumY += a * math.Sin(f*y)
			}
			want := sumX * sumY
			worst[0] = max(worst[0], math.Abs(s.now[s.at(i, j)]-want))
			worst[1] = max(worst[1], want)
		}
	}
	err := mpi.Allreduce(s.cart.Comm, worst, worst, mpi.Max)
	return npb.Check{Name: "Largest error", Got: worst[0] / worst[1], Tolerance: 2e-3}, err
}
