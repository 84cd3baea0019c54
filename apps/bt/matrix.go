package bt

import "github.com/muster-mpi/muster/apps/internal/flow"

// matrix is a block of a system: how the five components at one point depend on those at
// another.
type matrix [5][5]float64

// setJacobians sets convection and diffusion to the derivatives of the fluxes along an axis
// with respect to the state u.
func setJacobians(convection, diffusion *matrix, a *flow.Axis, u *flow.State) {
	m := a.M
	inverse := 1 / u[0]
	v := [4]float64{0, u[1] * inverse, u[2] * inverse, u[3] * inverse}
	w, energy := v[m], u[4]*inverse
	square := v[1]*v[1] + v[2]*v[2] + v[3]*v[3]

	*convection = matrix{}
	convection[0][m] = 1
	for i := 1; i < 4; i++ {
		convection[i][0] = -v[i] * w
		convection[i][i] = w
	}
	for i := 1; i < 4; i++ {
		convection[i][m] += v[i]
		convection[m][i] -= flow.C2 * v[i]
		convection[4][i] = -flow.C2 * v[i] * w
	}
	convection[m][0] += 0.5 * flow.C2 * square
	convection[m][4] = flow.C2
	convection[4][0] = (flow.C2*square - flow.C1*energy) * w
	convection[4][m] += flow.C1*energy - 0.5*flow.C2*square
	convection[4][4] = flow.C1 * w

	*diffusion = matrix{}
	diffusion[4][0] = -flow.C1345 * energy * inverse
	for i := 1; i < 4; i++ {
		viscosity := a.K[i] * flow.C34
		diffusion[i][0] = -viscosity * v[i] * inverse
		diffusion[i][i] = viscosity * inverse
		diffusion[4][0] -= (viscosity - flow.C1345) * v[i] * v[i] * inverse
		diffusion[4][i] = (viscosity - flow.C1345) * v[i] * inverse
	}
	diffusion[4][4] = flow.C1345 * inverse
}

// subtractProduct subtracts a·b from x, and a·s from r.
func subtractProduct(x *matrix, r *flow.State, a, b *matrix, s *flow.State) {
	for i := range a {
		row, to := &a[i], &x[i]
		a0, a1, a2, a3, a4 := row[0], row[1], row[2], row[3], row[4]
		for j := range to {
			to[j] -= a0*b[0][j] + a1*b[1][j] + a2*b[2][j] + a3*b[3][j] + a4*b[4][j]
		}
		r[i] -= a0*s[0] + a1*s[1] + a2*s[2] + a3*s[3] + a4*s[4]
	}
}

// divide multiplies upper and r by the inverse of diagonal, by Gauss–Jordan elimination,
// which changes it. The diagonal of these systems is large enough without pivots.
func divide(diagonal, upper *matrix, r *flow.State) {
	for k := range diagonal {
		row, rowUpper := &diagonal[k], &upper[k]
		inverse := 1 / row[k]
		for j := k + 1; j < 5; j++ {
			row[j] *= inverse
		}
		for j := range rowUpper {
			rowUpper[j] *= inverse
		}
		r[k] *= inverse
		for i := range diagonal {
			if i == k {
				continue
			}
			to, toUpper := &diagonal[i], &upper[i]
			factor := to[k]
			for j := k + 1; j < 5; j++ {
				to[j] -= factor * row[j]
			}
			for j := range toUpper {
				toUpper[j] -= factor * rowUpper[j]
			}
			r[i] -= factor * r[k]
		}
	}
}
