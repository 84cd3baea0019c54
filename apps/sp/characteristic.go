package sp

import (
	"math"

	"github.com/muster-mpi/muster/apps/internal/flow"
)

// Characteristic variables of a dimension are those in which the derivative of its flux is
// diagonal: three move with the fluid, one by the speed of sound faster, one slower.

// rootHalf is the root of one half, which normalizes the two that move with sound.
const rootHalf = math.Sqrt2 / 2

// transform applies a change of variables to the right-hand side at all inner points.
func transform(g *flow.Grid, change func(u, r *flow.State)) {
	for _, c := range g.Cells() {
		x := &c.Axes[0]
		c.EachLine(0, func(_, start int) {
			for at := start + x.Lo; at < start+x.Hi; at++ {
				change(&c.U[at], &c.RHS[at])
			}
		})
	}
}

// fluid returns the velocities, the kinetic energy by mass and the speed of sound of a state.
func fluid(u *flow.State) (x, y, z, kinetic, sound float64) {
	inverse := 1 / u[0]
	x, y, z = u[1]*inverse, u[2]*inverse, u[3]*inverse
	kinetic = 0.5 * (x*x + y*y + z*z)
	return x, y, z, kinetic, math.Sqrt(flow.C1 * flow.C2 * (u[4]*inverse - kinetic))
}

// toX changes from the components of a state to the characteristic variables of x.
func toX(u, r *flow.State) {
	x, y, z, kinetic, sound := fluid(u)
	inverse := 1 / u[0]
	pressure := flow.C2 / (sound * sound) * (kinetic*r[0] - x*r[1] - y*r[2] - z*r[3] + r[4])
	along := rootHalf * inverse * (x*r[0] - r[1])
	both := rootHalf * inverse * sound * pressure
	*r = flow.State{r[0] - pressure, inverse * (r[3] - z*r[0]), inverse * (y*r[0] - r[2]), both - along, both + along}
}

// xToY changes from the variables of x to those of y, which are turned by a right angle.
func xToY(_, r *flow.State) {
	mean := 0.5 * (r[3] + r[4])
	*r = flow.State{-r[1], r[0], rootHalf * (r[3] - r[4]), mean - rootHalf*r[2], mean + rootHalf*r[2]}
}

// yToZ changes from the variables of y to those of z.
func yToZ(_, r *flow.State) {
	mean := 0.5 * (r[3] + r[4])
	*r = flow.State{rootHalf * (r[3] - r[4]), -r[2], r[1], mean - rootHalf*r[0], mean + rootHalf*r[0]}
}

// fromZ changes from the variables of z back to the components of a state.
func fromZ(u, r *flow.State) {
	x, y, z, kinetic, sound := fluid(u)
	density := u[0]
	both := rootHalf * density / sound * (r[3] + r[4])
	mass := r[2] + both
	along := rootHalf * density * (r[3] - r[4])
	*r = flow.State{
		mass,
		x*mass - density*r[1],
		y*mass + density*r[0],
		z*mass + along,
		density*(y*r[0]-x*r[1]) + kinetic*mass + sound*sound/flow.C2*both + z*along,
	}
}
