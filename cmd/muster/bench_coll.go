package main

// muster bench coll: collectives whose ranks arrive at different times
// (bench/skew_run.go). As a rank of a job it measures; otherwise it starts itself as the
// ranks.

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// asChosen is the value of --algorithm that leaves the choice to the library.
const asChosen = "default"

type skewFlags struct {
	ranks            int
	ops, sizes       []string
	mif              []float64
	late, algorithms []string
	message          []time.Duration
	calls            int
	budget           time.Duration
	away             string
	json             bool
	plot             string
}

func newSkewBenchmark() *cobra.Command {
	var f skewFlags
	cmd := &cobra.Command{
		Use:   "coll",
		Short: "time of collectives with late ranks",
		Long: `coll measures collectives whose ranks arrive at different times. Before each call,
after a barrier, every rank is delayed by a random time of at most the maximum imbalance
factor (--mif) times the transfer time of a message of the same size. With --late, a
share of the ranks, different in each call, is delayed by the maximum, and the others
not at all.

It prints, in microseconds:

  mean    time in the call, mean over ranks and calls
  bound   mean time from a rank's arrival to the last arrival. Where every rank needs
          data of every other, no algorithm can be faster
  tail    time from the last arrival to the last exit, median over the calls: the work
          that remains when all ranks have arrived, which skew cannot hide
  cpu     processor time of all ranks for a call and the barrier before it; it contains
          the polling of ranks that wait

Several algorithms alternate, call by call, under the same arrivals, and are compared
with the first. The clocks of the ranks are compared, so all ranks must run on one
machine; hosts of muster lab do.

A delayed rank computes. If there are more ranks than processors it sleeps instead,
because the scheduler would otherwise determine the arrival times.`,
		Example: `  muster bench coll -n 4 --op alltoall,allgather --mif 1,32,128,512
  muster bench coll -n 8 --op alltoall --mif 128 --late 25%,75% --sizes 4,8K
  muster bench coll -n 4 --op alltoall --algorithm default,pairwise,bruck --plot late.svg
  muster run --lab -n 16 muster bench coll --op allgather --mif 32`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.params()
			if err != nil {
				return fmt.Errorf("bench coll: %w", err)
			}
			return runRanks(cmd, f.ranks, func(c *mpi.Comm) error { return f.measure(c, p) })
		},
	}
	fl := cmd.Flags()
	fl.IntVarP(&f.ranks, "ranks", "n", 4, "number of ranks to start")
	fl.StringSliceVar(&f.ops, "op", []string{"alltoall", "allgather"}, "collectives: "+strings.Join(bench.SkewCollectives(), ", "))
	offerValues(cmd, "op", strings.Join(bench.SkewCollectives(), ", "))
	fl.StringSliceVarP(&f.sizes, "sizes", "m", []string{"4", "8K"}, "bytes of a block, or of the whole vector, such as 8, 64K or 1:1M")
	fl.Float64SliceVar(&f.mif, "mif", []float64{1, 32, 128, 512}, "maximum imbalance factors")
	fl.StringSliceVar(&f.late, "late", nil, "shares of the ranks that are delayed by the maximum, such as 25%; random: as without --late")
	fl.StringSliceVar(&f.algorithms, "algorithm", []string{asChosen}, "algorithms of the collective (muster sched lists them), with parameters as in bruck:ports=2; "+asChosen+": as the library chooses")
	fl.DurationSliceVar(&f.message, "message", nil, "assumed time of a message, one for each size or one for all (default: measured between rank 0 and the last rank)")
	fl.IntVarP(&f.calls, "iterations", "i", 0, "calls of each algorithm (default: as many as --budget allows, 5 to 1000)")
	fl.DurationVar(&f.budget, "budget", 2*time.Second, "time limit for the calls of one size and pattern")
	fl.StringVar(&f.away, "away", "auto", "what a delayed rank does: compute, sleep, or auto (sleep if there are more ranks than processors)")
	fl.BoolVar(&f.json, "json", false, "print one JSON object per line for each figure")
	fl.StringVar(&f.plot, "plot", "", "draw the tails into this SVG file")
	return cmd
}

// params converts the flags to benchmark parameters.
func (f *skewFlags) params() (*bench.SkewParams, error) {
	p := &bench.SkewParams{Collectives: f.ops, Message: f.message, Calls: f.calls, Budget: f.budget}
	var err error
	if p.Sizes, err = parseSizes(f.sizes); err != nil {
		return nil, err
	}
	for _, op := range f.ops {
		if !slices.Contains(bench.SkewCollectives(), op) {
			return nil, fmt.Errorf("--op %s: unknown collective; use one of %s", op, strings.Join(bench.SkewCollectives(), ", "))
		}
	}
	if p.Patterns, err = patternsOf(f.mif, f.late); err != nil {
		return nil, err
	}
	for i, a := range f.algorithms {
		if slices.Contains(f.algorithms[:i], a) {
			return nil, fmt.Errorf("--algorithm %s is given twice", a)
		}
		if a == asChosen {
			a = ""
		}
		p.Algorithms = append(p.Algorithms, a)
	}
	for _, d := range f.message {
		if d <= 0 {
			return nil, fmt.Errorf("--message %v: use a time such as 30us", d)
		}
	}
	if n := len(f.message); n > 1 && n != len(p.Sizes) {
		return nil, fmt.Errorf("--message gives %d times for %d sizes: give one for each, or one for all", n, len(p.Sizes))
	}
	if f.calls < 0 || f.budget <= 0 {
		return nil, fmt.Errorf("--iterations %d, --budget %v: iterations must not be negative, and the budget must be above 0", f.calls, f.budget)
	}
	if !slices.Contains([]string{"auto", "compute", "sleep"}, f.away) {
		return nil, fmt.Errorf("--away %s: use compute, sleep or auto", f.away)
	}
	return p, nil
}

// patternsOf returns all combinations of factors and shares.
func patternsOf(mif []float64, late []string) ([]bench.Pattern, error) {
	shares := []float64{0}
	if late != nil {
		shares = nil
	}
	for _, s := range late {
		if s == "random" {
			shares = append(shares, 0)
			continue
		}
		percent, ok := strings.CutSuffix(s, "%")
		v, err := strconv.ParseFloat(percent, 64)
		if !ok || err != nil || !(v > 0 && v <= 100) {
			return nil, fmt.Errorf("--late %s: use a share of the ranks such as 25%%, or random", s)
		}
		shares = append(shares, v/100)
	}
	var patterns []bench.Pattern
	for _, m := range mif {
		if !(m >= 0) || m > 1e6 {
			return nil, fmt.Errorf("--mif %g: use the maximum delay as a multiple of the time of a message, from 0 to 1e6", m)
		}
		for _, s := range shares {
			patterns = append(patterns, bench.Pattern{MIF: m, Late: s})
		}
	}
	return patterns, nil
}

// measure runs the benchmark as one rank.
func (f *skewFlags) measure(c *mpi.Comm, p *bench.SkewParams) error {
	p.Sleep = f.away == "sleep" || f.away == "auto" && c.Size() > runtime.NumCPU()
	if err := checkServed(c, p); err != nil {
		return err
	}
	var all []bench.SkewFigure
	err := bench.Skew(c, p, func(g bench.SkewFigure) {
		if g.Algorithm == "" {
			g.Algorithm = asChosen
		}
		all = append(all, g)
		if f.json {
			f.printJSON(c, g)
		}
	})
	if err != nil || c.Rank() != 0 {
		return err
	}
	if !f.json {
		if err := printSkew(os.Stdout, c, p.Sleep, all); err != nil {
			return err
		}
	}
	if f.plot == "" {
		return nil
	}
	return writeChart(f.plot, skewChart(all, c.Size()))
}

// checkServed rejects algorithms that do not support the calls on these ranks: the
// library would use another algorithm, and its time would be reported under the wrong
// name. checkServed is collective.
func checkServed(c *mpi.Comm, p *bench.SkewParams) error {
	for _, op := range p.Collectives {
		for _, a := range p.Algorithms {
			name, _, _ := strings.Cut(a, ":")
			if name == "" || name == coll.Segment.Name {
				continue
			}
			d, err := c.DupWithCollective(op + "=" + a)
			if err != nil {
				return fmt.Errorf("bench coll: --algorithm %s: %w", a, err)
			}
			for _, size := range p.Sizes {
				x, err := inspect.ExplainCollective(d, op, size, 0)
				if err != nil {
					return err
				}
				if x.Algorithm != name {
					return fmt.Errorf("bench coll: --algorithm %s does not support %s of %d bytes among these %d ranks; the library would use %s (%s)", a, op, size, c.Size(), x.Algorithm, x.Reason)
				}
			}
			if err := d.Free(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *skewFlags) printJSON(c *mpi.Comm, g bench.SkewFigure) {
	p := bench.Printer{W: os.Stdout, JSON: true}
	for _, r := range g.Results() {
		r.Ranks, r.Device = c.Size(), inspect.DeviceName(c, c.Size()-1)
		if r.Protocol = g.Algorithm; len(f.algorithms) == 1 && g.Algorithm == asChosen {
			r.Protocol = ""
		}
		p.Print(r)
	}
}

func printSkew(w io.Writer, c *mpi.Comm, sleep bool, all []bench.SkewFigure) error {
	away := "computes"
	if sleep {
		away = "sleeps"
	}
	fmt.Fprintf(w, "# Muster Collectives under Process Arrival Patterns\n# %d ranks over %s; a delayed rank %s; times in us\n",
		c.Size(), inspect.DeviceName(c, c.Size()-1), away)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "# op\tsize\tpattern\talgorithm\tcalls\tmean\tbound\tmean/bound\ttail\ttail/first\tcpu\t")
	for _, g := range all {
		ratio := "-"
		if kind, err := coll.ParseKind(g.Collective); err == nil && kind.AwaitsAll() && g.Bound.Value > 0 {
			ratio = fmt.Sprintf("%.2f", g.Mean.Value/g.Bound.Value)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\t%.1f\t%.1f\t%s\t%.1f\t%.2f\t%.0f\t\n", g.Collective, g.Size, g.Pattern, g.Algorithm, g.Calls,
			g.Mean.Value, g.Bound.Value, ratio, g.Tail.Value, g.TailRatio, g.CPU.Value)
	}
	return t.Flush()
}

// skewChart draws tails over sizes, with one line per collective, pattern and algorithm.
func skewChart(all []bench.SkewFigure, ranks int) bench.Chart {
	c := bench.Chart{Title: fmt.Sprintf("Last arrival to last exit, %d ranks", ranks), X: "size", Y: "time (us)", Bytes: true, Times: true}
	for _, g := range all {
		c.Add(fmt.Sprintf("%s, %s, %s", g.Collective, g.Pattern, g.Algorithm), float64(g.Size), g.Tail.Value)
	}
	return c
}
