package bt

import (
	"github.com/muster-mpi/muster/apps/internal/flow"
	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWA"

var classes = map[byte]flow.Problem{
	'S': {N: 12, Steps: 60, DT: 0.01,
		Residual: flow.State{1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02, 2.6436421275166801e-02, 1.9211784131744430e-01},
		Errors:   flow.State{4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05, 7.3821238632439731e-05, 8.9269630987491446e-04}},
	'W': {N: 24, Steps: 200, DT: 0.0008,
		Residual: flow.State{0.1125590409344e+03, 0.1180007595731e+02, 0.2710329767846e+02, 0.2469174937669e+02, 0.2638427874317e+03},
		Errors:   flow.State{0.4419655736008e+01, 0.4638531260002e+00, 0.1011551749967e+01, 0.9235878729944e+00, 0.1018045837718e+02}},
	'A': {N: 64, Steps: 200, DT: 0.0008,
		Residual: flow.State{1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01, 2.3665622544678910e+01, 2.5278963211748344e+02},
		Errors:   flow.State{4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01, 8.8302063039765474e-01, 9.7379901770829278e+00}},
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
	operations := float64(p.Steps) * (3478.8*n*n*n - 17655.7*n*n + 28023.7*n)
	return g.Run(npb.Result{Name: "BT", Class: class, Operations: operations}, p, func() error {
		if err := g.ComputeRHS(p.DT); err != nil {
			return err
		}
		for d := range 3 {
			if err := sweep.Solve(d); err != nil {
				return err
			}
		}
		g.Add()
		return nil
	})
}
