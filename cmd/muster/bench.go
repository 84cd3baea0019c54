package main

// muster bench NAME: as a rank of a job it runs the benchmark; otherwise it starts
// itself as the ranks that the benchmark needs.

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/bytesize"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

type benchFlags struct {
	params bench.Params
	sizes  []string
	json   bool
	ranks  int
	// variants are compared with each other: protocols, algorithms or devices.
	variants []string
	rounds   int
	plot     string
}

// newBenchCommand returns the command with all benchmarks, or with the one that args name.
func newBenchCommand(args []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure latency, bandwidth, memory and more",
		Long: `bench runs a benchmark between ranks on this machine and prints the results in
the format of the OSU Micro-Benchmarks, or as JSON with one object per line.

Absolute figures vary from one hour to the next; compare ratios of alternating runs
(make bench-peers does so with Open MPI and MPICH). Benchmarks of long messages accept
several protocols and alternate between them: --protocol get,spec. Benchmarks of
collectives do the same with algorithms: --algorithm ring,rabenseifner (muster sched
lists them). The verbs-* benchmarks measure the devices below MPI and alternate with
plain sockets: --device tcp,rc,rd.`,
		Example: `  muster bench latency
  muster bench bw --sizes 8K,64K,1M
  muster bench rate --json
  muster bench barrier -n 16
  muster bench iallreduce -n 4 --sizes 1M
  muster bench latency --device shm,rd,rc,hybrid -m 8,8K
  muster bench memory --device rd,rc
  muster bench overlap --protocol get,spec --plot overlap.svg
  muster bench allreduce -n 4 --algorithm ring,recursive-doubling --plot allreduce.svg
  muster bench verbs-latency --device tcp,udp,rc,rd,ud --sizes 64,8K
  muster run -n 2 --bind core muster bench latency     as part of a job`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	all := bench.All()
	if i := slices.IndexFunc(all, func(b bench.Benchmark) bool { return len(args) > 1 && args[1] == b.Name }); i >= 0 {
		cmd.AddCommand(newBenchmark(all[i]))
		return cmd
	}
	addToGroup := func(title string, subs ...*cobra.Command) {
		if !cmd.ContainsGroup(title) {
			cmd.AddGroup(&cobra.Group{ID: title, Title: title})
		}
		for _, sub := range subs {
			sub.GroupID = title
			cmd.AddCommand(sub)
		}
	}
	addToGroup("Reports of several benchmarks", newReportCommand(), newStudyCommand(), newDocumentCommand(), newSkewBenchmark(), newChoiceBenchmark())
	for _, title := range bench.Groups() {
		addToGroup(title)
	}
	for _, b := range all {
		addToGroup(b.Group, newBenchmark(b))
	}
	for _, b := range bench.AllVerbs() {
		addToGroup("Devices without MPI", newVerbsBenchmark(b))
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
			if err := f.check(b); err != nil {
				return fmt.Errorf("bench %s: %w", b.Name, err)
			}
			if !inJob() {
				return startBenchmark(cmd, b, f)
			}
			return runBenchmark(b, f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "print one JSON object per line: bench, ranks, device, size, metric, unit, value, min, p50, p99")
	fl.IntVarP(&f.ranks, "ranks", "n", b.Ranks, "number of ranks to start")
	fl.IntVarP(&f.params.Iterations, "iterations", "i", 0, "iterations for each size (default: by size)")
	if b.Sizes != nil {
		fl.StringSliceVarP(&f.sizes, "sizes", "m", nil, "message sizes in bytes, such as 8, 64K or 1:1M (default: powers of two)")
		fl.IntVarP(&f.params.Warmup, "warmup", "x", 0, "iterations before the measurement (default: a tenth)")
		fl.IntVarP(&f.params.Window, "window", "W", 0, "messages in flight (default 64)")
		fl.BoolVarP(&f.params.Touch, "touch", "t", false, "write new data into the buffer before each send")
	}
	if b.Protocols {
		fl.StringSliceVar(&f.variants, "protocol", nil, "protocol of long messages: "+protocolNames()+"; several alternate and are compared with the first (default: as configured)")
		offerValues(cmd, "protocol", protocolNames())
	}
	if b.Collective != "" {
		fl.StringSliceVar(&f.variants, "algorithm", nil, "algorithm of "+b.Collective+": "+algorithmNames(b.Collective)+", with parameters as in bruck:ports=2; several alternate and are compared with the first (default: see muster explain "+b.Collective+")")
		offerValues(cmd, "algorithm", algorithmNames(b.Collective))
	}
	if b.Devices {
		fl.StringSliceVar(&f.variants, "device", nil, "device that carries messages: "+deviceNames()+"; several alternate and are compared with the first (default: as configured)")
		offerValues(cmd, "device", deviceNames())
	}
	if b.Protocols || b.Collective != "" || b.Devices {
		fl.IntVar(&f.rounds, "rounds", 5, "number of runs of each variant")
		fl.StringVar(&f.plot, "plot", "", "draw the result into this SVG file")
	}
	for _, one := range b.Flags {
		addFlag(fl, one, one.Value(&f.params))
		if one.Choices != nil {
			offerValues(cmd, one.Name, strings.Join(one.Choices, ", "))
		}
	}
	return cmd
}

// addFlag adds a flag of a benchmark for its variable.
func addFlag(fl *pflag.FlagSet, f bench.Flag, variable any) {
	switch v := variable.(type) {
	case *int:
		fl.IntVar(v, f.Name, 0, f.Help)
	case *float64:
		fl.Float64Var(v, f.Name, 0, f.Help)
	case *[]float64:
		fl.Float64SliceVar(v, f.Name, nil, f.Help)
	case *[]string:
		fl.StringSliceVar(v, f.Name, nil, f.Help)
	case *time.Duration:
		fl.DurationVar(v, f.Name, 0, f.Help)
	}
}

// startBenchmark starts this program again as the ranks of a job.
func startBenchmark(cmd *cobra.Command, b bench.Benchmark, f benchFlags) error {
	if err := b.Check(f.ranks); err != nil {
		return err
	}
	for _, one := range b.Flags {
		if one.Start != nil && !cmd.Flags().Changed(one.Name) {
			return startSelf(cmd, f.ranks, "--"+one.Name+"="+one.Start())
		}
	}
	if b.Worlds != nil && f.variants == nil && !overNetwork() {
		return startSelf(cmd, f.ranks, "--device="+strictDevice)
	}
	if b.Sweep != nil && !cmd.Flags().Changed("ranks") {
		return sweepRanks(cmd, b, f)
	}
	if b.Sweep == nil && f.variants == nil {
		f.variants = b.Variants
	}
	if len(f.variants) > 1 {
		return compareVariants(cmd, b, f)
	}
	return startSelf(cmd, f.ranks)
}

// check rejects invalid flags before anything is started.
func (f *benchFlags) check(b bench.Benchmark) error {
	if (b.Protocols || b.Collective != "" || b.Devices) && f.rounds < 1 {
		return fmt.Errorf("--rounds %d: each variant must run at least once", f.rounds)
	}
	for i, v := range f.variants {
		if slices.Contains(f.variants[:i], v) {
			return fmt.Errorf("--%s %s is given twice", variantFlag(b), v)
		}
		if _, err := variantSettings(b, v); err != nil {
			return err
		}
	}
	if b.Validate != nil {
		if err := b.Validate(&f.params); err != nil {
			return err
		}
	}
	_, err := parseSizes(f.sizes)
	return err
}

// runBenchmark runs the benchmark as one rank.
func runBenchmark(b bench.Benchmark, f benchFlags) error {
	f.params.Sizes = b.Sizes
	if len(f.sizes) > 0 {
		var err error
		if f.params.Sizes, err = parseSizes(f.sizes); err != nil {
			return err
		}
	}
	if b.Alternating == nil && len(f.variants) > 1 {
		return fmt.Errorf("bench %s: --%s %s: a running job has one %s; start the benchmark without muster run, so that it starts a job for each",
			b.Name, variantFlag(b), strings.Join(f.variants, ","), variantFlag(b))
	}
	if len(f.variants) == 1 {
		if err := useVariant(b, f.variants[0]); err != nil {
			return err
		}
	}
	for _, kv := range b.Settings {
		name, value, _ := strings.Cut(kv, "=")
		os.Setenv(name, value)
	}
	mpi.Main(func(c *mpi.Comm) error {
		if err := b.Check(c.Size()); err != nil {
			return err
		}
		if len(f.variants) == 1 {
			on, err := layoutOf(c, b)
			if err != nil {
				return err
			}
			kept, err := keepServed(b, f.variants[0], on, f.params.Sizes)
			if err != nil {
				return err
			}
			if left := len(f.params.Sizes) - len(kept); left > 0 && c.Rank() == 0 {
				fmt.Fprintf(os.Stderr, "bench %s: skipping sizes that %s does not support: %d of %d among %v\n", b.Name, f.variants[0], left, len(f.params.Sizes), on)
			}
			f.params.Sizes = kept
		}
		p := bench.Printer{W: os.Stdout, JSON: f.json, B: b}
		var results []bench.Result
		emit := func(k int, r bench.Result) {
			if c.Rank() != 0 {
				return
			}
			r.Bench, r.Ranks, r.Device = b.Name, c.Size(), inspect.DeviceName(c, c.Size()-1)
			if r.Metric == "" {
				r.Metric, r.Unit = b.Metric, b.Unit
			} else if r.Unit == "" {
				r.Unit = b.Unit
			}
			if b.Worlds != nil {
				r.Protocol = b.Worlds[k].Name
			} else if f.variants != nil {
				r.Protocol = f.variants[k]
			}
			if r.Against != "" {
				r.Against = f.variants[0]
			}
			p.Print(r)
			results = append(results, r)
		}
		if err := runOver(c, b, &f, emit); err != nil || c.Rank() != 0 || f.plot == "" {
			return err
		}
		return writePlot(f.plot, b, results)
	})
	return nil
}

// runOver runs the benchmark in this world, or in one world per protocol.
func runOver(c *mpi.Comm, b bench.Benchmark, f *benchFlags, emit func(int, bench.Result)) error {
	if len(f.variants) < 2 && b.Worlds == nil {
		return b.Run(c, &f.params, func(r bench.Result) { emit(0, r) })
	}
	list := b.Worlds
	if list == nil {
		for _, name := range f.variants {
			settings, err := protocolSettings(name)
			if err != nil {
				return err
			}
			list = append(list, bench.World{Name: name, Settings: settings})
		}
	}
	worlds, err := worldsOf(c, list)
	if err != nil {
		return err
	}
	comms := make([]*mpi.Comm, len(worlds))
	for k, w := range worlds {
		comms[k] = w.Comm()
	}
	if err := b.Alternating(comms, &f.params, emit); err != nil {
		return err
	}
	for _, w := range worlds {
		if err := w.Finalize(); err != nil {
			return err
		}
	}
	return nil
}

// parseSizes parses sizes such as 8, 64K and 4M, and ranges such as 1:1024.
func parseSizes(list []string) ([]int, error) {
	var out []int
	for _, s := range list {
		sizes, err := bytesize.ParseList(s)
		if err != nil {
			return nil, fmt.Errorf("--sizes %s: %w", s, err)
		}
		for _, n := range sizes {
			if n < 0 {
				return nil, fmt.Errorf("--sizes %s: a size cannot be negative", s)
			}
			out = append(out, int(n))
		}
	}
	return out, nil
}

func parseSize(s string) (int, error) {
	n, err := bytesize.Parse(s)
	if err == nil && n < 0 {
		err = errors.New("a size cannot be negative")
	}
	return int(n), err
}
