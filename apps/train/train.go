package train

import (
	"fmt"
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWA"

const rate = 0.1 // learning rate

// params are the widths of the network from its inputs to its outputs, the samples of a
// batch on all ranks, and the number of batches.
type params struct {
	widths       []int
	batch, steps int
}

var classes = map[byte]params{
	'S': {[]int{16, 32, 32, 4}, 64, 60},
	'W': {[]int{64, 128, 128, 8}, 128, 80},
	'A': {[]int{128, 512, 512, 16}, 256, 60},
}

// Run trains the network of a class on the ranks of c. Any number of ranks up to the size of
// a batch will do.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	if c.Size() > p.batch {
		return npb.Result{}, fmt.Errorf("%d ranks: a batch has %d samples: use fewer ranks", c.Size(), p.batch)
	}
	t := newTrainer(c, p)
	if err := t.run(p.steps); err != nil {
		return npb.Result{}, err
	}
	checks, err := t.verify(p)
	if err != nil {
		return npb.Result{}, err
	}
	weights := 0
	for _, l := range t.layers {
		weights += len(l.weights)
	}
	return t.clock.Finish(c, npb.Result{
		Name: "TRAIN", Class: class, Size: fmt.Sprintf("%d weights", weights), Iterations: p.steps,
		// Two operations per weight and sample in the forward pass, four in the backward pass.
		Operation: "floating point", Operations: 6 * float64(weights) * float64(p.batch) * float64(p.steps),
		Checks: checks,
	})
}

// trainer is a rank's copy of the network, and its part of the batches.
type trainer struct {
	c              *mpi.Comm
	clock          npb.Clock
	p              params
	first, samples int // of a batch, for this rank
	data           *source
	layers         []*layer
	reqs           []mpi.Request // the sum of each layer's gradient
	losses         []float64     // mean over the batch, for each step
}

func newTrainer(c *mpi.Comm, p params) *trainer {
	t := &trainer{c: c, p: p, first: p.batch * c.Rank() / c.Size()}
	t.samples = p.batch*(c.Rank()+1)/c.Size() - t.first
	t.data = newSource(p.widths[0], p.widths[len(p.widths)-1], t.samples)
	random := npb.Random(npb.Seed)
	for i := range p.widths[1:] {
		t.layers = append(t.layers, newLayer(p.widths[i], p.widths[i+1], t.samples, &random))
	}
	t.reqs = make([]mpi.Request, len(t.layers))
	return t
}

// run performs the steps, and adds the losses of the ranks at the end.
func (t *trainer) run(steps int) error {
	t.losses = make([]float64, steps)
	if err := t.clock.Start(t.c); err != nil {
		return err
	}
	for step := range steps {
		t.data.load(step*t.p.batch + t.first)
		t.losses[step] = t.forward()
		t.backward()
		if err := t.update(); err != nil {
			return err
		}
	}
	t.clock.Stop()
	return mpi.Allreduce(t.c, t.losses, t.losses, mpi.Sum)
}

// forward computes the outputs for the rank's samples, replaces them by the derivative of
// the loss, and returns the rank's share of the mean loss: cross entropy of the softmax.
func (t *trainer) forward() float64 {
	in := t.data.inputs
	for i, l := range t.layers {
		l.forward(in, i < len(t.layers)-1)
		in = l.out
	}
	last := t.layers[len(t.layers)-1]
	loss := 0.0
	for s, label := range t.data.labels {
		out := last.out[s*last.outputs:][:last.outputs]
		delta := last.delta[s*last.outputs:][:last.outputs]
		largest, sum := out[0], 0.0
		for _, v := range out {
			largest = max(largest, v)
		}
		for i, v := range out {
			delta[i] = math.Exp(v - largest)
			sum += delta[i]
		}
		loss -= math.Log(delta[label] / sum)
		for i := range delta {
			delta[i] /= sum
		}
		delta[label]--
	}
	return loss / float64(t.p.batch)
}

// backward computes the gradients from the last layer to the first, and starts to add those
// of all ranks. Iallreduce works in place, and owns the gradient until update waits for it.
func (t *trainer) backward() {
	for i := len(t.layers) - 1; i >= 0; i-- {
		in := t.data.inputs
		if i > 0 {
			in = t.layers[i-1].out
		}
		l := t.layers[i]
		l.gradients(in)
		t.clock.EnterMPI()
		t.reqs[i] = mpi.Iallreduce(t.c, l.gradient, l.gradient, mpi.Sum)
		t.clock.LeaveMPI()
		if i > 0 {
			l.backward(in, t.layers[i-1].delta)
		}
	}
}

// update waits for the sums in the order in which they were started, and corrects the
// weights.
func (t *trainer) update() error {
	scale := rate / float64(t.p.batch)
	for i := len(t.layers) - 1; i >= 0; i-- {
		t.clock.EnterMPI()
		_, err := t.reqs[i].Wait()
		t.clock.LeaveMPI()
		if err != nil {
			return err
		}
		weights, gradient := t.layers[i].weights, t.layers[i].gradient
		for w, g := range gradient {
			weights[w] -= scale * g
		}
	}
	return nil
}
