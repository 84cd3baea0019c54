// Training trains a neural network by data-parallel gradient descent. Every rank has the
// whole network and its share of the samples, so the gradients of all ranks have to be added
// in each step.
//
// The sums are hidden behind computation. The backward pass computes the gradient of the last
// layer first; as soon as a bucket of it is complete, Iallreduce starts to add it, while the
// pass goes on with the layers before. Buckets of some KB make fewer calls than one for each
// layer, and start earlier than one for the whole gradient.
//
//	muster run -n 4 ./training
//	muster run -n 4 --profile ./training      the column "hidden" of Iallreduce
package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const (
	samples = 256 // on all ranks
	steps   = 120
	rate    = 1.0
	bucket  = 512 // elements, at least
)

func main() {
	mpi.Main(func(world *mpi.Comm) error {
		_, err := run(world, os.Stdout)
		return err
	})
}

// run returns the mean loss after the last step.
func run(world *mpi.Comm, out io.Writer) (float64, error) {
	n := newNetwork(world, 2, 32, 32, 1)
	first := 0.0
	for step := range steps {
		loss := []float64{n.forward()}
		if err := n.backward(); err != nil {
			return 0, err
		}
		if step > 0 && step < steps-1 {
			continue
		}
		if err := mpi.Allreduce(world, loss, loss, mpi.Sum); err != nil {
			return 0, err
		}
		if step == 0 {
			first = loss[0]
		} else if world.Rank() == 0 {
			fmt.Fprintf(out, "the loss fell from %.4f to %.4f\n", first, loss[0])
		}
		n.loss = loss[0]
	}
	return n.loss, nil
}

// layer connects in inputs and a constant with out outputs.
type layer struct {
	in, out, at  int // at is the index of its first weight
	values, back []float64
}

// network has all weights in one slice, layer by layer, and so the gradients.
type network struct {
	world             *mpi.Comm
	layers            []layer
	inputs, wanted    []float64 // of the rank's samples
	weights, gradient []float64
	loss              float64
}

func newNetwork(world *mpi.Comm, widths ...int) *network {
	n := &network{world: world}
	for s := world.Rank(); s < samples; s += world.Size() {
		x, y := math.Sin(float64(7*s)), math.Cos(float64(3*s))
		n.inputs, n.wanted = append(n.inputs, x, y), append(n.wanted, x*y)
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same weights on all ranks
	for i, in := range widths[:len(widths)-1] {
		l := layer{in: in, out: widths[i+1], at: len(n.weights)}
		l.values, l.back = make([]float64, l.out*len(n.wanted)), make([]float64, l.out*len(n.wanted))
		for range l.out * (in + 1) {
			n.weights = append(n.weights, random.NormFloat64()/math.Sqrt(float64(in)))
		}
		n.layers = append(n.layers, l)
	}
	n.gradient = make([]float64, len(n.weights))
	return n
}

// forward computes the outputs and their errors, and returns the rank's share of the loss.
func (n *network) forward() (loss float64) {
	in := n.inputs
	for _, l := range n.layers {
		for i := range l.values {
			s, row := i/l.out, n.weights[l.at+i%l.out*(l.in+1):][:l.in+1]
			sum := row[l.in]
			for k, x := range in[s*l.in:][:l.in] {
				sum += row[k] * x
			}
			l.values[i] = math.Tanh(sum)
		}
		in = l.values
	}
	last := n.layers[len(n.layers)-1]
	for s, want := range n.wanted {
		last.back[s] = last.values[s] - want
		loss += last.back[s] * last.back[s] / 2 / samples
	}
	return loss
}

// backward computes the gradients, adds those of all ranks, and changes the weights.
func (n *network) backward() error {
	clear(n.gradient)
	var sums []mpi.Request
	end := len(n.gradient) // the part from here on is under way
	for at := len(n.layers) - 1; at >= 0; at-- {
		l, in, back := n.layers[at], n.inputs, make([]float64, len(n.inputs))
		if at > 0 {
			in, back = n.layers[at-1].values, n.layers[at-1].back
			clear(back)
		}
		for i, y := range l.values {
			s, o := i/l.out, l.at+i%l.out*(l.in+1)
			delta := l.back[i] * (1 - y*y) // the derivative of tanh
			for k, x := range in[s*l.in:][:l.in] {
				n.gradient[o+k] += delta * x
				back[s*l.in+k] += delta * n.weights[o+k]
			}
			n.gradient[o+l.in] += delta
		}
		if end-l.at >= bucket || at == 0 {
			part := n.gradient[l.at:end]
			sums, end = append(sums, mpi.Iallreduce(n.world, part, part, mpi.Sum)), l.at
		}
	}
	err := mpi.WaitAll(sums...)
	for i, g := range n.gradient {
		n.weights[i] -= rate * g / samples
	}
	return err
}
