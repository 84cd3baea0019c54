package main

// A rank of a job of muster tune: it measures each collective at each size within the
// time budget, and rank 0 prints the figures in the format of muster bench.

import (
	"os"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/mpi"
)

func measureForTune(f *tuneFlags) error {
	sizes, err := parseSizes(f.sizes)
	if err != nil {
		return err
	}
	var list []bench.Benchmark
	for _, name := range f.collectives {
		b, err := bench.Find(name)
		if err != nil {
			return err
		}
		list = append(list, b)
	}
	mpi.Main(func(c *mpi.Comm) error {
		for _, b := range list {
			mine := sizes
			if b.Sizes == nil {
				mine = []int{0}
			}
			for _, size := range mine {
				if err := measureWithin(c, b, size, f.budget); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return nil
}

// measureWithin times a few iterations and then runs as many as fit in the budget. All
// ranks must run the same number, so rank 0 decides.
func measureWithin(c *mpi.Comm, b bench.Benchmark, size int, budget time.Duration) error {
	const first, most = 5, 1000
	var last bench.Result
	keep := func(r bench.Result) {
		if r.Metric == "" {
			last = r
		}
	}
	params := bench.Params{Sizes: []int{size}, Iterations: first, Warmup: 2}
	if err := b.Run(c, &params, keep); err != nil {
		return err
	}
	n := int64(0)
	if each := last.P50; c.Rank() == 0 && each > 0 {
		n = min(int64(float64(budget.Microseconds())/each), most)
	}
	n, err := mpi.BcastValue(c, n, 0)
	if err != nil {
		return err
	}
	if n > first {
		params.Iterations = int(n)
		if err := b.Run(c, &params, keep); err != nil {
			return err
		}
	}
	if c.Rank() == 0 {
		p := bench.Printer{W: os.Stdout, JSON: true, B: b}
		last.Bench, last.Ranks, last.Metric, last.Unit, last.Size = b.Name, c.Size(), b.Metric, b.Unit, size
		p.Print(last)
	}
	return nil
}
