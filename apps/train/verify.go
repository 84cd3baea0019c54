package train

import (
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// verify checks that the network learned, that all ranks have the same one, and that it is
// the one which a rank by itself gets, up to the rounding of sums in another order.
func (t *trainer) verify(p params) ([]npb.Check, error) {
	alone := newTrainer(t.c.Self(), p)
	if err := alone.run(p.steps); err != nil {
		return nil, err
	}
	spread, difference := 0.0, 0.0
	for i, l := range t.layers {
		highest, lowest := make([]float64, len(l.weights)), make([]float64, len(l.weights))
		if err := mpi.Allreduce(t.c, l.weights, highest, mpi.Max); err != nil {
			return nil, err
		}
		if err := mpi.Allreduce(t.c, l.weights, lowest, mpi.Min); err != nil {
			return nil, err
		}
		for w, v := range l.weights {
			spread = max(spread, highest[w]-lowest[w])
			difference = max(difference, math.Abs(v-alone.layers[i].weights[w]))
		}
	}
	worst := []float64{difference}
	if err := mpi.Allreduce(t.c, worst, worst, mpi.Max); err != nil {
		return nil, err
	}
	first, last := t.losses[0], t.losses[len(t.losses)-1]
	return []npb.Check{
		{Name: "Loss/first loss", Got: last / first, Tolerance: 0.5},
		{Name: "Ranks differ by", Got: spread},
		{Name: "Serial run", Got: worst[0], Tolerance: 1e-9},
	}, nil
}
