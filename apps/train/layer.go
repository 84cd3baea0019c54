package train

import (
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
)

// layer connects all its inputs with all its outputs. A row of weights belongs to an output:
// one for each input, and the bias.
type layer struct {
	inputs, outputs   int
	weights, gradient []float64
	out, delta        []float64 // of each sample: the outputs, and the derivatives of the loss
}

func newLayer(inputs, outputs, samples int, random *npb.Random) *layer {
	l := &layer{inputs: inputs, outputs: outputs}
	l.weights, l.gradient = make([]float64, outputs*(inputs+1)), make([]float64, outputs*(inputs+1))
	l.out, l.delta = make([]float64, samples*outputs), make([]float64, samples*outputs)
	// The range for which outputs of a tanh layer vary as much as its inputs (Glorot).
	limit := math.Sqrt(6 / float64(inputs+outputs))
	for i := range l.weights {
		l.weights[i] = limit * (2*random.Next() - 1)
	}
	return l
}

// forward computes the outputs, followed by tanh unless the layer is the last.
func (l *layer) forward(in []float64, hidden bool) {
	for s := range len(l.out) / l.outputs {
		x, y := in[s*l.inputs:][:l.inputs], l.out[s*l.outputs:][:l.outputs]
		for o := range y {
			w := l.weights[o*(l.inputs+1):][:l.inputs+1]
			sum := w[l.inputs]
			for i, v := range x {
				sum += w[i] * v
			}
			if hidden {
				sum = math.Tanh(sum)
			}
			y[o] = sum
		}
	}
}

// gradients computes the derivatives of the loss by the weights, added over the samples.
func (l *layer) gradients(in []float64) {
	clear(l.gradient)
	for s := range len(l.out) / l.outputs {
		x, delta := in[s*l.inputs:][:l.inputs], l.delta[s*l.outputs:][:l.outputs]
		for o, d := range delta {
			g := l.gradient[o*(l.inputs+1):][:l.inputs+1]
			for i, v := range x {
				g[i] += d * v
			}
			g[l.inputs] += d
		}
	}
}

// backward computes the derivatives of the loss by the inputs before their tanh, whose
// derivative is 1-tanh².
func (l *layer) backward(in, before []float64) {
	for s := range len(l.out) / l.outputs {
		x, delta := in[s*l.inputs:][:l.inputs], l.delta[s*l.outputs:][:l.outputs]
		out := before[s*l.inputs:][:l.inputs]
		clear(out)
		for o, d := range delta {
			w := l.weights[o*(l.inputs+1):][:l.inputs]
			for i := range out {
				out[i] += d * w[i]
			}
		}
		for i, v := range x {
			out[i] *= 1 - v*v
		}
	}
}
