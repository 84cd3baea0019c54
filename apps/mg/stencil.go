package mg

// The operators of multigrid. Each point depends on its 26 neighbors through four
// coefficients: for the point itself, and for those at distance 1, √2 and √3. Points with
// the same coefficient are added before they are multiplied. Rows are sliced to the same
// length, so that the compiler leaves out the checks of the index in the inner loops.

// residual computes r = right - A·u for the Laplace operator, whose coefficients are -8/3,
// 0, 1/6 and 1/12.
func residual(b *box, right []float64, sums [3][]float64) {
	const a0, a2, a3 = -8.0 / 3, 1.0 / 6, 1.0 / 12
	b.rows(func(y, z int) {
		edge, corner := b.sumNeighbors(b.u, y, z, sums)
		n := len(edge)
		corner = corner[:n]
		center, out, right := b.row(b.u, y, z)[:n], b.row(b.r, y, z)[:n], b.row(right, y, z)[:n]
		for i := 1; i < n-1; i++ {
			out[i] = right[i] - a0*center[i] - a2*(corner[i]+edge[i-1]+edge[i+1]) - a3*(corner[i-1]+corner[i+1])
		}
	})
}

// smooth computes u += S·r. The coefficient of the eight most distant points is 0.
func smooth(b *box, s [3]float64, sums [3][]float64) {
	s0, s1, s2 := s[0], s[1], s[2]
	b.rows(func(y, z int) {
		edge, corner := b.sumNeighbors(b.r, y, z, sums)
		n := len(edge)
		corner = corner[:n]
		center, out := b.row(b.r, y, z)[:n], b.row(b.u, y, z)[:n]
		for i := 1; i < n-1; i++ {
			out[i] += s0*center[i] + s1*(center[i-1]+center[i+1]+edge[i]) + s2*(corner[i]+edge[i-1]+edge[i+1])
		}
	})
}

// sumNeighbors adds up the eight neighbors of each point of a row that have the same x: edge is
// the sum of the four at distance 1, corner that of the four at distance √2.
func (b *box) sumNeighbors(a []float64, y, z int, sums [3][]float64) (edge, corner []float64) {
	n := b.width[0]
	edge, corner = sums[0][:n], sums[1][:n]
	corner = corner[:len(edge)]
	e0, e1 := b.row(a, y-1, z)[:len(edge)], b.row(a, y+1, z)[:len(edge)]
	e2, e3 := b.row(a, y, z-1)[:len(edge)], b.row(a, y, z+1)[:len(edge)]
	c0, c1 := b.row(a, y-1, z-1)[:len(edge)], b.row(a, y+1, z-1)[:len(edge)]
	c2, c3 := b.row(a, y-1, z+1)[:len(edge)], b.row(a, y+1, z+1)[:len(edge)]
	for i := range edge {
		edge[i] = e0[i] + e1[i] + e2[i] + e3[i]
		corner[i] = c0[i] + c1[i] + c2[i] + c3[i]
	}
	return edge, corner
}

// restrict computes the residual of the coarser grid: point i of it is point 2·i of the
// finer one, and its neighbors count for a half, a quarter and an eighth of it.
func restrict(fine, coarse *box) {
	coarse.rows(func(y, z int) {
		row := func(dy, dz int) []float64 { return fine.row(fine.r, 2*y+dy, 2*z+dz) }
		center := row(0, 0)
		e0, e1, e2, e3 := row(-1, 0), row(1, 0), row(0, -1), row(0, 1)
		c0, c1, c2, c3 := row(-1, -1), row(-1, 1), row(1, -1), row(1, 1)
		out := coarse.row(coarse.r, y, z)
		// The sums for x - 1 are those for x + 1 of the point before.
		edge0 := e0[1] + e1[1] + e2[1] + e3[1]
		corner0 := c0[1] + c1[1] + c2[1] + c3[1]
		for i := 1; i < len(out)-1; i++ {
			k := 2 * i
			edge1 := e0[k] + e1[k] + e2[k] + e3[k]
			corner1 := c0[k] + c1[k] + c2[k] + c3[k]
			k++
			edge2 := e0[k] + e1[k] + e2[k] + e3[k]
			corner2 := c0[k] + c1[k] + c2[k] + c3[k]
			out[i] = 0.5*center[k-1] + 0.25*(center[k-2]+center[k]+edge1) + 0.125*(edge0+edge2+corner1) + 0.0625*(corner0+corner2)
			edge0, corner0 = edge2, corner2
		}
	})
}

// interpolate adds the solution of the coarser grid to the finer one. A point between
// coarse points gets their mean. Ghost points of the finer grid are computed, too.
func interpolate(coarse, fine *box, sums [3][]float64) {
	n := coarse.width[0]
	inY, inZ, inBoth := sums[0][:n], sums[1][:n], sums[2][:n]
	for z := range coarse.own[2] + 1 {
		for y := range coarse.own[1] + 1 {
			row := func(dy, dz int) []float64 { return coarse.row(coarse.u, y+dy, z+dz)[:len(inY)] }
			c00, c10, c01, c11 := row(0, 0), row(1, 0), row(0, 1), row(1, 1)
			inZ, inBoth := inZ[:len(inY)], inBoth[:len(inY)]
			for i := range inY {
				inY[i] = 0.5 * (c00[i] + c10[i])
				inZ[i] = 0.5 * (c00[i] + c01[i])
				inBoth[i] = 0.25 * (c00[i] + c10[i] + c01[i] + c11[i])
			}
			addBetween(fine.row(fine.u, 2*y, 2*z), c00)
			addBetween(fine.row(fine.u, 2*y+1, 2*z), inY)
			addBetween(fine.row(fine.u, 2*y, 2*z+1), inZ)
			addBetween(fine.row(fine.u, 2*y+1, 2*z+1), inBoth)
		}
	}
}

// addBetween adds a row of coarse points, and the means between them, to a row of the
// finer grid.
func addBetween(fine, coarse []float64) {
	left := coarse[0]
	for _, right := range coarse[1:] {
		if len(fine) < 2 {
			return
		}
		fine[0] += left
		fine[1] += 0.5 * (left + right)
		left, fine = right, fine[2:]
	}
}
