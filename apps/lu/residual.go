package lu

import "github.com/muster-mpi/muster/mpi"

// Tags, by the direction in which a message goes.
const (
	tagSouth = iota
	tagNorth
	tagEast
	tagWest
)

// residual computes by how much the solution misses the steady state: the difference of the
// spatial terms and the forcing, at the inner points.
func (s *solver) residual() error {
	if err := s.exchange(); err != nil {
		return err
	}
	s.rows(func(from, to int) {
		for at := from; at < to; at++ {
			for m, f := range s.forcing[at] {
				s.rsd[at][m] = -f
			}
		}
	})
	s.addTerms(s.u, s.rsd)
	return nil
}

// exchange fills the ghost points of the solution: two rows on each side.
func (s *solver) exchange() error {
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	for _, e := range []struct {
		layout    *mpi.Layout[cell]
		send, dst int // index of the first cell sent
		recv, src int
		tag       int
	}{
		{s.edgeX, s.at(s.nx-2, -2, 0), s.south, s.at(-2, -2, 0), s.north, tagSouth},
		{s.edgeX, s.at(0, -2, 0), s.north, s.at(s.nx, -2, 0), s.south, tagNorth},
		{s.edgeY, s.at(-2, s.ny-2, 0), s.east, s.at(-2, -2, 0), s.west, tagEast},
		{s.edgeY, s.at(-2, 0, 0), s.west, s.at(-2, s.ny, 0), s.east, tagWest},
	} {
		req := mpi.IrecvLayout(s.c, s.u[e.recv:], e.layout, e.src, e.tag)
		if err := mpi.SendLayout(s.c, s.u[e.send:], e.layout, e.dst, e.tag); err != nil {
			return err
		}
		if _, err := req.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// addTerms adds the spatial terms of the equations for u to out, one dimension after the
// other.
func (s *solver) addTerms(u, out []cell) {
	for k := s.z.lo; k < s.z.hi; k++ {
		for j := s.y.lo; j < s.y.hi; j++ {
			s.addLine(&s.x, u, out, s.at(0, j, k))
		}
	}
	for k := s.z.lo; k < s.z.hi; k++ {
		for i := s.x.lo; i < s.x.hi; i++ {
			s.addLine(&s.y, u, out, s.at(i, 0, k))
		}
	}
	for j := s.y.lo; j < s.y.hi; j++ {
		for i := s.x.lo; i < s.x.hi; i++ {
			s.addLine(&s.z, u, out, s.at(i, j, 0))
		}
	}
}

// addLine adds the terms of one dimension along a line whose first point has index start:
// central differences of the convective flux, differences of the viscous flux, diffusion of
// second and dissipation of fourth order.
func (s *solver) addLine(a *axis, u, out []cell, start int) {
	m := a.m
	// Index p+1 of the lines is point p, so that the point before the first has one.
	for p := a.lo - 1; p <= a.hi; p++ {
		c, f, v := &u[start+p*a.stride], &s.flux[p+1], &s.speed[p+1]
		inverse := 1 / c[0]
		v[1], v[2], v[3], v[4] = c[1]*inverse, c[2]*inverse, c[3]*inverse, c[4]*inverse
		v[0] = v[1]*v[1] + v[2]*v[2] + v[3]*v[3]
		w, pressure := v[m], c2*(c[4]-0.5*c[0]*v[0])
		f[0], f[1], f[2], f[3], f[4] = c[m], c[1]*w, c[2]*w, c[3]*w, (c[4]+pressure)*w
		f[m] += pressure
	}
	for p := a.lo; p <= a.hi; p++ {
		v, b, f := &s.speed[p+1], &s.speed[p], &s.viscous[p]
		f[1], f[2], f[3] = v[1]-b[1], v[2]-b[2], v[3]-b[3]
		f[m] *= r43
		f[4] = 0.5*(1-c1*c5)*(v[0]-b[0]) + (v[m]*v[m]-b[m]*b[m])/6 + c1*c5*(v[4]-b[4])
	}
	diffusion, viscosity := a.diffusion*a.t1, a.t3*a.t3*c34
	for p := a.lo; p < a.hi; p++ {
		w := dissipationWeights(a.first+p, a.n)
		at := start + p*a.stride
		o, f, b, v, vb := &out[at], &s.flux[p+2], &s.flux[p], &s.viscous[p+1], &s.viscous[p]
		u0, u1, u2, u3, u4 := &u[at-2*a.stride], &u[at-a.stride], &u[at], &u[at+a.stride], &u[at+2*a.stride]
		for i := range o {
			o[i] += diffusion*(u1[i]-2*u2[i]+u3[i]) - a.t2*(f[i]-b[i]) + viscosity*(v[i]-vb[i]) -
				dissipation*(w[0]*u0[i]+w[1]*u1[i]+w[2]*u2[i]+w[3]*u3[i]+w[4]*u4[i])
		}
	}
}

// dissipationWeights returns the weights of a point and the two on each side of it. They are
// one-sided at the boundary of the grid.
func dissipationWeights(p, n int) [5]float64 {
	switch p {
	case 1:
		return [5]float64{0, 0, 5, -4, 1}
	case 2:
		return [5]float64{0, -4, 6, -4, 1}
	case n - 3:
		return [5]float64{1, -4, 6, -4, 0}
	case n - 2:
		return [5]float64{1, -4, 5, 0, 0}
	}
	return [5]float64{1, -4, 6, -4, 1}
}
