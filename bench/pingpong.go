package bench

import (
	"sync"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func pingpongBenchmarks() []Benchmark {
	return []Benchmark{
		{Name: "latency", Title: "Latency Test", Doc: "half round trip of a blocking ping-pong", Ranks: 2, Sizes: powers,
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: latency, Devices: true},
		{Name: "mt-latency", Title: "Multi-threaded Latency Test", Doc: "ping-pong of several goroutines at once", Ranks: 2, Sizes: powers,
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: multiLatency,
			Flags: []Flag{{Name: "threads", Help: "number of goroutines at rank 1 (default 2)", Value: func(p *Params) any { return &p.Threads }}}},
	}
}

const pingTag = 1

// latency: rank 0 sends, rank 1 answers.
func latency(c *mpi.Comm, p *Params, emit func(Result)) error {
	for _, size := range p.Sizes {
		s, err := roundTrips(c, p, size)
		if err != nil {
			return err
		}
		emit(s.times(Result{Size: size}, 1))
	}
	return nil
}

// roundTrips times the ping-pong of ranks 0 and 1.
func roundTrips(c *mpi.Comm, p *Params, size int) (s samples, err error) {
	warmup, n := p.iterations(size, 100000, 200)
	sbuf, rbuf := buffers(size)
	if err := pingpong(c, sbuf, rbuf, pingTag, warmup, p.Touch); err != nil {
		return s, err
	}
	count, each := batches(n)
	for range count {
		start := time.Now()
		if err := pingpong(c, sbuf, rbuf, pingTag, each, p.Touch); err != nil {
			return s, err
		}
		s.add(time.Since(start), 2*each)
	}
	return s, nil
}

// buffers allocates buffers of a size and touches them once.
func buffers(size int) (s, r []byte) {
	s, r = make([]byte, size), make([]byte, size)
	fill(s, 1)
	fill(r, 2)
	return s, r
}

// fill writes new data, as fast as memory can be written: one byte, then doubling.
func fill(b []byte, v byte) {
	if len(b) == 0 {
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func pingpong(c *mpi.Comm, sbuf, rbuf []byte, tag, n int, touch bool) error {
	first := c.Rank() == 0
	for i := range n {
		if touch {
			fill(sbuf, byte(i))
		}
		if first {
			if err := mpi.Send(c, sbuf, 1, tag); err != nil {
				return err
			}
			if _, err := mpi.Recv(c, rbuf, 1, tag); err != nil {
				return err
			}
			continue
		}
		if _, err := mpi.Recv(c, rbuf, 0, tag); err != nil {
			return err
		}
		if err := mpi.Send(c, sbuf, 0, tag); err != nil {
			return err
		}
	}
	return nil
}

// multiLatency: one goroutine of rank 0 exchanges messages with several of rank 1, each
// with its own tag, as osu_latency_mt does with threads.
func multiLatency(c *mpi.Comm, p *Params, emit func(Result)) error {
	threads := p.Threads
	if threads == 0 {
		threads = 2
	}
	for _, size := range p.Sizes {
		warmup, n := p.iterations(size, 10000, 200)
		warmup, n = warmup-warmup%threads, max(n-n%threads, threads)
		var s samples
		count, each := batches(n)
		each = max(each-each%threads, threads)
		if c.Rank() == 0 {
			sbuf, rbuf := buffers(size)
			roundTrips := func(k int) error {
				for i := range k {
					if err := pingpong(c, sbuf, rbuf, pingTag+i%threads, 1, p.Touch); err != nil {
						return err
					}
				}
				return nil
			}
			if err := roundTrips(warmup); err != nil {
				return err
			}
			for range count {
				start := time.Now()
				if err := roundTrips(each); err != nil {
					return err
				}
				s.add(time.Since(start), 2*each)
			}
			emit(s.times(Result{Size: size}, 1))
			continue
		}
		var wg sync.WaitGroup
		errs := make(chan error, threads)
		for th := range threads {
			wg.Add(1)
			go func() {
				defer wg.Done()
				sbuf, rbuf := buffers(size)
				if err := pingpong(c, sbuf, rbuf, pingTag+th, (warmup+count*each)/threads, p.Touch); err != nil {
					errs <- err
				}
			}()
		}
		wg.Wait()
		select {
		case err := <-errs:
			return err
		default:
		}
	}
	return nil
}
