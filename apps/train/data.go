package train

import (
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
)

// source makes samples to classify: clouds of points, one for each label, each around a
// center of its own. A sample depends on its number alone, so that the ranks of a job see the
// same ones however many they are.
type source struct {
	width   int
	centers [][]float64
	inputs  []float64 // of the loaded samples, one after the other
	labels  []int
}

// noise is how far the points of a cloud are from its center, which has coordinates between
// -1 and 1: clouds overlap, so that the network has something to learn.
const noise = 1.5

func newSource(width, labels, samples int) *source {
	d := &source{width: width, inputs: make([]float64, samples*width), labels: make([]int, samples)}
	random := npb.Random(npb.Seed)
	for range labels {
		center := make([]float64, width)
		for i := range center {
			center[i] = math.Copysign(1, random.Next()-0.5)
		}
		d.centers = append(d.centers, center)
	}
	return d
}

// load makes the samples with the numbers from first on.
func (d *source) load(first int) {
	for s := range d.labels {
		number := first + s
		random := npb.Random(npb.Seed)
		random.Skip((number + 1) * (d.width + 1000))
		d.labels[s] = number % len(d.centers)
		in := d.inputs[s*d.width:][:d.width]
		for i, c := range d.centers[d.labels[s]] {
			in[i] = c + noise*(2*random.Next()-1)
		}
	}
}
