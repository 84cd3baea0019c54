package heat

import (
	"fmt"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// plate is a rank's rectangle, nx × ny points, with a ghost point at each end of a row and
// of a column. Only search uses its ghost points. Those outside the plate remain zero, the
// temperature of its edge.
type plate struct {
	cart           *mpi.Cart // the ranks as a grid: y, x
	clock          npb.Clock
	n              int // inner points of the whole plate in a dimension
	nx, ny         int
	firstX, firstY int
	k              float64 // dt/2h², by which a step weighs the differences between points
	iterations     int

	now                       []float64
	search, residual, product []float64
	sums                      []float64
	edges                     *mpi.Persistent // exchange of the edges of search
}

func newPlate(c *mpi.Comm, p params) (*plate, error) {
	dims, err := mpi.DimsCreate(c.Size(), []int{0, 0})
	if err != nil {
		return nil, err
	}
	if dims[0] > p.n {
		return nil, fmt.Errorf("%d ranks: a plate of %d rows is too small: use fewer ranks", c.Size(), p.n)
	}
	s := &plate{n: p.n}
	if s.cart, err = c.CartCreate(dims, nil, nil); err != nil {
		return nil, err
	}
	coords := s.cart.MyCoords()
	s.firstY, s.ny = share(p.n, coords[0], dims[0])
	s.firstX, s.nx = share(p.n, coords[1], dims[1])
	h := 1 / float64(p.n+1)
	s.k = duration / float64(p.steps) / (2 * h * h)
	cells := (s.nx + 2) * (s.ny + 2)
	s.now, s.search, s.residual, s.product = make([]float64, cells), make([]float64, cells), make([]float64, cells), make([]float64, cells)
	s.sums = make([]float64, 1)
	for j := range s.ny {
		for i := range s.nx {
			x, y := s.position(i, j)
			s.now[s.at(i, j)] = x * (1 - x) * y * (1 - y)
		}
	}
	return s, s.prepareEdges()
}

// share returns the first point of a part, and their number.
func share(n, part, parts int) (first, count int) {
	first, end := n*part/parts, n*(part+1)/parts
	return first, end - first
}

// prepareEdges describes the edges of the rectangle, in the order of the neighbors on a
// grid: -y, +y, -x, +x.
func (s *plate) prepareEdges() error {
	sizes := []int{s.ny + 2, s.nx + 2}
	row, column := []int{1, s.nx}, []int{s.ny, 1}
	var sends, recvs []*mpi.Layout[float64]
	for _, e := range []struct{ shape, send, recv []int }{
		{row, []int{1, 1}, []int{0, 1}},
		{row, []int{s.ny, 1}, []int{s.ny + 1, 1}},
		{column, []int{1, 1}, []int{1, 0}},
		{column, []int{1, s.nx}, []int{1, s.nx + 1}},
	} {
		send, err := mpi.Subarray[float64](sizes, e.shape, e.send)
		if err != nil {
			return err
		}
		recv, err := mpi.Subarray[float64](sizes, e.shape, e.recv)
		if err != nil {
			return err
		}
		sends, recvs = append(sends, send), append(recvs, recv)
	}
	s.edges = mpi.NeighborAlltoallwInit(s.cart, s.search, sends, s.search, recvs)
	return nil
}

// at returns the index of a local point.
func (s *plate) at(i, j int) int { return (j+1)*(s.nx+2) + i + 1 }

// position returns the coordinates of a local point on the plate, which has side 1.
func (s *plate) position(i, j int) (x, y float64) {
	return float64(s.firstX+i+1) / float64(s.n+1), float64(s.firstY+j+1) / float64(s.n+1)
}

// rows calls fn with the index range of each row.
func (s *plate) rows(fn func(from, to int)) {
	for j := range s.ny {
		fn(s.at(0, j), s.at(s.nx, j))
	}
}

// multiply computes product = A·search. It exchanges the edges and meanwhile computes the
// points inside.
func (s *plate) multiply() error {
	s.clock.EnterMPI()
	exchange := s.edges.Start()
	s.clock.LeaveMPI()
	for j := 1; j < s.ny-1; j++ {
		s.multiplyRow(j, 1, s.nx-1)
	}
	s.clock.EnterMPI()
	_, err := exchange.Wait()
	s.clock.LeaveMPI()
	if err != nil {
		return err
	}
	s.multiplyRow(0, 0, s.nx)
	for j := 1; j < s.ny-1; j++ {
		s.multiplyRow(j, 0, 1)
		s.multiplyRow(j, s.nx-1, s.nx)
	}
	s.multiplyRow(s.ny-1, 0, s.nx)
	return nil
}

// multiplyRow computes a part of a row: each point, and its difference from the four next to
// it.
func (s *plate) multiplyRow(j, from, to int) {
	if from >= to {
		return
	}
	at, n := s.at(from, j), to-from
	center, left, right := s.search[at:][:n], s.search[at-1:][:n], s.search[at+1:][:n]
	above, below := s.search[at-s.nx-2:][:n], s.search[at+s.nx+2:][:n]
	out := s.product[at:][:n]
	for i := range out {
		out[i] = center[i] + s.k*(4*center[i]-left[i]-right[i]-above[i]-below[i])
	}
}
