package flow

// Cell is a box of points. Its arrays have two ghost points at each end of each dimension.
type Cell struct {
	Index  int // among the cells of the rank
	Axes   [3]Axis
	Size   [3]int
	U, RHS []State

	forcing []State
}

// newCell returns cell number coords of q cells in each dimension.
func newCell(index, n, q int, coords [3]int) *Cell {
	c := &Cell{Index: index}
	stride := 1
	for d := range 3 {
		first, end := n*coords[d]/q, n*(coords[d]+1)/q
		c.Size[d] = end - first
		c.Axes[d] = NewAxis(d+1, n, stride, first, c.Size[d])
		stride *= c.Size[d] + 4
	}
	c.U, c.RHS, c.forcing = make([]State, stride), make([]State, stride), make([]State, stride)
	return c
}

// At returns the index of a local point.
func (c *Cell) At(i, j, k int) int {
	return (k+2)*c.Axes[2].Stride + (j+2)*c.Axes[1].Stride + i + 2
}

// fill sets all points, and the given number of ghost points around them, to a function of
// the position.
func (c *Cell) fill(ghosts int, value func(x, y, z float64) State) {
	for k := -ghosts; k < c.Size[2]+ghosts; k++ {
		for j := -ghosts; j < c.Size[1]+ghosts; j++ {
			for i := -ghosts; i < c.Size[0]+ghosts; i++ {
				c.U[c.At(i, j, k)] = value(c.position(i, j, k))
			}
		}
	}
}

func (c *Cell) position(i, j, k int) (x, y, z float64) {
	return c.Axes[0].Position(i), c.Axes[1].Position(j), c.Axes[2].Position(k)
}

// Lines returns the number of lines of inner points along a dimension.
func (c *Cell) Lines(d int) int {
	a, b := &c.Axes[(d+1)%3], &c.Axes[(d+2)%3]
	return (a.Hi - a.Lo) * (b.Hi - b.Lo)
}

// EachLine calls fn for the lines of inner points along a dimension, with the number of the
// line and the index of its first point. Neighbors in the dimension number them alike.
func (c *Cell) EachLine(d int, fn func(line, start int)) {
	// The dimension with the smaller stride is the inner loop.
	a, b := &c.Axes[min((d+1)%3, (d+2)%3)], &c.Axes[max((d+1)%3, (d+2)%3)]
	line := 0
	for j := b.Lo; j < b.Hi; j++ {
		for i := a.Lo; i < a.Hi; i++ {
			fn(line, c.At(0, 0, 0)+i*a.Stride+j*b.Stride)
			line++
		}
	}
}

// rows calls fn with the index range of each row of inner points.
func (c *Cell) rows(fn func(from, to int)) {
	x := &c.Axes[0]
	c.EachLine(0, func(_, start int) { fn(start+x.Lo, start+x.Hi) })
}

// addTerms adds the spatial terms of the equations to out.
func (c *Cell) addTerms(line *Line, out []State) {
	for d := range 3 {
		c.EachLine(d, func(_, start int) { line.AddTerms(&c.Axes[d], c.U, out, start) })
	}
}

// pack appends two planes of a dimension, from local index p on, to out.
func (c *Cell) pack(out []State, d, p int) []State {
	c.planes(d, p, func(row []State, stride, count int) {
		for i := range count {
			out = append(out, row[i*stride])
		}
	})
	return out
}

// unpack sets two planes to the first elements of in, and returns the others.
func (c *Cell) unpack(in []State, d, p int) []State {
	c.planes(d, p, func(row []State, stride, count int) {
		for i := range count {
			row[i*stride] = in[i]
		}
		in = in[count:]
	})
	return in
}

// planes calls fn for each row of two planes, without the ghost points of the other
// dimensions.
func (c *Cell) planes(d, p int, fn func(row []State, stride, count int)) {
	e, f := min((d+1)%3, (d+2)%3), max((d+1)%3, (d+2)%3)
	for plane := p; plane < p+2; plane++ {
		for j := range c.Size[f] {
			start := c.At(0, 0, 0) + plane*c.Axes[d].Stride + j*c.Axes[f].Stride
			fn(c.U[start:], c.Axes[e].Stride, c.Size[e])
		}
	}
}
