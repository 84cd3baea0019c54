package nbody

import (
	"math"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 4, 7}, func(t *testing.T, c *mpi.Comm) {
		result, err := Run(c, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

// TestTreeHoldsAllMass, also for points at the same position.
func TestTreeHoldsAllMass(t *testing.T) {
	stars, _ := cluster(500)
	stars = append(stars, stars[0], stars[0], stars[1])
	b := box{Low: vector{-32, -32, -32}, High: vector{32, 32, 32}}
	var tr tree
	tr.build(b, stars[:100], stars[100:])
	want := 503.0 / 500
	if got := tr.nodes[0].mass; math.Abs(got-want) > 1e-12 {
		t.Errorf("the root has mass %v, want %v", got, want)
	}
	for _, b := range []box{b, {Low: vector{20, 20, 20}, High: vector{21, 21, 21}}} {
		sum := 0.0
		points := tr.essential(b, nil)
		for _, p := range points {
			sum += p.mass
		}
		if math.Abs(sum-want) > 1e-12 {
			t.Errorf("the %d points for box %v have mass %v, want %v", len(points), b, sum, want)
		}
	}
}

// TestFarBoxNeedsLess: the farther a rank is, the fewer points it is sent.
func TestFarBoxNeedsLess(t *testing.T) {
	stars, _ := cluster(1000)
	var tr tree
	tr.build(box{Low: vector{-32, -32, -32}, High: vector{32, 32, 32}}, stars)
	last := len(stars)
	for _, x := range []float64{3, 30, 300} {
		n := len(tr.essential(box{Low: vector{x, 0, 0}, High: vector{x + 1, 1, 1}}, nil))
		if n >= last {
			t.Errorf("a box at distance %v needs %d points, a closer one %d", x, n, last)
		}
		last = n
	}
}
