package lu

import (
	"github.com/muster-mpi/muster/apps/internal/flow"
	"github.com/muster-mpi/muster/mpi"
)

// sweepDown solves the lower triangular system: the points in ascending order, each from the
// ones before it in x, y and z. Planes come from the north and west and go on to the south
// and east.
func (s *solver) sweepDown() error {
	for k := s.z.Lo; k < s.z.Hi; k++ {
		if err := s.receive(s.north, s.at(-1, 0, k), tagSouth, s.west, s.at(0, -1, k), tagEast); err != nil {
			return err
		}
		for j := s.y.Lo; j < s.y.Hi; j++ {
			for at := s.at(s.x.Lo, j, k); at < s.at(s.x.Hi, j, k); at++ {
				r := &s.rsd[at]
				s.couple(&s.z, 1, at-s.z.Stride, r)
				s.couple(&s.y, 1, at-s.y.Stride, r)
				s.couple(&s.x, 1, at-1, r)
				s.solve(&s.u[at], r)
			}
		}
		if err := s.send(s.south, s.at(s.nx-1, 0, k), tagSouth, s.east, s.at(0, s.ny-1, k), tagEast); err != nil {
			return err
		}
	}
	return nil
}

// sweepUp solves the upper triangular system, in the opposite order and direction.
func (s *solver) sweepUp() error {
	for k := s.z.Hi - 1; k >= s.z.Lo; k-- {
		if err := s.receive(s.south, s.at(s.nx, 0, k), tagNorth, s.east, s.at(0, s.ny, k), tagWest); err != nil {
			return err
		}
		for j := s.y.Hi - 1; j >= s.y.Lo; j-- {
			for at := s.at(s.x.Hi, j, k) - 1; at >= s.at(s.x.Lo, j, k); at-- {
				var d cell
				s.couple(&s.z, -1, at+s.z.Stride, &d)
				s.couple(&s.y, -1, at+s.y.Stride, &d)
				s.couple(&s.x, -1, at+1, &d)
				s.solve(&s.u[at], &d)
				for m := range d {
					s.rsd[at][m] += d[m]
				}
			}
		}
		if err := s.send(s.north, s.at(0, 0, k), tagNorth, s.west, s.at(0, 0, k), tagWest); err != nil {
			return err
		}
	}
	return nil
}

// receive gets the column and the row next to this rank's part of a plane. Ranks at the
// boundary receive from ProcNull, which is nothing.
func (s *solver) receive(fromX, column, tagX, fromY, row, tagY int) error {
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	in := s.edge[:s.ny]
	if _, err := mpi.Recv(s.c, in, fromX, tagX); err != nil {
		return err
	}
	if fromX != mpi.ProcNull {
		for j := range in {
			s.rsd[column+j*s.y.Stride] = in[j]
		}
	}
	_, err := mpi.Recv(s.c, s.rsd[row:][:s.nx], fromY, tagY)
	return err
}

// send passes the last column and row of a plane on. Both are packed into the same buffer, as
// in NPB: its uses are what T1 table 5.1 counts.
func (s *solver) send(toX, column, tagX, toY, row, tagY int) error {
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	out := s.edge[:s.ny]
	for j := range out {
		out[j] = s.rsd[column+j*s.y.Stride]
	}
	if err := mpi.Send(s.c, out, toX, tagX); err != nil {
		return err
	}
	out = s.edge[:copy(s.edge, s.rsd[row:][:s.nx])]
	return mpi.Send(s.c, out, toY, tagY)
}

// couple adds the influence of the point at an index, the next one on an axis, to r: the
// product of the Jacobian matrix of the fluxes there and the residual there. The matrix is
// not formed; its product with a vector is the change of the fluxes when the state changes
// by the vector.
func (s *solver) couple(a *flow.Axis, sign float64, at int, r *cell) {
	u, d := &s.u[at], &s.rsd[at]
	inverse := 1 / u[0]
	x, y, z, e := u[1]*inverse, u[2]*inverse, u[3]*inverse, u[4]*inverse
	// Changes of velocity and energy, times the density.
	dx, dy, dz, de := d[1]-x*d[0], d[2]-y*d[0], d[3]-z*d[0], d[4]-e*d[0]
	var w, dw, along float64
	switch a.M {
	case 1:
		w, dw, along = x, dx, d[1]
	case 2:
		w, dw, along = y, dy, d[2]
	default:
		w, dw, along = z, dz, d[3]
	}
	kinetic := 0.5 * (x*x + y*y + z*z)
	pressure := flow.C2 * (d[4] - x*d[1] - y*d[2] - z*d[3] + kinetic*d[0])
	enthalpy := e + flow.C2*(e-kinetic)

	convection := sign * omega * s.dt * a.T2
	diffusion := omega * s.dt * a.T1
	own := diffusion * a.Diffusion
	viscosity := diffusion * inverse
	vx, vy, vz := viscosity*dx, viscosity*dy, viscosity*dz
	kx, ky, kz := a.K[1]*flow.C34, a.K[2]*flow.C34, a.K[3]*flow.C34
	r[0] += convection*along + own*d[0]
	r[1] += convection*(x*dw+w*d[1]) + kx*vx + own*d[1]
	r[2] += convection*(y*dw+w*d[2]) + ky*vy + own*d[2]
	r[3] += convection*(z*dw+w*d[3]) + kz*vz + own*d[3]
	r[4] += convection*(w*(d[4]+pressure)+enthalpy*dw) +
		(kx-flow.C1345)*x*vx + (ky-flow.C1345)*y*vy + (kz-flow.C1345)*z*vz + flow.C1345*viscosity*de + own*d[4]
	r[a.M&3] += convection * pressure
}

// solve multiplies r by the inverse of the diagonal block, the identity plus the diffusion
// of all dimensions. The block is lower triangular: momentum depends on density, and energy
// on both.
func (s *solver) solve(u, r *cell) {
	inverse := 1 / u[0]
	x, y, z, e := u[1]*inverse, u[2]*inverse, u[3]*inverse, u[4]*inverse
	tx, ty, tz := 2*s.dt*s.x.T1, 2*s.dt*s.y.T1, 2*s.dt*s.z.T1
	sum := tx + ty + tz
	diagonal := 1 + tx*s.x.Diffusion + ty*s.y.Diffusion + tz*s.z.Diffusion
	const third = flow.R43 - 1
	vx, vy, vz := flow.C34*inverse*(sum+third*tx), flow.C34*inverse*(sum+third*ty), flow.C34*inverse*(sum+third*tz)
	ve := flow.C1345 * inverse * sum

	r[0] /= diagonal
	r[1] = (r[1] + vx*x*r[0]) / (diagonal + vx)
	r[2] = (r[2] + vy*y*r[0]) / (diagonal + vy)
	r[3] = (r[3] + vz*z*r[0]) / (diagonal + vz)
	dx, dy, dz := r[1]-x*r[0], r[2]-y*r[0], r[3]-z*r[0]
	r[4] = (r[4] - (vx-ve)*x*dx - (vy-ve)*y*dy - (vz-ve)*z*dz + ve*e*r[0]) / (diagonal + ve)
}
