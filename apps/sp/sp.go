package sp

import (
	"github.com/muster-mpi/muster/apps/internal/flow"
	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWA"

var classes = map[byte]flow.Problem{
	'S': {N: 12, Steps: 100, DT: 0.015,
		Residual: flow.State{2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02, 1.5840557224455615e-02, 3.4849040609362460e-02},
		Errors:   flow.State{2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05, 1.5750704994480102e-05, 3.4177666183390531e-05}},
	'W': {N: 36, Steps: 400, DT: 0.0015,
		Residual: flow.State{0.1893253733584e-02, 0.1717075447775e-03, 0.2778153350936e-03, 0.2887475409984e-03, 0.3143611161242e-02},
		Errors:   flow.State{0.7542088599534e-04, 0.6512852253086e-05, 0.1049092285688e-04, 0.1128838671535e-04, 0.1212845639773e-03}},
	'A': {N: 64, Steps: 400, DT: 0.0015,
		Residual: flow.State{2.4799822399300195, 1.1276337964368832, 1.5028977888770491, 1.4217816211695179, 2.1292113035138280},
		Errors:   flow.State{1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05, 4.7671093939528255e-05, 1.3621613399213001e-04}},
}

// Run solves the equations of a class on the ranks of c, whose number must be a square and
// leave three points of each dimension to a cell.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	g, err := flow.NewGrid(c, p.N)
	if err != nil {
		return npb.Result{}, err
	}
	sweep := flow.NewSweep(g, newSystems(g, p.DT))
	n := float64(p.N)
	// The count of the specification, whatever the program does.
	operations := float64(p.Steps) * (881.174*n*n*n - 4683.91*n*n + 11484.5*n - 19272.4)
	return g.Run(npb.Result{Name: "SP", Class: class, Operations: operations}, p, func() error {
		if err := g.ComputeRHS(p.DT); err != nil {
			return err
		}
		transform(g, toX)
		for d, next := range []func(u, r *flow.State){xToY, yToZ, fromZ} {
			if err := sweep.Solve(d); err != nil {
				return err
			}
			transform(g, next)
		}
		g.Add()
		return nil
	})
}
