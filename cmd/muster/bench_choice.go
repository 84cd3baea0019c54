package main

// muster bench choice: the algorithm that the library chooses for a collective against every
// other one (bench/contest.go). As a rank of a job it measures; otherwise it starts itself as
// the ranks.

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

type choiceFlags struct {
	ranks      int
	ops, sizes []string
	final      time.Duration
	json, all  bool
}

func newChoiceBenchmark() *cobra.Command {
	var f choiceFlags
	cmd := &cobra.Command{
		Use:   "choice",
		Short: "the chosen algorithm of collectives against all others",
		Long: `choice compares the algorithm that the library chooses with every other algorithm that
supports the call, with every parameter value worth trying. They alternate call by call.
Those that take more than twice as long as the fastest leave after two calls, and the
fastest few alternate for the time of --final. An algorithm whose estimate is at least
three times that of the choice is called once, and leaves unless it is among the fastest;
the output lists those that left so.

It prints, for each collective and size, the choice and the best other algorithm with
their median times, and the ratio of these. Below 1 the choice is faster. Which algorithm
is the best is decided by every other call, and the ratio is that of the remaining calls.
A time is that of a call and its share of the barrier that ends it: four calls of up to
8 KB are measured together, longer ones one by one.
Blocking calls of ranks of one host use shared memory if it is chosen.`,
		Example: `  muster bench choice -n 4 --op allreduce,bcast --sizes 8,64K
  muster run --lab -n 16 muster bench choice
  muster run --lab -n 14 muster bench choice --op alltoall --sizes 1K`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, sizes, err := f.settle()
			if err != nil {
				return fmt.Errorf("bench choice: %w", err)
			}
			return runRanks(cmd, f.ranks, func(c *mpi.Comm) error { return f.measure(c, kinds, sizes) })
		},
	}
	fl := cmd.Flags()
	fl.IntVarP(&f.ranks, "ranks", "n", 4, "number of ranks to start")
	fl.StringSliceVar(&f.ops, "op", nil, "collectives (default: all): "+strings.Join(bench.ContestCollectives(), ", "))
	offerValues(cmd, "op", strings.Join(bench.ContestCollectives(), ", "))
	fl.StringSliceVarP(&f.sizes, "sizes", "m", []string{"8", "256", "1K", "8K", "64K", "1M"}, "bytes of a block, or of the whole vector, with K or M")
	fl.DurationVar(&f.final, "final", 300*time.Millisecond, "time limit for the last calls of one size")
	fl.BoolVar(&f.all, "all", false, "list all candidates with their estimates, for a look at the cost model")
	fl.BoolVar(&f.json, "json", false, "print one JSON object per line for each figure")
	return cmd
}

// settle checks the flags.
func (f *choiceFlags) settle() (kinds []coll.Kind, sizes []int, err error) {
	if f.final <= 0 {
		return nil, nil, fmt.Errorf("--final %v: it must be above 0", f.final)
	}
	if kinds, err = tunableKinds("--op", f.ops); err != nil {
		return nil, nil, err
	}
	sizes, err = parseSizes(f.sizes)
	return kinds, sizes, err
}

// measure runs the benchmark as one rank.
func (f *choiceFlags) measure(c *mpi.Comm, kinds []coll.Kind, sizes []int) error {
	on, err := shapeOfJob(c)
	if err != nil {
		return err
	}
	var cells []choiceCell
	for _, kind := range kinds {
		err := contests(c, kind, sizes, on.layout, false, f.final, func(size int, entries []bench.Entry) {
			cell := cellOf(kind, size, entries)
			if f.json {
				f.printJSON(c, cell)
			}
			cells = append(cells, cell)
			if f.all && !f.json {
				printCandidates(os.Stdout, kind, size, entries)
			}
		})
		if err != nil {
			return err
		}
	}
	if c.Rank() != 0 || f.json {
		return nil
	}
	fmt.Printf("# Muster Choice of Algorithms\n# %s over %s; times in us\n", on, inspect.DeviceName(c, c.Size()-1))
	return printCells(os.Stdout, cells)
}

// contests measures a collective at several sizes: entry 0 is the choice of the library, the
// others are all candidates. It calls emit at rank 0. contests is collective.
func contests(c *mpi.Comm, kind coll.Kind, sizes []int, on layout, quick bool, budget time.Duration, emit func(size int, entries []bench.Entry)) error {
	by := map[string]candidate{}
	names := []string{""}
	for _, one := range candidatesOf(kind, on, quick) {
		names = append(names, one.String())
		by[one.String()] = one
	}
	contest, err := bench.NewContest(c, kind.String(), names)
	if err != nil {
		return err
	}
	if kind == coll.Barrier {
		sizes = []int{0}
	}
	for _, size := range sizes {
		entries, err := contest.Run(size, func(name string) bool { return by[name].serves(on, size) }, budget)
		if err != nil {
			return fmt.Errorf("%s of %d bytes: %w", kind, size, err)
		}
		if c.Rank() == 0 {
			emit(size, entries)
		}
	}
	return contest.Close()
}

// choiceCell is the result of one collective at one size.
type choiceCell struct {
	kind         coll.Kind
	size         int
	chosen, best string
	// micros and bestMicros are the medians of all last calls.
	micros, bestMicros, ratio float64
	calls, candidates         int
	once                      []string // those that left after one call
}

func cellOf(kind coll.Kind, size int, entries []bench.Entry) choiceCell {
	cell := choiceCell{kind: kind, size: size, chosen: choiceName(kind, entries[0].Choice), micros: entries[0].Micros(), calls: len(entries[0].Times)}
	for _, e := range entries[1:] {
		if e.Served {
			cell.candidates++
		}
		if e.Once && !e.Last && len(e.Times) == 1 {
			cell.once = append(cell.once, e.Algorithm)
		}
	}
	best, ratio := bench.Best(entries)
	if best == nil { // there is no other
		cell.best, cell.bestMicros, cell.ratio = cell.chosen, cell.micros, 1
		return cell
	}
	cell.best, cell.bestMicros, cell.ratio = best.Algorithm, best.Micros(), ratio
	return cell
}

// printJSON prints the ratio, and the two times beside it.
func (f *choiceFlags) printJSON(c *mpi.Comm, cell choiceCell) {
	p := bench.Printer{W: os.Stdout, JSON: true}
	print := func(what, unit, algorithm string, value float64, beside bool) {
		p.Print(bench.Result{Bench: "choice", Ranks: c.Size(), Device: inspect.DeviceName(c, c.Size()-1), Size: cell.size, Metric: cell.kind.String() + "/" + what, Unit: unit,
			Value: value, Min: value, P50: value, P99: value, Protocol: algorithm, Beside: beside})
	}
	print("choice-by-best", "ratio", "", cell.ratio, false)
	print("choice", "us", cell.chosen, cell.micros, true)
	print("best", "us", cell.best, cell.bestMicros, true)
}

func printCells(w io.Writer, cells []choiceCell) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "# op\tsize\tchoice\tus\tbest other\tus\tratio\tcalls\tcandidates")
	for _, c := range cells {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.1f\t%s\t%.1f\t%.2f\t%d\t%d\n", c.kind, c.size, c.chosen, c.micros, c.best, c.bestMicros, c.ratio, c.calls, c.candidates)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, c := range cells {
		if len(c.once) > 0 {
			fmt.Fprintf(w, "# %s of %d bytes: left after one call, as estimated at three times the choice or more: %s\n", c.kind, c.size, strings.Join(c.once, " "))
		}
	}
	return nil
}

// printCandidates prints the estimate and the time of every candidate.
func printCandidates(w io.Writer, kind coll.Kind, size int, entries []bench.Entry) {
	for _, e := range entries[1:] {
		if e.Served {
			fmt.Fprintf(w, "%s %d %s: estimated %.1f us, measured %.1f us in %d calls\n", kind, size, e.Algorithm, 1e6*e.Choice.Seconds, e.Micros(), len(e.Times))
		}
	}
}

// tunableKinds returns the collectives that a flag lists, or all.
func tunableKinds(flag string, names []string) ([]coll.Kind, error) {
	if names == nil {
		return tunable, nil
	}
	var kinds []coll.Kind
	for _, name := range names {
		k, err := coll.ParseKind(name)
		if err != nil || !slices.Contains(tunable, k) {
			return nil, fmt.Errorf("%s %s: unknown collective; use some of %v", flag, name, tunable)
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}
