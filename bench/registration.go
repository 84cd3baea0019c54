package bench

// The cost of registering memory with the device, and of a hit in the registration cache.
// Rank 0 measures; the other rank only takes part in opening the device.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/rdma"
)

func registrationBenchmarks() []Benchmark {
	return []Benchmark{{Name: "registration", Title: "Registration of Memory", Doc: "registering and deregistering memory with the device, and from the cache when it is used again", Ranks: 2,
		Sizes: []int{4 << 10, 64 << 10, 1 << 20, 4 << 20}, Metric: "registration", Unit: "us", Column: "Time (us)", Run: registration}}
}

func registration(c *mpi.Comm, p *Params, emit func(Result)) error {
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
			if err := registerBoth(dev, size, p, emit); err != nil {
				return fmt.Errorf("bench: registration of %d bytes with %s: %w", size, dev.Attr().Name, err)
			}
		}
	}
	return mpi.Barrier(c)
}

// registerBoth alternates between the device and the cache.
func registerBoth(dev rdma.Device, size int, p *Params, emit func(Result)) error {
	mem := make([]byte, size)
	for i := 0; i < size; i += 4 << 10 {
		mem[i] = 1 // allocate the page
	}
	cache := regcache.New(dev, regcache.Config{})
	defer cache.Close()
	through := func(n int, register func([]byte, rdma.Access) (rdma.MR, error), deregister func(rdma.MR) error) error {
		for range n {
			mr, err := register(mem, rdma.RemoteRead)
			if err != nil {
				return err
			}
			if err := deregister(mr); err != nil {
				return err
			}
		}
		return nil
	}
	warmup, n := p.iterations(size, 20000, 200)
	if err := through(warmup, dev.Register, dev.Deregister); err != nil {
		return err
	}
	if err := through(warmup, cache.Get, cache.Put); err != nil {
		return err
	}
	var bare, cached samples
	count, each := batches(n)
	for range count {
		start := time.Now()
		if err := through(each, dev.Register, dev.Deregister); err != nil {
			return err
		}
		bare.add(time.Since(start), each)
		start = time.Now()
		if err := through(each, cache.Get, cache.Put); err != nil {
			return err
		}
		cached.add(time.Since(start), each)
	}
	emit(bare.times(Result{Size: size}, 1))
	emit(cached.times(Result{Size: size, Metric: "from-cache"}, 1))
	return nil
}
