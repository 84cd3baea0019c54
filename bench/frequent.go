package bench

// The benchmarks of registration and of frequently used buffers (T1 chapter 5, T1 3.5).
// They need a device that requires registration; muster bench runs them over rc-strict if
// no device is named.

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/rdma"
)

var reuseSizes = []int{1 << 10, 2 << 10, 4 << 10, 8 << 10}

func frequentBenchmarks() []Benchmark {
	return []Benchmark{
		{Name: "reg", Title: "Registration and Deregistration by Size", Doc: "registering memory with the device, ending that, both from the cache, and copying as much", Ranks: 2,
			Sizes: []int{128, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}, Metric: "register", Unit: "us", Column: "Time (us)", Run: registerApart, Devices: true},
		{Name: "regcache", Title: "Latency and Bandwidth with the Registration Cache and without", Doc: "long messages from one buffer, with and without cached registrations, alternating", Ranks: 2,
			Sizes: []int{128 << 10, 512 << 10, 2 << 20}, Metric: "latency", Unit: "us", Column: "Value", Alternating: regcacheAlternating, Devices: true,
			Worlds: []World{{"none", []string{"MUSTER_REGISTER_CACHE=-1"}}, {"cache", []string{"MUSTER_REGISTER_CACHE=0"}}}},
		{Name: "reuse", Title: "Latency by the Reuse of Buffers", Doc: "messages, puts and gets of which 0, 50 and 100 % use the same buffer, copied and sent in place, alternating", Ranks: 2,
			Sizes: reuseSizes, Metric: "latency", Unit: "us", Column: "Value", Alternating: reuseAlternating, Devices: true, Worlds: reuseWorlds, Flags: reuseFlags, Validate: checkReuse},
		{Name: "spectrum", Title: "Latency over a Spectrum of Reuse", Doc: "1000 buffers, of which the i-th is used i times, back to back and one a page; --iterations is how many buffers", Ranks: 2,
			Sizes: []int{8 << 10}, Metric: "latency", Unit: "us", Column: "Value", Alternating: spectrumAlternating, Devices: true, Worlds: reuseWorlds, Flags: reuseFlags, Validate: checkReuse},
		{Name: "reuse-coll", Title: "Broadcast and Scatter from Reused Buffers", Doc: "broadcast and scatter with a barrier behind each, copied and sent in place, alternating", Ranks: 4, AnyRanks: true,
			Sizes: reuseSizes, Metric: "bcast", Unit: "us", Column: "Value", Alternating: reusedCollectives, Devices: true, Worlds: frequentWorlds},
		{Name: "use-table", Title: "Look at the Table of Buffer Uses", Doc: "time of a look at the table of how often buffers were used, by the number of buffers in it", Ranks: 1,
			Sizes: []int{1000, 10_000, 100_000, 1_000_000}, Metric: "look", Unit: "ns", Column: "Time (ns)", Run: useTable},
	}
}

// registerApart times registration and deregistration separately.
func registerApart(c *mpi.Comm, p *Params, emit func(Result)) error {
	dev, err := inspect.OpenDevice(c)
	if err != nil {
		return err
	}
	defer dev.Close()
	if _, err := newBarePair(c, dev); err != nil { // some devices register with a queue pair
		return err
	}
	if c.Rank() == 0 {
		for _, size := range p.Sizes {
			mem := make([]byte, size)
			fill(mem, 1)
			_, n := p.iterations(size, 2000, 100)
			var in, out, cached []float64
			cache := regcache.New(dev, regcache.Config{})
			for range n {
				start := time.Now()
				mr, err := dev.Register(mem, rdma.RemoteRead)
				if err != nil {
					return err
				}
				between := time.Now()
				if err := dev.Deregister(mr); err != nil {
					return err
				}
				end := time.Now()
				if mr, err = cache.Get(mem, rdma.RemoteRead); err == nil {
					err = cache.Put(mr)
				}
				if err != nil {
					return err
				}
				in, out, cached = append(in, micros(between.Sub(start))), append(out, micros(end.Sub(between))), append(cached, micros(time.Since(end)))
			}
			if err := cache.Close(); err != nil {
				return err
			}
			emit(middle(Result{Size: size}, in))
			emit(middle(Result{Size: size, Metric: "deregister"}, out))
			emit(middle(Result{Size: size, Metric: "from-cache"}, cached))
			v := copyTime(size) / 1e3
			emit(Result{Size: size, Metric: "copy", Value: v, Min: v, P50: v, P99: v})
		}
	}
	return c.Barrier()
}

// regcacheAlternating measures latency and bandwidth of long messages.
func regcacheAlternating(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	for _, size := range p.Sizes {
		_, n := p.iterations(size, 2000, 100)
		count, each := batches(n)
		times, rates := make([][]float64, len(worlds)), make([][]float64, len(worlds))
		sbuf, rbuf := buffers(size)
		for b := range count + 1 {
			for i := range worlds {
				k := (i + b) % len(worlds) // neither is always first
				start := time.Now()
				if err := pingpong(worlds[k], sbuf, rbuf, reuseTag, each, false); err != nil {
					return err
				}
				took := micros(time.Since(start)) / float64(2*each)
				start = time.Now()
				if err := oneWay(worlds[k], sbuf, rbuf, 4*each); err != nil {
					return err
				}
				if b == 0 {
					continue // set up links and the first registration
				}
				times[k] = append(times[k], took)
				rates[k] = append(rates[k], float64(size)*float64(4*each)/micros(time.Since(start)))
			}
		}
		for k := range worlds {
			emit(k, middle(Result{Size: size}, times[k]))
			emit(k, middle(Result{Size: size, Metric: "bandwidth", Unit: "MB/s"}, rates[k]))
		}
		emit(1, middle(Result{Size: size, Metric: "latency-change", Unit: "%"}, changes(times[0], times[1])))
		emit(1, middle(Result{Size: size, Metric: "bandwidth-change", Unit: "%"}, changes(rates[0], rates[1])))
	}
	return nil
}

// oneWay sends n messages one way, and one word back after the last.
func oneWay(c *mpi.Comm, sbuf, rbuf []byte, n int) error {
	var word [1]byte
	for range n {
		if c.Rank() == 0 {
			if err := mpi.Send(c, sbuf, 1, reuseTag); err != nil {
				return err
			}
		} else if _, err := mpi.Recv(c, rbuf, 0, reuseTag); err != nil {
			return err
		}
	}
	if c.Rank() == 1 {
		return mpi.Send(c, word[:], 0, reuseTag)
	}
	_, err := mpi.Recv(c, word[:], 1, reuseTag)
	return err
}

// reusedCollectives measures broadcast and scatter (T1 figure 5.9).
func reusedCollectives(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	ranks := worlds[0].Size()
	for _, size := range p.Sizes {
		all, part := make([]byte, size*ranks), make([]byte, size)
		fill(all, 1)
		for _, call := range []struct {
			name string
			run  func(c *mpi.Comm) error
		}{
			{"bcast", func(c *mpi.Comm) error { return mpi.Bcast(c, part, 0) }},
			{"scatter", func(c *mpi.Comm) error { return mpi.Scatter(c, all, part, 0) }},
		} {
			_, n := p.iterations(size, 2000, 200)
			count, each := batches(n)
			times := make([][]float64, len(worlds))
			for b := range count + 1 {
				for i := range worlds {
					k := (i + b) % len(worlds) // neither is always first
					var took time.Duration
					for range each {
						start := time.Now()
						if err := call.run(worlds[k]); err != nil {
							return err
						}
						took += time.Since(start)
						if err := worlds[k].Barrier(); err != nil { // so that no rank runs ahead
							return err
						}
					}
					if b > 0 {
						times[k] = append(times[k], micros(took)/float64(each))
					}
				}
			}
			for k := range worlds {
				emit(k, middle(Result{Size: size, Metric: call.name}, times[k]))
			}
			emit(1, middle(Result{Size: size, Metric: call.name + "-gain", Unit: "%"}, savedBy(times[0], times[1])))
		}
	}
	return nil
}

// useTable fills a use table with buffers and looks them up in random order (T1 figure 5.4).
func useTable(_ *mpi.Comm, p *Params, emit func(Result)) error {
	chance := rand.New(rand.NewPCG(1, 2))
	for _, buffers := range p.Sizes {
		room := 8 << bits.Len(uint(buffers)) // no buffer is evicted
		u := regcache.NewUses(regcache.UsesConfig{Frequent: func(int) uint32 { return 2 }, Limit: room, Free: room})
		const size, stride = 8 << 10, 8<<10 + 64
		for i := range buffers {
			u.Note(1<<40+uint64(i)*stride, size)
		}
		order := make([]uint64, 1<<17)
		_, n := p.iterations(0, 50, 50)
		var looks []float64
		for range n {
			for i := range order {
				order[i] = 1<<40 + uint64(chance.IntN(buffers))*stride
			}
			start := time.Now()
			for _, addr := range order {
				u.Note(addr, size)
			}
			looks = append(looks, float64(time.Since(start))/float64(len(order)))
		}
		emit(middle(Result{Size: buffers}, looks))
		emit(Result{Size: buffers, Metric: "known", Unit: "buffers", Value: float64(u.Len()), Beside: true})
	}
	return nil
}
