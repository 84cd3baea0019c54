package heat

import (
	"math"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4, 6}, func(t *testing.T, c *mpi.Comm) {
		result, err := Run(c, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

// TestConverges: with half the distance between points and half the step, the error of a
// method of second order is a quarter. Rectangles one point wide are part of it.
func TestConverges(t *testing.T) {
	mpitest.Run(t, 4, func(t *testing.T, c *mpi.Comm) {
		var last float64
		for _, p := range []params{{3, 5}, {7, 10}, {15, 20}, {31, 40}} {
			s, err := newPlate(c, p)
			if err != nil {
				t.Fatal(err)
			}
			for range p.steps {
				if err := s.step(); err != nil {
					t.Fatal(err)
				}
			}
			check, err := s.verify()
			if err != nil {
				t.Fatal(err)
			}
			if ratio := last / check.Got; last != 0 && math.Abs(ratio-4) > 1 {
				t.Errorf("%d points: the error %.2e is that of the coarser grid divided by %.2f, want about 4", p.n, check.Got, ratio)
			}
			last = check.Got
		}
	})
}
