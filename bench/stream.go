package bench

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func streamBenchmarks() []Benchmark {
	return []Benchmark{
		{Name: "bw", Title: "Bandwidth Test", Doc: "a window of sends one way", Ranks: 2, Sizes: powers,
			Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: bandwidth, Devices: true},
		{Name: "bibw", Title: "Bi-Directional Bandwidth Test", Doc: "windows of sends both ways", Ranks: 2, Sizes: powers,
			Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: bothways, Devices: true},
		{Name: "rate", Title: "Message Rate Test", Doc: "messages a second in a window one way", Ranks: 2, Sizes: []int{8},
			Metric: "rate", Unit: "msg/s", Column: "Messages/s", Run: rate, Devices: true},
	}
}

const (
	streamTag = 2
	ackTag    = 3
)

// bandwidth: rank 0 sends windows of messages, rank 1 answers each window.
func bandwidth(c *mpi.Comm, p *Params, emit func(Result)) error {
	for _, size := range p.Sizes {
		s, err := stream(c, p, size, false)
		if err != nil {
			return err
		}
		emit(s.rates(Result{Size: size}, float64(size*p.window())/1e6))
	}
	return nil
}

// bothways: both ranks send windows at the same time.
func bothways(c *mpi.Comm, p *Params, emit func(Result)) error {
	for _, size := range p.Sizes {
		s, err := stream(c, p, size, true)
		if err != nil {
			return err
		}
		emit(s.rates(Result{Size: size}, 2*float64(size*p.window())/1e6))
	}
	return nil
}

// rate is bandwidth counted in messages.
func rate(c *mpi.Comm, p *Params, emit func(Result)) error {
	for _, size := range p.Sizes {
		s, err := stream(c, p, size, false)
		if err != nil {
			return err
		}
		emit(s.rates(Result{Size: size}, float64(p.window())))
	}
	return nil
}

// stream times windows.
func stream(c *mpi.Comm, p *Params, size int, both bool) (*samples, error) {
	warmup, n := p.iterations(size, 10000, 20)
	w := window{c: c, reqs: make([]mpi.Request, 0, 2*p.window()), n: p.window(), both: both, touch: p.Touch}
	w.sbuf, w.rbuf = buffers(size)
	for range warmup {
		if err := w.run(); err != nil {
			return nil, err
		}
	}
	var s samples
	count, each := batches(n)
	for range count {
		start := time.Now()
		for range each {
			if err := w.run(); err != nil {
				return nil, err
			}
		}
		s.add(time.Since(start), each)
	}
	return &s, nil
}

type window struct {
	c          *mpi.Comm
	sbuf, rbuf []byte
	ack        [4]byte
	reqs       []mpi.Request
	n          int
	both       bool
	touch      bool
}

func (w *window) run() error {
	peer := 1 - w.c.Rank()
	first := w.c.Rank() == 0
	if w.touch {
		fill(w.sbuf, 3)
	}
	w.reqs = w.reqs[:0]
	if w.both || !first {
		for range w.n {
			w.reqs = append(w.reqs, mpi.Irecv(w.c, w.rbuf, peer, streamTag))
		}
	}
	if w.both || first {
		for range w.n {
			w.reqs = append(w.reqs, mpi.Isend(w.c, w.sbuf, peer, streamTag))
		}
	}
	if err := mpi.WaitAll(w.reqs...); err != nil {
		return err
	}
	if first {
		_, err := mpi.Recv(w.c, w.ack[:], peer, ackTag)
		return err
	}
	return mpi.Send(w.c, w.ack[:], peer, ackTag)
}
