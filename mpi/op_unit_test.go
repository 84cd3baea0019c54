package mpi_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// unitBytes is the size of an affine function as bytes.
const unitBytes = 12

// affineBytes is composition on bytes: a unit has the two numbers and four bytes that must
// stay in front of them.
func affineBytes(t *testing.T) func() mpi.Op[byte] {
	return (&mpi.UserOp[byte]{Name: "affine bytes", Unit: unitBytes, NonCommutative: true, Combine: func(inout, in []byte) {
		if len(inout) != len(in) || len(in)%unitBytes != 0 {
			t.Errorf("Combine got %d and %d bytes, want multiples of %d", len(inout), len(in), unitBytes)
			return
		}
		for i := 0; i < len(in); i += unitBytes {
			first, then := affineAt(in[i:]), affineAt(inout[i:])
			putAffine(inout[i:], compose(first, then))
		}
	}}).Op
}

func affineAt(b []byte) affine {
	if string(b[:4]) != "unit" {
		panic("a unit was cut")
	}
	return affine{int32(binary.LittleEndian.Uint32(b[4:])), int32(binary.LittleEndian.Uint32(b[8:]))}
}

func putAffine(b []byte, v affine) {
	copy(b, "unit")
	binary.LittleEndian.PutUint32(b[4:], uint32(v.a))
	binary.LittleEndian.PutUint32(b[8:], uint32(v.b))
}

// composed returns units lo to hi, composed over the ranks from 0 to last.
func composed(lo, hi, last int) []byte {
	out := make([]byte, (hi-lo)*unitBytes)
	for i := lo; i < hi; i++ {
		v := affine{1, 0}
		for r := range last + 1 {
			v = compose(v, affine{int32(r+i)%7 + 1, int32(r*i) % prime})
		}
		putAffine(out[(i-lo)*unitBytes:], v)
	}
	return out
}

// given returns the contribution of a rank.
func given(n, rank int) []byte {
	out := make([]byte, n*unitBytes)
	for i := range n {
		putAffine(out[i*unitBytes:], compose(affine{1, 0}, affine{int32(rank+i)%7 + 1, int32(rank*i) % prime}))
	}
	return out
}

// An operation gets its units whole in all reductions, in shared memory and by messages, for
// lengths up to several pieces of a round.
func TestOpUnit(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		mpitest.Run(t, ranks, func(t *testing.T, c *mpi.Comm) {
			op, me, size := affineBytes(t), c.Rank(), c.Size()
			for _, n := range []int{1, 7, 1000, 30000} {
				in, all, counts := given(n, me), given(n*size, me), make([]int, size)
				for r := range counts {
					counts[r] = n * unitBytes
				}
				for range 2 { // the first calls use messages
					out := make([]byte, len(in))
					check := func(call string, err error, want []byte) {
						t.Helper()
						noError(t, err, call)
						if !slices.Equal(out, want) {
							t.Errorf("%s of %d units on rank %d of %d is wrong", call, n, me, size)
						}
						clear(out)
					}
					check("Allreduce", mpi.Allreduce(c, in, out, op), composed(0, n, size-1))
					check("Iallreduce", waitErr(mpi.Iallreduce(c, in, out, op)), composed(0, n, size-1))
					check("Scan", mpi.Scan(c, in, out, op), composed(0, n, me))
					check("ReduceScatterBlock", mpi.ReduceScatterBlock(c, all, out, op), composed(me*n, (me+1)*n, size-1))
					check("ReduceScatter", mpi.ReduceScatter(c, all, out, counts, op), composed(me*n, (me+1)*n, size-1))
					if err := mpi.Reduce(c, in, out, op, size-1); me == size-1 {
						check("Reduce", err, composed(0, n, size-1))
					}
					if err := mpi.Exscan(c, in, out, op); me > 0 {
						check("Exscan", err, composed(0, n, me-1))
					}
				}
			}
			wantClass(t, mpi.Allreduce(c, make([]byte, 5), make([]byte, 5), op), mpi.ErrCount, "Allreduce of a part of a unit")
		})
	}
}
