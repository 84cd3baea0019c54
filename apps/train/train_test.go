package train

import (
	"math"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestVerifies includes parts of a batch that differ in size.
func TestVerifies(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4}, func(t *testing.T, c *mpi.Comm) {
		result, err := Run(c, 'S')
		if err != nil {
			t.Fatal(err)
		}
		if !result.Verified() {
			t.Error(result.String())
		}
	})
}

// TestGradient compares the backward pass with differences of the loss.
func TestGradient(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		p := params{widths: []int{3, 5, 4, 2}, batch: 6}
		tr := newTrainer(c, p)
		tr.data.load(0)
		tr.forward()
		tr.backward()
		for i, l := range tr.layers {
			if _, err := tr.reqs[i].Wait(); err != nil {
				t.Fatal(err)
			}
			for w := range l.weights {
				const h = 1e-6
				old := l.weights[w]
				l.weights[w] = old + h
				above := tr.forward()
				l.weights[w] = old - h
				below := tr.forward()
				l.weights[w] = old
				want := (above - below) / (2 * h) * float64(p.batch)
				if got := l.gradient[w]; math.Abs(got-want) > 1e-6 {
					t.Fatalf("layer %d, weight %d: gradient %v, want %v", i, w, got, want)
				}
			}
		}
	})
}
