package lu

import (
	"fmt"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWA"

// params are the points of the grid in each dimension, the number and length of the time
// steps, and the results that the specification gives: norms of the residual and of the
// error for the five equations, and the surface integral.
type params struct {
	n, steps         int
	dt               float64
	residual, errors cell
	integral         float64
}

var classes = map[byte]params{
	'S': {12, 50, 0.5,
		cell{1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03, 3.4264073155896461e-02},
		cell{6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05, 1.3103347914111294e-03},
		7.8418928865937083e+00},
	'W': {33, 300, 1.5e-3,
		cell{0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01, 0.2826799444189e+02},
		cell{0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01, 0.1084277417792e+01},
		0.1161399311023e+02},
	'A': {64, 250, 2,
		cell{7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02, 1.8384760349464247e+03},
		cell{2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00, 6.7139225687777051e+00, 7.0715315688392578e+01},
		2.6030925604886277e+01},
}

// Run solves the equations of a class on the ranks of c, whose grid must leave each of them
// three points in x and y.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	s, err := newSolver(c, p)
	if err != nil {
		return npb.Result{}, err
	}
	// The specification lets one step run before the time is taken, to touch the memory.
	s.initialize()
	if err := s.run(1); err != nil {
		return npb.Result{}, err
	}
	s.initialize()
	if err := s.run(p.steps); err != nil {
		return npb.Result{}, err
	}

	residual, err := s.norm(func(at int) cell { return s.rsd[at] })
	if err != nil {
		return npb.Result{}, err
	}
	errors, err := s.solutionError()
	if err != nil {
		return npb.Result{}, err
	}
	integral, err := s.surfaceIntegral()
	if err != nil {
		return npb.Result{}, err
	}
	n := float64(p.n)
	r := npb.Result{
		Name: "LU", Class: class, Size: fmt.Sprintf("%dx%dx%d", p.n, p.n, p.n), Iterations: p.steps,
		Operation: "floating point",
		// The count of the specification, whatever the program does.
		Operations: float64(p.steps) * (1984.77*n*n*n - 10923.3*n*n + 27770.9*n - 144010),
	}
	const tolerance = 1e-8
	for m := range residual {
		r.Checks = append(r.Checks, npb.Check{Name: fmt.Sprintf("Residual %d", m+1), Got: residual[m], Want: p.residual[m], Tolerance: tolerance})
	}
	for m := range errors {
		r.Checks = append(r.Checks, npb.Check{Name: fmt.Sprintf("Error %d", m+1), Got: errors[m], Want: p.errors[m], Tolerance: tolerance})
	}
	r.Checks = append(r.Checks, npb.Check{Name: "Integral", Got: integral, Want: p.integral, Tolerance: tolerance})
	return s.clock.Finish(c, r)
}

// run advances the solution by some time steps, and leaves the residual of the last one.
func (s *solver) run(steps int) error {
	if err := s.residual(); err != nil {
		return err
	}
	if err := s.clock.Start(s.c); err != nil {
		return err
	}
	for range steps {
		s.scale()
		if err := s.sweepDown(); err != nil {
			return err
		}
		if err := s.sweepUp(); err != nil {
			return err
		}
		s.update()
		if err := s.residual(); err != nil {
			return err
		}
	}
	s.clock.Stop()
	return nil
}
