package flow

import "github.com/muster-mpi/muster/mpi"

// Tags of a Sweep; the faces have those below.
const (
	tagForward = 6
	tagBack    = 7
)

// Systems are banded systems of equations, one along each line of a dimension. F is what the
// elimination takes from a line of one cell to the next, B what the back-substitution takes
// the other way.
type Systems[F, B any] interface {
	// Form computes the coefficients of a cell. It needs nothing from other cells.
	Form(d int, c *Cell)
	// Eliminate reduces the systems to upper triangular ones. in has an element for each
	// line, and so has out; in is nil in the first cell, for which Form has not been
	// called, and out in the last.
	Eliminate(d int, c *Cell, in []F, out []F)
	// Substitute solves them, from the end. in is nil in the last cell, out in the first.
	Substitute(d int, c *Cell, in []B, out []B)
}

// Sweep solves systems on a grid.
type Sweep[F, B any] struct {
	g               *Grid
	systems         Systems[F, B]
	front, frontOut []F
	back, backOut   []B
	reqs            []mpi.Request
}

// NewSweep returns a sweep, with buffers for the messages.
func NewSweep[F, B any](g *Grid, systems Systems[F, B]) *Sweep[F, B] {
	s := &Sweep[F, B]{g: g, systems: systems}
	if len(g.Cells()) > 1 {
		most := 0
		for _, c := range g.Cells() {
			most = max(most, c.Lines(0), c.Lines(1), c.Lines(2))
		}
		s.front, s.frontOut = make([]F, most), make([]F, most)
		s.back, s.backOut = make([]B, most), make([]B, most)
	}
	return s
}

// Solve solves the systems of a dimension: the cells in ascending order, then in descending
// order. As in NPB, the receive for a cell is started before its coefficients are computed,
// and a send is complete at the latest when the next cell has been received.
func (s *Sweep[F, B]) Solve(d int) error {
	cells := s.g.Slabs[d]
	last := len(cells) - 1
	for slab, c := range cells {
		var in, out []F
		if slab > 0 {
			in = s.front[:c.Lines(d)]
			s.reqs = append(s.reqs, receive(s.g, in, s.g.Previous[d], tagForward))
			s.systems.Form(d, c)
			if err := s.wait(); err != nil {
				return err
			}
		}
		if slab < last {
			out = s.frontOut[:c.Lines(d)]
		}
		s.systems.Eliminate(d, c, in, out)
		if slab < last {
			s.reqs = append(s.reqs, send(s.g, out, s.g.Next[d], tagForward))
		}
	}
	for slab := last; slab >= 0; slab-- {
		c := cells[slab]
		var in, out []B
		if slab < last {
			in = s.back[:c.Lines(d)]
			s.reqs = append(s.reqs, receive(s.g, in, s.g.Next[d], tagBack))
			if err := s.wait(); err != nil {
				return err
			}
		}
		if slab > 0 {
			out = s.backOut[:c.Lines(d)]
		}
		s.systems.Substitute(d, c, in, out)
		if slab > 0 {
			s.reqs = append(s.reqs, send(s.g, out, s.g.Previous[d], tagBack))
		}
	}
	return nil
}

// wait completes the receive for a cell, and the send of the one before.
func (s *Sweep[F, B]) wait() error {
	s.g.Clock.EnterMPI()
	defer s.g.Clock.LeaveMPI()
	err := mpi.WaitAll(s.reqs...)
	s.reqs = s.reqs[:0]
	return err
}

func receive[T any](g *Grid, in []T, src, tag int) mpi.Request {
	g.Clock.EnterMPI()
	defer g.Clock.LeaveMPI()
	return mpi.Irecv(g.Comm, in, src, tag)
}

func send[T any](g *Grid, out []T, dst, tag int) mpi.Request {
	g.Clock.EnterMPI()
	defer g.Clock.LeaveMPI()
	return mpi.Isend(g.Comm, out, dst, tag)
}
