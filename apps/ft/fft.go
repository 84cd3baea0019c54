package ft

import (
	"math"
	"math/cmplx"
)

// batch is how many lines are transformed together. Their elements are interleaved, so that
// the loops are long and the factors of a stage stay in registers. Four complex numbers are
// a cache line, and four lines of 256 fit into a first-level cache twice.
const batch = 4

// transform is the discrete Fourier transform of lines of one length, a power of two, by
// Stockham's algorithm: it sorts while it computes, from one buffer into another and back.
// A stage of radix 4 does the work of two of radix 2 with half of the memory accesses.
type transform struct {
	n       int
	inverse bool
	stages  [][]factors // of radix 4; a stage of radix 2 follows if log2(n) is odd
	lines   []complex128
	scratch []complex128
}

// factors are the roots of unity of one butterfly.
type factors [3]complex128

func newTransform(n int, inverse bool) *transform {
	t := &transform{n: n, inverse: inverse, lines: make([]complex128, n*batch), scratch: make([]complex128, n*batch)}
	for length := n; length >= 4; length /= 4 {
		stage := make([]factors, length/4)
		for i := range stage {
			for j := range stage[i] {
				angle := -2 * math.Pi * float64((j+1)*i) / float64(length)
				if inverse {
					angle = -angle
				}
				stage[i][j] = cmplx.Rect(1, angle)
			}
		}
		t.stages = append(t.stages, stage)
	}
	return t
}

// run transforms t.lines, and returns the slice that holds the result: t.lines or t.scratch.
func (t *transform) run() []complex128 {
	from, to := t.lines, t.scratch
	stride := batch
	for _, stage := range t.stages {
		t.radix4(stage, stride, from, to)
		from, to = to, from
		stride *= 4
	}
	if stride < len(from) {
		radix2(from, to)
		from = to
	}
	return from
}

// radix4 performs a stage. The elements of a butterfly are a quarter of the line apart.
func (t *transform) radix4(stage []factors, stride int, from, to []complex128) {
	quarter := len(stage) * stride
	for p := range stage {
		f1, f2, f3 := stage[p][0], stage[p][1], stage[p][2]
		in, out := from[p*stride:], to[4*p*stride:][:4*stride]
		x0 := in[:stride]
		x1, x2, x3 := in[quarter:][:len(x0)], in[2*quarter:][:len(x0)], in[3*quarter:][:len(x0)]
		y0, y1, y2, y3 := out[:len(x0)], out[stride:][:len(x0)], out[2*stride:][:len(x0)], out[3*stride:][:len(x0)]
		if t.inverse {
			// The inverse has i where the transform has -i: results 1 and 3 change roles.
			y1, y3, f1, f3 = y3, y1, f3, f1
		}
		for q := range x0 {
			a, b, c, d := x0[q], x1[q], x2[q], x3[q]
			even, odd := a+c, b+d
			u, v := a-c, b-d
			y0[q] = even + odd
			y2[q] = f2 * (even - odd)
			y1[q] = f1 * complex(real(u)+imag(v), imag(u)-real(v))
			y3[q] = f3 * complex(real(u)-imag(v), imag(u)+real(v))
		}
	}
}

// radix2 performs the last stage, whose factors are 1.
func radix2(from, to []complex128) {
	half := len(from) / 2
	x0, x1 := from[:half], from[half:][:half]
	y0, y1 := to[:half], to[half:][:half]
	for q := range x0 {
		y0[q], y1[q] = x0[q]+x1[q], x0[q]-x1[q]
	}
}
