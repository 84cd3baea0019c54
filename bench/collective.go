package bench

// Collectives, blocking and non-blocking, by the loops of the OSU micro-benchmarks;
// groups/loops/collective.c has the same for other libraries.
//
// A blocking call is timed at every rank, call by call, with a barrier after each,
// so that no rank runs ahead; the figure is the mean over ranks. A non-blocking call
// is timed alone, then with a computation of the same length between the call and
// Wait. The share of the call that the computation hides is the overlap.

import (
	"cmp"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
)

// collective is a collective operation and its calls.
type collective struct {
	kind        coll.Kind
	name, title string // the name is that of the kind, unless it is given
	irregular   bool   // blocks may differ in length
	call        func(c *mpi.Comm, d *collectiveData) error
	start       func(c *mpi.Comm, d *collectiveData) mpi.Request
	// prepare returns the persistent form; nil: it is not measured.
	prepare func(c *mpi.Comm, d *collectiveData) *mpi.Persistent
}

// collectiveData has the buffers of a call: bytes, or vectors of numbers.
type collectiveData struct {
	in, out        []byte
	vector, result []float64
	counts, displs []int // of blocks
	parts          []int // of the vector, one for each rank
	sum            func() mpi.Op[float64]
}

// collectives lists the operations in the order of the MPI standard. A size is that of
// one block, of the data of a broadcast, or of the vector of a reduction. The v forms
// use equal blocks, as OSU does.
func collectives() []collective {
	list := collectiveForms()
	for i := range list {
		list[i].name = cmp.Or(list[i].name, list[i].kind.String())
	}
	return list
}

// collectiveForms has the calls of each operation.
func collectiveForms() []collective {
	return []collective{
		{kind: coll.Bcast, title: "Broadcast",
			call:    func(c *mpi.Comm, d *collectiveData) error { return mpi.Bcast(c, d.in, 0) },
			start:   func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Ibcast(c, d.in, 0) },
			prepare: func(c *mpi.Comm, d *collectiveData) *mpi.Persistent { return mpi.BcastInit(c, d.in, 0) }},
		{kind: coll.Gather, title: "Gather",
			call:    func(c *mpi.Comm, d *collectiveData) error { return mpi.Gather(c, d.in, d.out, 0) },
			start:   func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Igather(c, d.in, d.out, 0) },
			prepare: func(c *mpi.Comm, d *collectiveData) *mpi.Persistent { return mpi.GatherInit(c, d.in, d.out, 0) }},
		{name: "gatherv", kind: coll.Gather, title: "Gatherv", irregular: true,
			call: func(c *mpi.Comm, d *collectiveData) error {
				return mpi.Gatherv(c, d.in, d.out, d.counts, d.displs, 0)
			},
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request {
				return mpi.Igatherv(c, d.in, d.out, d.counts, d.displs, 0)
			}},
		{kind: coll.Scatter, title: "Scatter",
			call:    func(c *mpi.Comm, d *collectiveData) error { return mpi.Scatter(c, d.in, d.out, 0) },
			start:   func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Iscatter(c, d.in, d.out, 0) },
			prepare: func(c *mpi.Comm, d *collectiveData) *mpi.Persistent { return mpi.ScatterInit(c, d.in, d.out, 0) }},
		{name: "scatterv", kind: coll.Scatter, title: "Scatterv", irregular: true,
			call: func(c *mpi.Comm, d *collectiveData) error {
				return mpi.Scatterv(c, d.in, d.counts, d.displs, d.out, 0)
			},
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request {
				return mpi.Iscatterv(c, d.in, d.counts, d.displs, d.out, 0)
			}},
		{kind: coll.Allgather, title: "Allgather",
			call:    func(c *mpi.Comm, d *collectiveData) error { return mpi.Allgather(c, d.in, d.out) },
			start:   func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Iallgather(c, d.in, d.out) },
			prepare: func(c *mpi.Comm, d *collectiveData) *mpi.Persistent { return mpi.AllgatherInit(c, d.in, d.out) }},
		{name: "allgatherv", kind: coll.Allgather, title: "Allgatherv", irregular: true,
			call: func(c *mpi.Comm, d *collectiveData) error {
				return mpi.Allgatherv(c, d.in, d.out, d.counts, d.displs)
			},
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request {
				return mpi.Iallgatherv(c, d.in, d.out, d.counts, d.displs)
			}},
		{kind: coll.Alltoall, title: "All-to-All",
			call:    func(c *mpi.Comm, d *collectiveData) error { return mpi.Alltoall(c, d.in, d.out) },
			start:   func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Ialltoall(c, d.in, d.out) },
			prepare: func(c *mpi.Comm, d *collectiveData) *mpi.Persistent { return mpi.AlltoallInit(c, d.in, d.out) }},
		{name: "alltoallv", kind: coll.Alltoall, title: "All-to-Allv", irregular: true,
			call: func(c *mpi.Comm, d *collectiveData) error {
				return mpi.Alltoallv(c, d.in, d.counts, d.displs, d.out, d.counts, d.displs)
			},
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request {
				return mpi.Ialltoallv(c, d.in, d.counts, d.displs, d.out, d.counts, d.displs)
			}},
		{kind: coll.Reduce, title: "Reduce",
			call:  func(c *mpi.Comm, d *collectiveData) error { return mpi.Reduce(c, d.vector, d.result, d.sum, 0) },
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Ireduce(c, d.vector, d.result, d.sum, 0) },
			prepare: func(c *mpi.Comm, d *collectiveData) *mpi.Persistent {
				return mpi.ReduceInit(c, d.vector, d.result, d.sum, 0)
			}},
		{kind: coll.Allreduce, title: "Allreduce",
			call:  func(c *mpi.Comm, d *collectiveData) error { return mpi.Allreduce(c, d.vector, d.result, d.sum) },
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Iallreduce(c, d.vector, d.result, d.sum) },
			prepare: func(c *mpi.Comm, d *collectiveData) *mpi.Persistent {
				return mpi.AllreduceInit(c, d.vector, d.result, d.sum)
			}},
		{kind: coll.ReduceScatter, title: "Reduce_scatter", irregular: true,
			call: func(c *mpi.Comm, d *collectiveData) error {
				return mpi.ReduceScatter(c, d.vector, d.result[:d.parts[c.Rank()]], d.parts, d.sum)
			},
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request {
				return mpi.IreduceScatter(c, d.vector, d.result[:d.parts[c.Rank()]], d.parts, d.sum)
			}},
		{kind: coll.Scan, title: "Scan",
			call:  func(c *mpi.Comm, d *collectiveData) error { return mpi.Scan(c, d.vector, d.result, d.sum) },
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Iscan(c, d.vector, d.result, d.sum) }},
		{kind: coll.Exscan, title: "Exscan",
			call:  func(c *mpi.Comm, d *collectiveData) error { return mpi.Exscan(c, d.vector, d.result, d.sum) },
			start: func(c *mpi.Comm, d *collectiveData) mpi.Request { return mpi.Iexscan(c, d.vector, d.result, d.sum) }},
	}
}

// collectiveBenchmarks returns the benchmarks of the collectives.
func collectiveBenchmarks() []Benchmark {
	list := []Benchmark{
		{Name: "barrier", Title: "Barrier Latency Test", Doc: "time of a barrier", Ranks: 2, AnyRanks: true, Collective: "barrier",
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: barrier},
		{Name: "ibarrier", Title: "Ibarrier Overlap Test", Doc: "share of a non-blocking barrier that a computation hides", Ranks: 2, AnyRanks: true, Collective: "barrier", NonBlocking: true,
			Metric: "overlap", Unit: "%", Column: "Overlap (%)", Run: overlapOfCollective(collective{
				start: func(c *mpi.Comm, _ *collectiveData) mpi.Request { return c.Ibarrier() }})},
	}
	for _, k := range collectives() {
		sizes := powers[:21] // to 1 MB: there is a block for every rank
		if k.kind.Combines() {
			sizes = powers[3:21]
		}
		kind := k.kind.String()
		list = append(list,
			Benchmark{Name: k.name, Title: k.title + " Latency Test", Doc: "time of " + k.name + ", mean over ranks", Ranks: 2, AnyRanks: true, Collective: kind, Irregular: k.irregular,
				Sizes: sizes, Metric: "latency", Unit: "us", Column: "Latency (us)", Run: timeOfCollective(k)},
			Benchmark{Name: "i" + k.name, Title: "Non-blocking " + k.title + " Overlap Test", Doc: "share of a non-blocking " + k.name + " that a computation of its length hides", Ranks: 2, AnyRanks: true, Collective: kind, Irregular: k.irregular, NonBlocking: true,
				Sizes: sizes, Metric: "overlap", Unit: "%", Column: "Overlap (%)", Run: overlapOfCollective(k)})
		if k.prepare != nil {
			list = append(list, Benchmark{Name: "persistent-" + k.name, Title: "Persistent " + k.title + " Latency Test", Doc: "time of Start and Wait of a persistent " + k.name + ", mean over ranks; beside it the blocking call", Ranks: 2, AnyRanks: true, Collective: kind, NonBlocking: true,
				Sizes: sizes, Metric: "latency", Unit: "us", Column: "Latency (us)", Run: timeOfPersistent(k)})
		}
	}
	return list
}

// data allocates the buffers of this rank for a size.
func (k collective) data(c *mpi.Comm, size int) *collectiveData {
	d := &collectiveData{sum: mpi.Sum[float64]}
	if k.kind.Combines() { // vectors of float64
		n := max(size/8, 1)
		d.vector, d.result = make([]float64, n), make([]float64, n)
		for r := range c.Size() {
			d.parts = append(d.parts, n*(r+1)/c.Size()-n*r/c.Size())
		}
		return d
	}
	in, out := 1, 1
	if k.kind.Input() == coll.AllBlocks {
		in = c.Size()
	}
	if k.kind.Output() == coll.AllBlocks {
		out = c.Size()
	}
	d.in, _ = buffers(in * size)
	_, d.out = buffers(out * size)
	for r := range c.Size() {
		d.counts, d.displs = append(d.counts, size), append(d.displs, r*size)
	}
	return d
}

// callLoop times n calls one by one. It returns the mean at this rank, and at rank 0 the
// means of batches over all ranks.
func callLoop(c *mpi.Comm, n int, once func() error) (mean float64, samples []float64, err error) {
	count, each := batches(n)
	var total time.Duration
	for range count {
		var batch time.Duration
		for range each {
			start := time.Now()
			if err := once(); err != nil {
				return 0, nil, err
			}
			batch += time.Since(start)
			if err := c.Barrier(); err != nil {
				return 0, nil, err
			}
		}
		total += batch
		samples = append(samples, micros(batch)/float64(each))
	}
	samples, err = overRanks(c, samples...)
	return micros(total) / float64(count*each), samples, err
}

// overRanks returns at rank 0 the mean of each figure over all ranks.
func overRanks(c *mpi.Comm, figures ...float64) ([]float64, error) {
	sums := make([]float64, len(figures))
	err := mpi.Reduce(c, figures, sums, mpi.Sum, 0)
	for i := range sums {
		sums[i] /= float64(c.Size())
	}
	return sums, err
}

func warmUp(c *mpi.Comm, n int, once func() error) error {
	for range n {
		if err := once(); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil {
			return err
		}
	}
	return nil
}

func timeOfCollective(k collective) func(*mpi.Comm, *Params, func(Result)) error {
	return func(c *mpi.Comm, p *Params, emit func(Result)) error {
		for _, size := range p.Sizes {
			d := k.data(c, size)
			r, err := timeCalls(c, p, size, func() error { return k.call(c, d) })
			if err != nil {
				return err
			}
			emit(r)
		}
		return nil
	}
}

// timeOfPersistent prepares the call once and starts it many times. The blocking call is
// measured with the same buffers.
func timeOfPersistent(k collective) func(*mpi.Comm, *Params, func(Result)) error {
	return func(c *mpi.Comm, p *Params, emit func(Result)) error {
		for _, size := range p.Sizes {
			d := k.data(c, size)
			prepared := k.prepare(c, d)
			r, err := timeCalls(c, p, size, func() error { _, err := prepared.Start().Wait(); return err })
			if err != nil {
				return err
			}
			blocking, err := timeCalls(c, p, size, func() error { return k.call(c, d) })
			if err != nil {
				return err
			}
			blocking.Metric, blocking.Unit, blocking.Beside = "blocking", "us", true
			emit(r)
			emit(blocking)
		}
		return nil
	}
}

// timeCalls returns the mean time of a call over all ranks.
func timeCalls(c *mpi.Comm, p *Params, size int, once func() error) (Result, error) {
	warmup, n := p.iterations(size, 1000, 100)
	if err := warmUp(c, warmup, once); err != nil {
		return Result{}, err
	}
	mean, samples, err := callLoop(c, n, once)
	if err != nil {
		return Result{}, err
	}
	means, err := overRanks(c, mean)
	if err != nil {
		return Result{}, err
	}
	r := middle(Result{Size: size}, samples)
	r.Value = means[0]
	return r, nil
}

// overlapOfCollective measures overlap by OSU's definition: the computation takes as long
// as the call alone takes at the same rank, and the rest of the call counts against the
// overlap.
func overlapOfCollective(k collective) func(*mpi.Comm, *Params, func(Result)) error {
	return func(c *mpi.Comm, p *Params, emit func(Result)) error {
		w := newWork()
		sizes := p.Sizes
		if len(sizes) == 0 {
			sizes = []int{0} // a barrier
		}
		for _, size := range sizes {
			d := k.data(c, size)
			iterations, computed := 0, 0.0
			once := func() error {
				req := k.start(c, d)
				if iterations > 0 {
					computed += w.measure(iterations)
				}
				_, err := req.Wait()
				return err
			}
			warmup, n := p.iterations(size, 1000, 100)
			if err := warmUp(c, warmup, once); err != nil {
				return err
			}
			alone, _, err := callLoop(c, n, once)
			if err != nil {
				return err
			}
			iterations = w.iterations(alone)
			overall, _, err := callLoop(c, n, once)
			if err != nil {
				return err
			}
			count, each := batches(n)
			means, err := overRanks(c, alone, overall, computed/float64(count*each))
			if err != nil {
				return err
			}
			emitOverlap(size, means, emit)
		}
		return nil
	}
}

// emitOverlap emits the overlap and the three times that it is computed from.
func emitOverlap(size int, means []float64, emit func(Result)) {
	alone, overall, computation := means[0], means[1], means[2]
	share := max(0, 100-100*(overall-computation)/alone)
	emit(middle(Result{Size: size, Metric: "overlap", Unit: "%"}, []float64{share}))
	for _, t := range []struct {
		name  string
		value float64
	}{{"alone", alone}, {"overall", overall}, {"computation", computation}} {
		emit(middle(Result{Size: size, Metric: t.name, Unit: "us", Beside: true}, []float64{t.value}))
	}
}
