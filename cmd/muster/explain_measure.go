package main

// muster explain allreduce --measure: the estimated times of algorithms beside measured
// ones. The ranks of the job alternate between the algorithms, as muster bench coll does
// without delays, so they are compared under the same conditions.

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// measurable is how many times the lowest estimate an algorithm may take to be measured.
// Others would use up the time of the measurement.
const measurable = 10

// measuredChoice is an algorithm with its estimated and measured times in seconds.
type measuredChoice struct {
	name                string
	estimated, measured float64
}

// canMeasure checks the flags of --measure.
func canMeasure(kind coll.Kind, size int) error {
	switch {
	case !slices.Contains(bench.SkewCollectives(), kind.String()):
		return fmt.Errorf("explain %s: --measure supports %s", kind, strings.Join(bench.SkewCollectives(), ", "))
	case size < 0:
		return fmt.Errorf("explain %s: --measure needs a size; use --size 64KB, for example", kind)
	}
	return nil
}

// measureCollective measures the algorithms that can serve a call. All ranks call it; rank
// 0 prints.
func measureCollective(w io.Writer, c *mpi.Comm, kind coll.Kind, size int, budget time.Duration) error {
	x, err := inspect.ExplainCollective(c, kind.String(), size, 0)
	if err != nil {
		return err
	}
	list := []measuredChoice{{name: choiceName(kind, x.CollectiveChoice), estimated: x.Seconds}}
	for _, o := range x.Others {
		if o.Seconds <= measurable*x.Seconds {
			list = append(list, measuredChoice{name: choiceName(kind, o), estimated: o.Seconds})
		}
	}
	p := &bench.SkewParams{Collectives: []string{kind.String()}, Sizes: []int{size}, Patterns: []bench.Pattern{{}},
		Budget: budget, Sleep: c.Size() > runtime.NumCPU()}
	for _, m := range list {
		p.Algorithms = append(p.Algorithms, m.name)
	}
	if err := bench.Skew(c, p, func(g bench.SkewFigure) {
		i := slices.IndexFunc(list, func(m measuredChoice) bool { return m.name == g.Algorithm })
		list[i].measured = g.Tail.Value * 1e-6
	}); err != nil || c.Rank() != 0 {
		return err
	}
	fmt.Fprintf(w, "%s of %d bytes among %d ranks, over %s; chosen: %s\n\n", kind, size, c.Size(), inspect.DeviceName(c, c.Size()-1), x.Reason)
	return printMeasured(w, list)
}

// printMeasured prints the chosen algorithm, which is the first, and the others, compared
// with the one that was measured fastest.
func printMeasured(w io.Writer, list []measuredChoice) error {
	best := slices.MinFunc(list, func(a, b measuredChoice) int { return cmp.Compare(a.measured, b.measured) }).measured
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, " \talgorithm\testimated\tmeasured\tmeasured/estimated\tmeasured/best")
	for i, m := range list {
		mark := " "
		if i == 0 {
			mark = "*"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%.2f\t%.2f\n", mark, m.name, seconds(m.estimated), seconds(m.measured), m.measured/m.estimated, m.measured/best)
	}
	return tw.Flush()
}

// runMeasured is the body of a rank.
func runMeasured(kind coll.Kind, size int, budget time.Duration) {
	mpi.Main(func(c *mpi.Comm) error { return measureCollective(os.Stdout, c, kind, size, budget) })
}
