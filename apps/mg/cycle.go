package mg

import (
	"fmt"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

const (
	// gatherBelow is the size of grids that every rank has as a whole.
	gatherBelow = 16
	// coarsest is the size of the smallest grid.
	coarsest = 2
)

// solver is one rank.
type solver struct {
	p     params
	cart  *mpi.Cart
	clock npb.Clock
	v     []float64 // right side, on the finest grid

	// distributed are the rank's boxes of the grids, the coarsest first. The first of them
	// is the same grid as the last of whole; it only connects the two.
	distributed []*box
	whole       []*box
	exchange    gathering
	sums        [3][]float64 // work of the stencils
	reqs        []mpi.Request
}

func newSolver(c *mpi.Comm, p params) (*solver, error) {
	if err := npb.CheckPowerOfTwo(c.Size()); err != nil {
		return nil, err
	}
	dims := shape(c.Size())
	// The ranks of the last dimension of a Cart are consecutive, as points in x are.
	cart, err := c.CartCreate([]int{dims[2], dims[1], dims[0]}, []bool{true, true, true}, nil)
	if err != nil {
		return nil, err
	}
	s := &solver{p: p, cart: cart, reqs: make([]mpi.Request, 0, 4)}
	gather := max(gatherBelow/2, max(dims[0], dims[1], dims[2]))
	if gather >= p.n {
		return nil, fmt.Errorf("%d ranks are too many for %d points along an edge", c.Size(), p.n)
	}
	for n := coarsest; n <= gather; n *= 2 {
		b, err := newBox(nil, n, [3]int{1, 1, 1})
		if err != nil {
			return nil, err
		}
		s.whole = append(s.whole, b)
	}
	for n := gather; n <= p.n; n *= 2 {
		b, err := newBox(cart, n, dims)
		if err != nil {
			return nil, err
		}
		s.distributed = append(s.distributed, b)
	}
	for i := range s.sums {
		s.sums[i] = make([]float64, max(s.top().width[0], gather+2))
	}
	if s.exchange, err = newGathering(cart, s.distributed[0]); err != nil {
		return nil, err
	}
	s.v, err = s.source()
	return s, err
}

func (s *solver) top() *box { return s.distributed[len(s.distributed)-1] }

// shape returns how many ranks are along x, y and z: as equal as powers of two can be, the
// most along z, whose faces are contiguous in memory.
func shape(ranks int) [3]int {
	dims := [3]int{1, 1, 1}
	for axis := 2; ranks > 1; axis = (axis + 2) % 3 {
		dims[axis] *= 2
		ranks /= 2
	}
	return dims
}

// cycle improves the solution: it restricts the residual to ever coarser grids, solves on
// the coarsest, and corrects and smooths the solutions on the way back.
func (s *solver) cycle() error {
	fine := s.distributed
	for k := len(fine) - 1; k > 0; k-- {
		restrict(fine[k], fine[k-1])
		if k > 1 {
			if err := s.faces(fine[k-1], fine[k-1].r); err != nil {
				return err
			}
		}
	}
	last := s.whole[len(s.whole)-1]
	if err := s.gather(fine[0], last); err != nil {
		return err
	}
	if err := s.coarseCycle(); err != nil {
		return err
	}
	s.exchange.extract(last, fine[0])

	for k := 1; k < len(fine); k++ {
		b, right := fine[k], fine[k].r
		if b == s.top() {
			right = s.v
		} else {
			clear(b.u)
		}
		if err := s.correct(fine[k-1], b, right); err != nil {
			return err
		}
	}
	return nil
}

// coarseCycle is the part of the cycle on grids that every rank has as a whole.
func (s *solver) coarseCycle() error {
	for k := len(s.whole) - 1; k > 0; k-- {
		restrict(s.whole[k], s.whole[k-1])
		if err := s.faces(s.whole[k-1], s.whole[k-1].r); err != nil {
			return err
		}
	}
	clear(s.whole[0].u)
	if err := s.smooth(s.whole[0]); err != nil {
		return err
	}
	for k := 1; k < len(s.whole); k++ {
		clear(s.whole[k].u)
		if err := s.correct(s.whole[k-1], s.whole[k], s.whole[k].r); err != nil {
			return err
		}
	}
	return nil
}

// correct adds the solution of the coarser grid to that of b and smooths it. right is the
// right side of the equation on b.
func (s *solver) correct(coarse, b *box, right []float64) error {
	interpolate(coarse, b, s.sums)
	if err := s.residual(b, right); err != nil {
		return err
	}
	return s.smooth(b)
}

// residual computes r = right - A·u with its ghost points.
func (s *solver) residual(b *box, right []float64) error {
	residual(b, right, s.sums)
	return s.faces(b, b.r)
}

// smooth improves u by the residual, with its ghost points.
func (s *solver) smooth(b *box) error {
	smooth(b, s.p.smoother, s.sums)
	return s.faces(b, b.u)
}
