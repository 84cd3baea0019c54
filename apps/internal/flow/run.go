package flow

import (
	"fmt"

	"github.com/muster-mpi/muster/apps/internal/npb"
)

// Problem is a class of a solver on a Grid: the points in each dimension, the number and
// length of the time steps, and the results that the specification gives: norms of the
// residual and of the error for the five equations.
type Problem struct {
	N, Steps         int
	DT               float64
	Residual, Errors State
}

// Run takes the time of the steps of a problem and verifies the solution. r has the name, the
// class and the operations; Run adds the rest. The specification lets one step run before the
// time is taken, to touch the memory.
func (g *Grid) Run(r npb.Result, p Problem, step func() error) (npb.Result, error) {
	g.Initialize()
	if err := step(); err != nil {
		return r, err
	}
	g.Initialize()
	if err := g.Clock.Start(g.Comm); err != nil {
		return r, err
	}
	for range p.Steps {
		if err := step(); err != nil {
			return r, err
		}
	}
	g.Clock.Stop()

	errors, err := g.SolutionError()
	if err != nil {
		return r, err
	}
	residual, err := g.Residual(p.DT)
	if err != nil {
		return r, err
	}
	r.Size, r.Iterations, r.Operation = fmt.Sprintf("%dx%dx%d", p.N, p.N, p.N), p.Steps, "floating point"
	const tolerance = 1e-8
	for m := range residual {
		r.Checks = append(r.Checks, npb.Check{Name: fmt.Sprintf("Residual %d", m+1), Got: residual[m], Want: p.Residual[m], Tolerance: tolerance})
	}
	for m := range errors {
		r.Checks = append(r.Checks, npb.Check{Name: fmt.Sprintf("Error %d", m+1), Got: errors[m], Want: p.Errors[m], Tolerance: tolerance})
	}
	return g.Clock.Finish(g.Comm, r)
}
