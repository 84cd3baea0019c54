package main

// muster bench NAME: started as a rank of a job it runs the benchmark; started
// by hand it first starts itself as the ranks that the benchmark wants.

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/mpi"
)

type benchFlags struct {
	params bench.Params
	sizes  []string
	json   bool
	ranks  int
}

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure latency, bandwidth, memory and more",
		Long: `bench runs a benchmark between ranks on this machine and prints its result in
the columns of the OSU Micro-Benchmarks, or as JSON, one object a line.

Figures of one run cannot be compared with those of another hour: compare
ratios of runs that alternate (make bench-peers does that with Open MPI and
MPICH).`,
		Example: `  muster bench latency
  muster bench bw --sizes 8K,64K,1M
  muster bench rate --json
  muster bench barrier -n 16
  muster run -n 2 --bind core muster bench latency     as part of a job`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	for _, b := range bench.All() {
		cmd.AddCommand(newBenchmark(b))
	}
	return cmd
}

func newBenchmark(b bench.Benchmark) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   b.Name,
		Short: b.Doc,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if os.Getenv(pmi.EnvFD) == "" && os.Getenv(pmi.EnvRank) == "" {
				return startBenchmark(cmd, b, f)
			}
			return runBenchmark(b, f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "one JSON object a line: bench, ranks, device, size, metric, unit, value, min, p50, p99")
	fl.IntVarP(&f.ranks, "ranks", "n", b.Ranks, "number of ranks to start")
	fl.IntVarP(&f.params.Iterations, "iterations", "i", 0, "iterations for each size (default: by size)")
	if b.Sizes != nil {
		fl.StringSliceVarP(&f.sizes, "sizes", "m", nil, "message sizes in bytes, with K or M (default: powers of two)")
		fl.IntVarP(&f.params.Warmup, "warmup", "x", 0, "iterations before the clock runs (default: a tenth)")
		fl.IntVarP(&f.params.Window, "window", "W", 0, "messages in flight (default 64)")
		fl.BoolVarP(&f.params.Touch, "touch", "t", false, "write new data into the buffer before each send")
	}
	switch b.Name {
	case "mt-latency":
		fl.IntVar(&f.params.Threads, "threads", 0, "goroutines at rank 1 (default 2)")
	case "first-message":
		fl.Float64Var(&f.params.Since, "since", 0, "when the launcher was started, as date +%s.%N tells (default: when the ranks have joined, or now if this starts them)")
	case "idle":
		fl.IntVar(&f.params.Seconds, "seconds", 0, "how long to wait (default 10)")
	}
	return cmd
}

// startBenchmark starts this program again as the ranks of a job.
func startBenchmark(cmd *cobra.Command, b bench.Benchmark, f benchFlags) error {
	if err := b.Check(f.ranks); err != nil {
		return err
	}
	if b.Name == "first-message" && f.params.Since == 0 {
		return startSelf(cmd, f.ranks, fmt.Sprintf("--since=%.6f", float64(time.Now().UnixMicro())/1e6))
	}
	return startSelf(cmd, f.ranks)
}

// runBenchmark is one rank.
func runBenchmark(b bench.Benchmark, f benchFlags) error {
	f.params.Sizes = b.Sizes
	if len(f.sizes) > 0 {
		var err error
		if f.params.Sizes, err = parseSizes(f.sizes); err != nil {
			return err
		}
	}
	mpi.Main(func(c *mpi.Comm) error {
		if err := b.Check(c.Size()); err != nil {
			return err
		}
		p := bench.Printer{W: os.Stdout, JSON: f.json, B: b}
		return b.Run(c, &f.params, func(r bench.Result) {
			if c.Rank() != 0 {
				return
			}
			r.Bench, r.Ranks, r.Device = b.Name, c.Size(), mpi.DeviceName(c, c.Size()-1)
			if r.Metric == "" {
				r.Metric, r.Unit = b.Metric, b.Unit
			} else if r.Unit == "" {
				r.Unit = b.Unit
			}
			p.Print(r)
		})
	})
	return nil
}

// parseSizes reads sizes such as 8, 64K and 4M.
func parseSizes(list []string) ([]int, error) {
	var out []int
	for _, s := range list {
		n, err := parseSize(s)
		if err != nil {
			return nil, fmt.Errorf("--sizes %s: %w", s, err)
		}
		out = append(out, n)
	}
	return out, nil
}

func parseSize(s string) (int, error) {
	num := strings.TrimRight(strings.ToUpper(s), "KMGIB")
	n, err := strconv.Atoi(num)
	if err != nil || n < 0 {
		return 0, errors.New("want a number of bytes such as 8, 64K or 4M")
	}
	switch strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s[len(num):]), "B"), "I") {
	case "":
		return n, nil
	case "K":
		return n << 10, nil
	case "M":
		return n << 20, nil
	case "G":
		return n << 30, nil
	}
	return 0, errors.New("want a number of bytes such as 8, 64K or 4M")
}
