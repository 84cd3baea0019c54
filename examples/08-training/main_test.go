package main

import (
	"math"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestRanksTrainOneNetwork checks that the ranks of a job reach the loss of a single rank,
// which is small.
func TestRanksTrainOneNetwork(t *testing.T) {
	alone := 0.0
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		var out strings.Builder
		loss, err := run(world, &out)
		if err != nil {
			t.Fatal(err)
		}
		if world.Size() == 1 {
			alone = loss
		}
		if math.Abs(loss-alone) > 1e-6*alone || loss > 0.04 {
			t.Errorf("the loss is %v, that of one rank %v", loss, alone)
		}
		if printed := strings.HasPrefix(out.String(), "the loss fell from "); printed != (world.Rank() == 0) {
			t.Errorf("rank %d prints %q", world.Rank(), out.String())
		}
	})
}

// TestGradient compares the backward pass with differences of the loss.
func TestGradient(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, world *mpi.Comm) {
		n := newNetwork(world, 2, 5, 3, 1)
		before := append([]float64(nil), n.weights...)
		n.forward()
		if err := n.backward(); err != nil {
			t.Fatal(err)
		}
		copy(n.weights, before)
		for i, g := range n.gradient {
			const h = 1e-6
			n.weights[i] += h
			above := n.forward()
			n.weights[i] -= 2 * h
			below := n.forward()
			n.weights[i] = before[i]
			if want := (above - below) / (2 * h) * samples; math.Abs(g-want) > 1e-6 {
				t.Fatalf("weight %d: gradient %v, want %v", i, g, want)
			}
		}
	})
}
