package ft

import (
	"fmt"
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWA"

const (
	iterations = 6
	alpha      = 1e-6 // diffusion coefficient
	points     = 1024 // of the grid, in a checksum
)

// params are the dimensions of the grid, and the checksum that the specification gives for
// each iteration.
type params struct {
	nx, ny, nz int
	checksums  [iterations]complex128
}

var classes = map[byte]params{
	'S': {64, 64, 64, [iterations]complex128{
		5.546087004964e+02 + 4.845363331978e+02i, 5.546385409189e+02 + 4.865304269511e+02i,
		5.546148406171e+02 + 4.883910722336e+02i, 5.545423607415e+02 + 4.901273169046e+02i,
		5.544255039624e+02 + 4.917475857993e+02i, 5.542683411902e+02 + 4.932597244941e+02i,
	}},
	'W': {128, 128, 32, [iterations]complex128{
		5.673612178944e+02 + 5.293246849175e+02i, 5.631436885271e+02 + 5.282149986629e+02i,
		5.594024089970e+02 + 5.270996558037e+02i, 5.560698047020e+02 + 5.260027904925e+02i,
		5.530898991250e+02 + 5.249400845633e+02i, 5.504159734538e+02 + 5.239212247086e+02i,
	}},
	'A': {256, 256, 128, [iterations]complex128{
		5.046735008193e+02 + 5.114047905510e+02i, 5.059412319734e+02 + 5.098809666433e+02i,
		5.069376896287e+02 + 5.098144042213e+02i, 5.077892868474e+02 + 5.101336130759e+02i,
		5.085233095391e+02 + 5.104914655194e+02i, 5.091487099959e+02 + 5.107917842803e+02i,
	}},
}

// Run solves the equation of a class on the ranks of c. Their number must be a power of two
// and at most that of the planes.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	if err := npb.CheckPowerOfTwo(c.Size()); err != nil {
		return npb.Result{}, err
	}
	if c.Size() > min(p.ny, p.nz) {
		return npb.Result{}, fmt.Errorf("%d ranks: class %c has planes for %d", c.Size(), class, min(p.ny, p.nz))
	}

	g := newGrid(c, p)
	var clock npb.Clock
	g.clock = &clock
	// The specification lets the program run once before it is timed, to touch its memory.
	g.setup()
	if err := g.forward(); err != nil {
		return npb.Result{}, err
	}

	if err := clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	g.setup()
	if err := g.forward(); err != nil {
		return npb.Result{}, err
	}
	var sums [iterations]complex128
	for i := range sums {
		if err := g.step(); err != nil {
			return npb.Result{}, err
		}
		if sums[i], err = g.checksum(); err != nil {
			return npb.Result{}, err
		}
	}
	clock.Stop()

	n := float64(p.nx * p.ny * p.nz)
	r := npb.Result{
		Name: "FT", Class: class, Size: fmt.Sprintf("%dx%dx%d", p.nx, p.ny, p.nz),
		Iterations: iterations, Operation: "floating point",
		// The count of the specification, whatever the transform in use.
		Operations: n * (14.8157 + 7.19641*math.Log(n) + (5.23518+7.21113*math.Log(n))*iterations),
	}
	for i, want := range p.checksums {
		r.Checks = append(r.Checks,
			npb.Check{Name: fmt.Sprintf("Checksum %d re", i+1), Got: real(sums[i]), Want: real(want), Tolerance: 1e-12},
			npb.Check{Name: fmt.Sprintf("Checksum %d im", i+1), Got: imag(sums[i]), Want: imag(want), Tolerance: 1e-12})
	}
	return clock.Finish(c, r)
}
