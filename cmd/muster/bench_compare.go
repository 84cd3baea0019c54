package main

// Comparison of several variants in one benchmark: protocols, algorithms or devices. The
// settings of a world are fixed, so each variant is a job of its own, and the jobs
// alternate: in each round every variant runs once, starting with a different one each
// time. The result is the median over the rounds, and the change against the first
// variant is the median of the changes within a round.
//
// If the expected change is smaller than the variation between jobs, a benchmark runs in
// several worlds of one job (bench_worlds.go). Then a round is one job.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/launch"
)

func compareVariants(cmd *cobra.Command, b bench.Benchmark, f benchFlags) error {
	cmp := comparison{variants: f.variants}
	args := passedOn(cmd.Flags(), b.Name)
	for round := range f.rounds {
		if b.Alternating != nil {
			results, err := benchmarkJob(cmd, f.ranks, append(slices.Clone(args), "--json", "--"+variantFlag(b)+"="+strings.Join(f.variants, ",")), os.Environ())
			if err != nil {
				return err
			}
			if err := cmp.addMixed(results); err != nil {
				return fmt.Errorf("muster bench %s: %w", b.Name, err)
			}
			continue
		}
		for i := range f.variants {
			// The first variant starts, because exchange computes as long as it communicates.
			k := (i + round) % len(f.variants)
			more := []string{"--json", "--" + variantFlag(b) + "=" + f.variants[k]}
			for _, one := range b.Flags {
				if us := cmp.first(one.From); us > 0 && !cmd.Flags().Changed(one.Name) {
					more = append(more, fmt.Sprintf("--%s=%.3fus", one.Name, us))
				}
			}
			results, err := benchmarkJob(cmd, f.ranks, append(slices.Clone(args), more...), os.Environ())
			if err != nil {
				return err
			}
			cmp.add(k, results)
		}
	}
	results := cmp.results()
	if f.plot != "" {
		if err := writePlot(f.plot, b, results); err != nil {
			return err
		}
	}
	return cmp.print(os.Stdout, b, f, results)
}

// passedOn returns the command line of one job: the given flags without those that this
// process handles itself.
func passedOn(flags *pflag.FlagSet, name string) []string {
	args := []string{"bench", name}
	flags.Visit(func(fl *pflag.Flag) {
		switch fl.Name {
		case "protocol", "algorithm", "device", "rounds", "plot", "json", "ranks":
			return
		}
		value := fl.Value.String()
		if list, ok := fl.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		args = append(args, "--"+fl.Name+"="+value)
	})
	return args
}

// benchmarkJob starts this program as the ranks of a job and returns its results.
func benchmarkJob(cmd *cobra.Command, ranks int, args, env []string) ([]bench.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	ended, err := launch.Run(cmd.Context(), launch.Config{
		Ranks: ranks, Prog: self, Args: args, Env: env,
		Output: launch.Output{Stdout: &out, Stderr: os.Stderr, Label: launch.LabelNever},
	})
	if err != nil {
		return nil, err
	}
	if ended.Status != 0 {
		return nil, exitStatus(ended.Status)
	}
	var results []bench.Result
	for d := json.NewDecoder(&out); ; {
		var r bench.Result
		if err := d.Decode(&r); err == io.EOF {
			return results, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode the output of muster %s: %w", strings.Join(args, " "), err)
		}
		results = append(results, r)
	}
}

// comparison collects figures.
type comparison struct {
	variants []string
	figures  []figure
}

// figure is one metric at one size: for each variant, one value per round.
type figure struct {
	bench.Result
	values [][]float64
	// reported holds the changes against the first variant in percent, if the job has
	// compared the variants itself.
	reported [][]float64
}

func (c *comparison) add(variant int, results []bench.Result) {
	for _, r := range results {
		g := c.figure(r)
		g.values[variant] = append(g.values[variant], r.Value)
	}
}

// addMixed adds the results of a job that ran all variants.
func (c *comparison) addMixed(results []bench.Result) error {
	for _, r := range results {
		k := slices.Index(c.variants, r.Protocol)
		if k < 0 {
			return fmt.Errorf("the benchmark already compares %q with others and cannot also compare %s; name one of them", r.Protocol, strings.Join(c.variants, ", "))
		}
		if r.Against == "" {
			c.add(k, []bench.Result{r})
			continue
		}
		g := c.figure(r)
		g.reported[k] = append(g.reported[k], r.Value)
	}
	return nil
}

func (c *comparison) figure(r bench.Result) *figure {
	i := slices.IndexFunc(c.figures, func(g figure) bool { return g.Metric == r.Metric && g.Size == r.Size })
	if i < 0 {
		n := len(c.variants)
		i, c.figures = len(c.figures), append(c.figures, figure{r, make([][]float64, n), make([][]float64, n)})
	}
	return &c.figures[i]
}

// first returns a metric of the first variant in its first run, or 0 if it has not been
// measured.
func (c *comparison) first(metric string) float64 {
	for _, g := range c.figures {
		if g.Metric == metric && len(g.values[0]) > 0 {
			return g.values[0][0]
		}
	}
	return 0
}

// results returns the figures of each variant and, for times, the changes of the others
// against the first.
func (c *comparison) results() []bench.Result {
	var out []bench.Result
	for _, g := range c.figures {
		for k, p := range c.variants {
			if len(g.values[k]) == 0 {
				continue // protocols differ in which sizes count as short
			}
			out = append(out, g.median(p, g.values[k]))
			if k == 0 || g.Unit != "us" {
				continue
			}
			if changes := g.changes(k); len(changes) > 0 {
				r := g.median(p, changes)
				r.Unit, r.Against = "%", c.variants[0]
				out = append(out, r)
			}
		}
	}
	return out
}

// median returns the figure as the median over the rounds.
func (g *figure) median(variant string, values []float64) bench.Result {
	r := bench.OverRounds(g.Result, values)
	r.Protocol = variant
	return r
}

// changes returns the changes of variant k against the first in percent, one per round.
func (g *figure) changes(k int) []float64 {
	if len(g.reported[k]) > 0 {
		return g.reported[k]
	}
	var out []float64
	for i := range min(len(g.values[0]), len(g.values[k])) {
		out = append(out, (g.values[k][i]/g.values[0][i]-1)*100)
	}
	return out
}

func (c *comparison) print(w io.Writer, b bench.Benchmark, f benchFlags, results []bench.Result) error {
	if f.json {
		p := bench.Printer{W: w, JSON: true, B: b}
		for _, r := range results {
			p.Print(r)
		}
		return nil
	}
	fmt.Fprintf(w, "# Muster %s\n# Medians over rounds of alternating runs; rounds: %d\n", b.Title, f.rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "# Size\tfigure\tunit\t%s\t", strings.Join(c.variants, "\t"))
	for _, p := range c.variants[1:] {
		fmt.Fprintf(t, "%s/%s (%%)\t", p, c.variants[0])
	}
	fmt.Fprintln(t)
	for _, g := range c.figures {
		fmt.Fprintf(t, "%d\t%s\t%s\t", g.Size, g.Metric, g.Unit)
		for k, p := range c.variants {
			cell := "-"
			if len(g.values[k]) > 0 {
				cell = fmt.Sprintf("%.2f", g.median(p, g.values[k]).Value)
			}
			fmt.Fprintf(t, "%s\t", cell)
		}
		for k, p := range c.variants {
			cell := ""
			if changes := g.changes(k); k > 0 && g.Unit == "us" && len(changes) > 0 {
				cell = fmt.Sprintf("%+.1f", g.median(p, changes).Value)
			}
			if k > 0 {
				fmt.Fprintf(t, "%s\t", cell)
			}
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// writePlot draws results.
func writePlot(path string, b bench.Benchmark, results []bench.Result) error {
	return writeChart(path, bench.ChartOf(b, results))
}

func writeChart(path string, chart bench.Chart) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	if err := chart.WriteSVG(file); err != nil {
		file.Close()
		return fmt.Errorf("--plot %s: %w", path, err)
	}
	return file.Close()
}
