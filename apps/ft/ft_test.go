package ft

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestVerifies compares class S with the checksums of the specification.
func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4}, func(t *testing.T, c *mpi.Comm) {
		result, err := Run(c, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

// TestTransform compares both directions, for even and odd powers of two, with the sum that
// defines the transform.
func TestTransform(t *testing.T) {
	for _, n := range []int{4, 8, 16, 32, 64} {
		for _, inverse := range []bool{false, true} {
			f := newTransform(n, inverse)
			in := make([]complex128, n)
			for i := range in {
				in[i] = complex(math.Sin(float64(i*i)), math.Cos(float64(3*i)))
				for b := range batch {
					f.lines[i*batch+b] = in[i] * complex(float64(b+1), 0)
				}
			}
			sign := -1.0
			if inverse {
				sign = 1
			}
			out := f.run()
			for k := range n {
				var want complex128
				for i, v := range in {
					want += v * cmplx.Rect(1, sign*2*math.Pi*float64(i*k)/float64(n))
				}
				for b := range batch {
					want := want * complex(float64(b+1), 0)
					if got := out[k*batch+b]; cmplx.Abs(got-want) > 1e-12*float64(n) {
						t.Fatalf("n %d, inverse %v, line %d, frequency %d: got %v, want %v", n, inverse, b, k, got, want)
					}
				}
			}
		}
	}
}

// TestRejects: classes and numbers of ranks that the grid cannot be divided among.
func TestRejects(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		if _, err := Run(c, 'S'); err == nil {
			t.Error("3 ranks were accepted")
		}
		if _, err := Run(c, 'Z'); err == nil {
			t.Error("class Z was accepted")
		}
	})
}
