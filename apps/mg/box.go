package mg

import "github.com/muster-mpi/muster/mpi"

// box is the rank's part of a grid, within a layer of ghost points: index 0 and own+1 in
// each dimension are copies of points of the neighbors. Points in x are consecutive.
type box struct {
	n     int    // points of the whole grid along an edge
	own   [3]int // points of the box
	width [3]int // own + 2
	u, r  []float64

	stride [3]int // from a point to the next in x, y and z
	// face describes the points of the box and its ghosts with one coordinate in x, y or z.
	face     [3]*mpi.Layout[float64]
	down, up [3]int  // neighbors
	alone    [3]bool // the box extends over the whole grid, and is its own neighbor
}

// newBox returns a box of a grid that is divided by dims. cart is nil if it is not.
func newBox(cart *mpi.Cart, n int, dims [3]int) (*box, error) {
	b := &box{n: n, stride: [3]int{1, 0, 0}}
	for axis, d := range dims {
		b.own[axis] = n / d
		b.width[axis] = n/d + 2
		b.alone[axis] = d == 1
		if axis < 2 {
			b.stride[axis+1] = b.stride[axis] * b.width[axis]
		}
		if cart == nil {
			continue
		}
		var err error
		if b.down[axis], b.up[axis], err = cart.Shift(2-axis, 1); err != nil {
			return nil, err
		}
	}
	w := b.width
	size := w[0] * w[1] * w[2]
	b.u, b.r = make([]float64, size), make([]float64, size)
	var err error
	if b.face[0], err = mpi.Vector[float64](w[1]*w[2], 1, w[0]); err != nil {
		return nil, err
	}
	if b.face[1], err = mpi.Vector[float64](w[2], w[0], w[0]*w[1]); err != nil {
		return nil, err
	}
	b.face[2], err = mpi.Contiguous[float64](w[0] * w[1])
	return b, err
}

func (b *box) at(x, y, z int) int { return x + b.stride[1]*y + b.stride[2]*z }

// row returns the points of array with the given y and z, from ghost point to ghost point.
func (b *box) row(array []float64, y, z int) []float64 {
	at := b.at(0, y, z)
	return array[at : at+b.width[0]]
}

// rows calls fn for each row of the box's own points.
func (b *box) rows(fn func(y, z int)) {
	for z := 1; z <= b.own[2]; z++ {
		for y := 1; y <= b.own[1]; y++ {
			fn(y, z)
		}
	}
}

// faces copies the outermost points of the neighbors into the ghost points of array, first
// in x, then y, then z: the later ones include the ghosts of the earlier, so that edges and
// corners arrive without messages of their own.
func (s *solver) faces(b *box, array []float64) error {
	for axis := range b.own {
		step := b.stride[axis]
		first, last := array[step:], array[step*b.own[axis]:]
		below, above := array, array[step*(b.own[axis]+1):]
		if b.alone[axis] {
			b.copyFace(axis, below, last)
			b.copyFace(axis, above, first)
			continue
		}
		const toDown, toUp = 1, 2
		c, face := s.cart.Comm, b.face[axis]
		s.clock.EnterMPI()
		s.reqs = append(s.reqs[:0],
			mpi.IrecvLayout(c, below, face, b.down[axis], toUp),
			mpi.IrecvLayout(c, above, face, b.up[axis], toDown),
			mpi.IsendLayout(c, last, face, b.up[axis], toUp),
			mpi.IsendLayout(c, first, face, b.down[axis], toDown))
		err := mpi.WaitAll(s.reqs...)
		s.clock.LeaveMPI()
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFace copies the points of a face within the box.
func (b *box) copyFace(axis int, to, from []float64) {
	w := b.width
	switch axis {
	case 0:
		for i := 0; i < w[1]*w[2]; i++ {
			to[i*w[0]] = from[i*w[0]]
		}
	case 1:
		for z := range w[2] {
			at := z * b.stride[2]
			copy(to[at:at+w[0]], from[at:at+w[0]])
		}
	case 2:
		copy(to[:b.stride[2]], from[:b.stride[2]])
	}
}

// gathering connects the coarsest distributed grid with the same grid as a whole.
type gathering struct {
	mine, all []float64
	coords    [][]int // of each rank: z, y, x
	rank      int
}

func newGathering(cart *mpi.Cart, part *box) (gathering, error) {
	size := part.own[0] * part.own[1] * part.own[2]
	g := gathering{mine: make([]float64, size), all: make([]float64, size*cart.Size()), rank: cart.Rank()}
	for rank := range cart.Size() {
		coords, err := cart.Coords(rank)
		if err != nil {
			return g, err
		}
		g.coords = append(g.coords, coords)
	}
	return g, nil
}

// origin returns the coordinates in the grid of the ghost corner of a rank's box.
func (g *gathering) origin(rank int, part *box) (x, y, z int) {
	c := g.coords[rank]
	return c[2] * part.own[0], c[1] * part.own[1], c[0] * part.own[2]
}

// gather collects the residual of all ranks' boxes in the whole grid.
func (s *solver) gather(part, whole *box) error {
	g, nx := &s.exchange, part.own[0]
	mine := g.mine
	part.rows(func(y, z int) {
		mine = mine[copy(mine, part.row(part.r, y, z)[1:nx+1]):]
	})
	s.clock.EnterMPI()
	err := mpi.Allgather(s.cart.Comm, g.mine, g.all)
	s.clock.LeaveMPI()
	if err != nil {
		return err
	}
	all := g.all
	for rank := range g.coords {
		ox, oy, oz := g.origin(rank, part)
		part.rows(func(y, z int) {
			all = all[copy(whole.row(whole.r, oy+y, oz+z)[ox+1:ox+1+nx], all):]
		})
	}
	return s.faces(whole, whole.r)
}

// extract copies the rank's box of the solution, with its ghost points, from the whole grid.
func (g *gathering) extract(whole, part *box) {
	ox, oy, oz := g.origin(g.rank, part)
	for z := range part.width[2] {
		for y := range part.width[1] {
			copy(part.row(part.u, y, z), whole.row(whole.u, oy+y, oz+z)[ox:])
		}
	}
}
