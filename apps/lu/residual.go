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
	for k := s.z.Lo; k < s.z.Hi; k++ {
		for j := s.y.Lo; j < s.y.Hi; j++ {
			s.line.AddTerms(&s.x, u, out, s.at(0, j, k))
		}
	}
	for k := s.z.Lo; k < s.z.Hi; k++ {
		for i := s.x.Lo; i < s.x.Hi; i++ {
			s.line.AddTerms(&s.y, u, out, s.at(i, 0, k))
		}
	}
	for j := s.y.Lo; j < s.y.Hi; j++ {
		for i := s.x.Lo; i < s.x.Hi; i++ {
			s.line.AddTerms(&s.z, u, out, s.at(i, j, 0))
		}
	}
}
