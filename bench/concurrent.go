package bench

// Communication of several pairs or groups of ranks at once (T1 3.4, T2 5.4), and their copies
// (T2 4.3.1).

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func concurrentBenchmarks() []Benchmark {
	return []Benchmark{
		{Name: "multipair", Title: "Bi-Directional Bandwidth of Several Pairs", Doc: "windows of sends both ways, by all pairs of ranks at once", Ranks: 4, AnyRanks: true, Sizes: powers,
			Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: multipair, Devices: true},
		{Name: "multipair-latency", Title: "Latency of Several Pairs", Doc: "half round trip of a ping-pong by all pairs of ranks at once, mean over pairs", Ranks: 4, AnyRanks: true, Sizes: powers,
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: multipairLatency, Devices: true},
		{Name: "allgather-groups", Title: "Aggregate Bandwidth of Concurrent Allgathers", Doc: "independent allgathers of several groups of ranks at once, one rank of each node in a group: the sum of their bandwidths by the number of groups (T2 figure 5.2)", Ranks: 8, AnyRanks: true, Sizes: powers[:18],
			Collective: "allgather", Metric: "groups-1", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: allgatherGroups},
		{Name: "copies", Title: "Concurrent Copies", Doc: "time of a copy in memory while other ranks copy as well, by the number of ranks that do (T2 figure 4.1)", Ranks: 4, AnyRanks: true, Sizes: powers,
			Metric: "copies-1", Unit: "us", Column: "Time (us)", Run: concurrentCopies},
	}
}

// pairs splits the ranks into pairs: rank 0 of each is in the first half, rank 1 in the second.
func pairs(c *mpi.Comm, name string) (*mpi.Comm, error) {
	half := c.Size() / 2
	if half == 0 || 2*half != c.Size() {
		return nil, fmt.Errorf("bench: %s wants an even number of ranks, not %d", name, c.Size())
	}
	return c.Split(c.Rank()%half, c.Rank()/half)
}

// multipair: the ranks of each pair exchange, all pairs at once.
func multipair(c *mpi.Comm, p *Params, emit func(Result)) error {
	pair, err := pairs(c, "multipair")
	if err != nil {
		return err
	}
	defer pair.Free()
	for _, size := range p.Sizes {
		if err := c.Barrier(); err != nil {
			return err
		}
		s, err := stream(pair, p, size, true)
		if err != nil {
			return err
		}
		r, err := addRates(c, pair.Rank() == 0, s, 2*size*p.window())
		if err != nil {
			return err
		}
		r.Size = size
		emit(r)
	}
	return nil
}

// addRates adds the rates of transfers that run concurrently: of the ranks that count, each
// with its times and the bytes that were moved in one.
func addRates(c *mpi.Comm, counts bool, s *samples, moved int) (Result, error) {
	rates := make([]float64, 4)
	if counts {
		for i, t := range []float64{s.mean(), s.quantile(1), s.quantile(.5), s.quantile(.01)} {
			rates[i] = float64(moved) / t
		}
	}
	err := mpi.Allreduce(c, rates, rates, mpi.Sum)
	return Result{Value: rates[0], Min: rates[1], P50: rates[2], P99: rates[3]}, err
}

// multipairLatency: ping-pong of all pairs at once, the mean over the pairs.
func multipairLatency(c *mpi.Comm, p *Params, emit func(Result)) error {
	pair, err := pairs(c, "multipair-latency")
	if err != nil {
		return err
	}
	defer pair.Free()
	for _, size := range p.Sizes {
		if err := c.Barrier(); err != nil {
			return err
		}
		s, err := roundTrips(pair, p, size)
		if err != nil {
			return err
		}
		r := s.times(Result{Size: size}, 1)
		means, err := overRanks(c, r.Value, r.Min, r.P50, r.P99)
		if err != nil {
			return err
		}
		r.Value, r.Min, r.P50, r.P99 = means[0], means[1], means[2], means[3]
		emit(r)
	}
	return nil
}

// concurrentCopies: 1 rank to all of them copy at the same time, the mean over those that do.
func concurrentCopies(c *mpi.Comm, p *Params, emit func(Result)) error {
	for _, size := range p.Sizes {
		from, to := buffers(size)
		_, n := p.iterations(size, 20_000, 100)
		count, each := batches(n)
		for active := 1; active <= c.Size(); active++ {
			if err := c.Barrier(); err != nil {
				return err
			}
			var s samples
			means := make([]float64, 1)
			if c.Rank() < active {
				for range count {
					start := time.Now()
					for range each {
						copy(to, from)
					}
					s.add(time.Since(start), each)
				}
				means[0] = s.mean() / float64(active)
			}
			if err := mpi.Allreduce(c, means, means, mpi.Sum); err != nil {
				return err
			}
			emit(Result{Size: size, Metric: fmt.Sprintf("copies-%d", active), Value: means[0], Min: means[0], P50: means[0]})
		}
	}
	return nil
}

// groupRanks is the number of ranks of a group on one node.
const groupRanks = 4

// allgatherGroups: independent allgathers of several groups at once, and the sum of their
// bandwidths, for 1 group to all of them (T2 figure 5.2). A group has one rank of each node,
// so that every group adds connections to each adapter; on one node it has every n-th rank.
func allgatherGroups(c *mpi.Comm, p *Params, emit func(Result)) error {
	mine, count, err := groupOf(c)
	if err != nil {
		return err
	}
	group, err := c.Split(mine, c.Rank())
	if err != nil {
		return err
	}
	defer group.Free()
	for _, size := range p.Sizes {
		in, _ := buffers(size)
		_, out := buffers(size * group.Size())
		warmup, n := p.iterations(size, 1000, 100)
		for active := 1; active <= count; active++ {
			if err := c.Barrier(); err != nil {
				return err
			}
			var s samples
			if mine < active {
				if s, err = allgathers(group, in, out, warmup, n); err != nil {
					return err
				}
			}
			moved := size * group.Size() * (group.Size() - 1)
			r, err := addRates(c, mine < active && group.Rank() == 0, &s, moved)
			if err != nil {
				return err
			}
			r.Size, r.Metric = size, fmt.Sprintf("groups-%d", active)
			emit(r)
		}
	}
	return nil
}

// groupOf returns the group of this rank and the number of groups.
func groupOf(c *mpi.Comm) (mine, count int, err error) {
	node, err := c.SplitType(mpi.ByNode, c.Rank())
	if err != nil {
		return 0, 0, err
	}
	defer node.Free()
	mine, count = node.Rank(), node.Size()
	if node.Size() == c.Size() {
		count = max(c.Size()/groupRanks, 1)
		mine = c.Rank() % count
	}
	most := []int{count}
	err = mpi.Allreduce(c, most, most, mpi.Max)
	return mine, most[0], err
}

// allgathers times n calls back to back.
func allgathers(c *mpi.Comm, in, out []byte, warmup, n int) (s samples, err error) {
	count, each := batches(n)
	for range warmup {
		if err := mpi.Allgather(c, in, out); err != nil {
			return s, err
		}
	}
	for range count {
		start := time.Now()
		for range each {
			if err := mpi.Allgather(c, in, out); err != nil {
				return s, err
			}
		}
		s.add(time.Since(start), each)
	}
	return s, nil
}
