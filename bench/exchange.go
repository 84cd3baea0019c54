package bench

// Two ranks produce, exchange and consume data (T1 4.4.1, figure 4.15). Model 1 calls
// the receive before the send, model 2 after it; both compute between the calls and Wait.
//
// The amount of computation is a ratio: the time of an iteration of model 1 that only
// communicates, to the time of producing and consuming, half of it each. Libraries and
// protocols differ in communication time, but must compute for the same time to be
// compared: Params.Communication then replaces the measured communication time.

import (
	"fmt"
	"math"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func exchangeBenchmarks() []Benchmark {
	return []Benchmark{{Name: "exchange", Title: "Produce, Exchange and Consume", Doc: "time of an iteration that produces, exchanges and consumes, by the ratio of communication to computation", Ranks: 2,
		Sizes: []int{128 << 10}, Metric: "iteration", Unit: "us", Column: "Iteration (us)", Run: exchange, Protocols: true,
		Flags: []Flag{
			{Name: "ratios", Help: "ratios of communication to computation (default: from 0.1 to 4)", Value: func(p *Params) any { return &p.Ratios }},
			{Name: "communication", Help: "assumed time of an iteration without computation (default: measured)", Value: func(p *Params) any { return &p.Communication }, From: "model-1/communication"}},
		Validate: func(p *Params) error {
			for _, r := range p.Ratios {
				if !(r > 0) || math.IsInf(r, 0) {
					return fmt.Errorf("--ratios %g: the ratio of communication to computation must be above 0", r)
				}
			}
			if p.Communication < 0 {
				return fmt.Errorf("--communication %v: use a time such as 30us", p.Communication)
			}
			return nil
		}}}
}

const (
	exchangeTag   = 16
	exchangeBatch = 20 // iterations that are timed together
	packedRow     = 1 << 10
)

// exchangeRatios are communication to computation.
var exchangeRatios = []float64{0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1, 1.5, 2, 4}

func exchange(c *mpi.Comm, p *Params, emit func(Result)) error {
	ratios := p.Ratios
	if ratios == nil {
		ratios = exchangeRatios
	}
	w := newWork()
	for _, size := range p.Sizes {
		communication := micros(p.Communication)
		for model := 1; model <= 2; model++ {
			var err error
			if communication, err = exchangeModel(newPartner(c, w, size, model), communication, ratios, p, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// exchangeModel alternates between the ratios, so that all of them see the same load of the
// machine. It returns the communication time that they refer to.
func exchangeModel(x *partner, communication float64, ratios []float64, p *Params, emit func(Result)) (float64, error) {
	warmup, n := p.iterations(len(x.out), 2000, 500)
	for range max(1, warmup/exchangeBatch) {
		if _, err := x.batch(0); err != nil {
			return 0, err
		}
	}
	count := max(5, n/exchangeBatch)
	bare, err := x.batches(count, []float64{0})
	if err != nil {
		return 0, err
	}
	if communication == 0 {
		// Both ranks use the computation time that rank 0 has determined.
		found := []float64{Median(bare[0])}
		if err := mpi.Bcast(x.c, found, 0); err != nil {
			return 0, err
		}
		communication = found[0]
	}
	computations := make([]float64, len(ratios))
	for i, r := range ratios {
		computations[i] = communication / r
	}
	times, err := x.batches(count, computations)
	if err != nil {
		return 0, err
	}
	name := fmt.Sprintf("model-%d", x.model)
	emit(middle(Result{Size: len(x.out), Metric: name + "/communication", Unit: "us", Beside: true}, bare[0]))
	for i, r := range ratios {
		emit(middle(Result{Size: len(x.out), Metric: fmt.Sprintf("%s/%g", name, r), Unit: "us", Ratio: r}, times[i]))
	}
	return communication, nil
}

// partner is one of the two ranks.
type partner struct {
	c       *mpi.Comm
	w       *work
	model   int
	data    []byte // produced rows; every second row is sent
	out, in []byte
}

func newPartner(c *mpi.Comm, w *work, size, model int) *partner {
	x := &partner{c: c, w: w, model: model, data: make([]byte, 2*(size+packedRow))}
	fill(x.data, 1)
	x.out, x.in = buffers(size)
	return x
}

// batches times batches of each computation, alternately: µs per iteration, by
// computation and batch.
func (x *partner) batches(count int, computations []float64) ([][]float64, error) {
	times := make([][]float64, len(computations))
	for range count {
		for i, us := range computations {
			t, err := x.batch(us)
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], t)
		}
	}
	return times, nil
}

// batch is figure 4.15; half of the computation produces, half consumes.
func (x *partner) batch(computation float64) (float64, error) {
	if err := x.c.Barrier(); err != nil {
		return 0, err
	}
	half := x.w.iterations(computation / 2)
	iterate := x.model1
	if x.model == 2 {
		iterate = x.model2
	}
	start := time.Now()
	x.w.run(half) // Produce(data 1)
	for i := range exchangeBatch {
		if err := iterate(i, half); err != nil {
			return 0, err
		}
	}
	if x.model == 2 {
		x.w.run(half) // Consume(the last data)
	}
	return micros(time.Since(start)) / exchangeBatch, nil
}

func (x *partner) model1(_, half int) error {
	peer := 1 - x.c.Rank()
	received := mpi.Irecv(x.c, x.in, peer, exchangeTag)
	x.pack()
	sent := mpi.Isend(x.c, x.out, peer, exchangeTag)
	x.w.run(half) // Produce
	if _, err := sent.Wait(); err != nil {
		return err
	}
	if _, err := received.Wait(); err != nil {
		return err
	}
	x.w.run(half) // Consume
	return nil
}

func (x *partner) model2(i, half int) error {
	peer := 1 - x.c.Rank()
	x.pack()
	sent := mpi.Isend(x.c, x.out, peer, exchangeTag)
	if i > 0 {
		x.w.run(half) // Consume what came last
	}
	received := mpi.Irecv(x.c, x.in, peer, exchangeTag)
	x.w.run(half) // Produce
	if _, err := sent.Wait(); err != nil {
		return err
	}
	_, err := received.Wait()
	return err
}

// pack gathers the rows that are sent, which are not contiguous.
func (x *partner) pack() {
	for at := 0; at < len(x.out); at += packedRow {
		copy(x.out[at:min(at+packedRow, len(x.out))], x.data[2*at:])
	}
}
