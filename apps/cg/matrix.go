package cg

import (
	"math"
	"math/bits"
	"slices"

	"github.com/muster-mpi/muster/apps/internal/npb"
)

// condition bounds the smallest eigenvalue of the matrix before the shift.
const condition = 0.1

// matrix is the rank's block in compressed rows. Columns are counted from the first of the
// block and ascend in each row, so that the vector is read in order.
type matrix struct {
	start  []int // of each row, and the end of the last
	col    []int32
	values []float64
}

// sparseVector is a vector of order n with few nonzero elements.
type sparseVector struct {
	index  []int32
	values []float64
}

// newMatrix makes the rank's block of the matrix
//
//	A = Σ ωᵏ · vₖ·vₖᵀ + (condition - shift)·I
//
// of n random sparse vectors vₖ, where ω is such that ωⁿ is the condition. All ranks
// generate all vectors, because they come from one sequence of random numbers.
func newMatrix(p params, g *grid) *matrix {
	vectors := randomVectors(p)
	// For each row of the block, the vectors that have an element there.
	in := make([][]int32, g.rows.len())
	for k, v := range vectors {
		for _, i := range v.index {
			if g.rows.has(i) {
				in[int(i)-g.rows.first] = append(in[int(i)-g.rows.first], int32(k))
			}
		}
	}
	weights := make([]float64, p.n)
	weight, ratio := 1.0, math.Pow(condition, 1/float64(p.n))
	for k := range weights {
		weights[k] = weight
		weight *= ratio
	}

	a := &matrix{start: []int{0}}
	row := make([]float64, g.cols.len()) // dense, zero between rows
	var used []int32
	add := func(j int32, v float64) {
		if row[j] == 0 {
			used = append(used, j)
		}
		row[j] += v
	}
	for i := range in {
		at := int32(g.rows.first + i)
		for _, k := range in[i] {
			v := vectors[k]
			mine := v.values[slices.Index(v.index, at)]
			for e, j := range v.index {
				if g.cols.has(j) {
					add(j-int32(g.cols.first), mine*(weights[k]*v.values[e]))
				}
			}
		}
		if g.cols.has(at) {
			add(at-int32(g.cols.first), condition-p.shift)
		}
		slices.Sort(used)
		for _, j := range used {
			a.col = append(a.col, j)
			a.values = append(a.values, row[j])
			row[j] = 0
		}
		used = used[:0]
		a.start = append(a.start, len(a.col))
	}
	return a
}

// randomVectors generates the vectors of the matrix. Vector k has its elements at random
// positions, and one of 0.5 at position k.
func randomVectors(p params) []sparseVector {
	random := npb.Random(npb.Seed)
	random.Next() // the specification does not use the first number
	positions := float64(uint(1) << bits.Len(uint(p.n-1)))
	vectors := make([]sparseVector, p.n)
	for k := range vectors {
		v := &vectors[k]
		for len(v.index) < p.nonzeros {
			value, at := random.Next(), int32(positions*random.Next())
			if int(at) < p.n && !slices.Contains(v.index, at) {
				v.index = append(v.index, at)
				v.values = append(v.values, value)
			}
		}
		if i := slices.Index(v.index, int32(k)); i >= 0 {
			v.values[i] = 0.5
		} else {
			v.index = append(v.index, int32(k))
			v.values = append(v.values, 0.5)
		}
	}
	return vectors
}

// multiply computes out = A·in for the block.
func (a *matrix) multiply(in, out []float64) {
	start := a.start[:len(out)+1]
	from := start[0]
	for i := range out {
		to := start[i+1]
		values, col := a.values[from:to], a.col[from:to]
		col = col[:len(values)] // spares the check of the index
		sum := 0.0
		for k, v := range values {
			sum += v * in[col[k]]
		}
		out[i] = sum
		from = to
	}
}
