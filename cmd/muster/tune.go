package main

// muster tune: find the best algorithms by measurement. One job measures all of them, on a
// communicator each (bench/contest.go), because jobs differ from each other by more than
// algorithms do. Rank 0 writes the table. Outside a job, tune starts itself as the ranks.
//
//	newTuneCommand  flags, and the job on this host
//	measure         a rank's side: figures, table, output
//	tuneRules       from figures to rules (tune_table.go)

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
)

type tuneFlags struct {
	ranks       int
	from, out   string
	collectives []string
	sizes       []string
	rounds      int
	quick       bool
	budget      time.Duration
	json        bool
	interrupted bool
}

// tunable lists the collectives that tune measures: those with a benchmark.
var tunable = measuredKinds()

func measuredKinds() (list []coll.Kind) {
	all := bench.All()
	for k := range coll.Kind(coll.Kinds) {
		if slices.ContainsFunc(all, func(b bench.Benchmark) bool { return b.Name == k.String() }) {
			list = append(list, k)
		}
	}
	return list
}

func newTuneCommand() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune",
		Short: "Measure the algorithms of collectives and write a tuning table",
		Long: `tune measures every algorithm of every collective, with its suggested parameters, at
several sizes, and writes a table of the best ones. Programs read the table with
MUSTER_TUNING=FILE; where it has no rule, the cost model decides.

By itself it starts the ranks on this host, where algorithms that need several nodes are
skipped. On several hosts it is the program of the job, and rank 0 writes the table: copy
it to all hosts.

The algorithms of a collective alternate call by call, and slow ones leave after a few
calls. The settings MUSTER_COLLECTIVE and MUSTER_TUNING are ignored, so that the last
columns show what the library chooses without a table. Rows appear in the last round, when
a collective is finished. Interrupted, tune writes the rules of what it has measured.

The rules apply to the measured number of ranks, of nodes, and of rails between these. An
existing file keeps its rules for others, so several runs can build one table. Measure on
idle machines.

With --from TRACE, tune finds settings for one program instead: the trace says which may
matter (placement, speculation, progress, limits, algorithms), and the program, which
follows with the arguments of run, is run in pairs, with and without each. Only entries
that make it faster are written, alone and together; muster run --settings uses the file.`,
		Example: `  muster tune -n 4                                   writes muster-tuning.json
  muster tune -n 16 --quick                          a rough table in a few seconds
  muster tune -n 8 --collectives allreduce,bcast --sizes 8,64K,1M
  MUSTER_TUNING=muster-tuning.json muster run -n 4 ./prog
  muster run --hostfile hosts -n 64 muster tune      on several hosts
  muster run --lab -n 16 muster tune --quick         on the hosts of muster lab
  muster tune --from job.json -- -n 4 ./prog         settings of one program`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.from != "" {
				return nil
			}
			return cobra.NoArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.from != "" {
				return f.fromTrace(cmd, args)
			}
			kinds, sizes, err := f.settle()
			if err != nil {
				return fmt.Errorf("tune: %w", err)
			}
			os.Unsetenv("MUSTER_COLLECTIVE")
			os.Unsetenv("MUSTER_TUNING")
			ranks := 0
			if cmd.Flags().Changed("ranks") {
				ranks = f.ranks
			}
			ctx, stop := cmd.Context(), func() {}
			if inJob() { // the launcher of the ranks forwards signals
				ctx, stop = interruptible(ctx)
			}
			defer stop()
			if err := runRanks(cmd, f.ranks, func(c *mpi.Comm) error {
				if err := f.measure(ctx, c, kinds, sizes, ranks); err != nil {
					return fmt.Errorf("tune: %w", err)
				}
				return nil
			}); err != nil {
				return err
			}
			if f.interrupted {
				return exitStatus(statusInterrupted)
			}
			return nil
		},
	}
	f.define(cmd.Flags())
	return cmd
}

// define adds the flags.
func (f *tuneFlags) define(fl *pflag.FlagSet) {
	fl.IntVarP(&f.ranks, "ranks", "n", 4, "number of ranks; as part of a job: all of it")
	fl.StringVar(&f.from, "from", "", "trace of a program to find settings for, which follows with the arguments of run")
	fl.StringVarP(&f.out, "out", "o", "muster-tuning.json", "table to write or to extend; with --from: file to write (default "+defaultSettings+")")
	fl.StringSliceVar(&f.collectives, "collectives", nil, "collectives to measure (default: all)")
	fl.StringSliceVarP(&f.sizes, "sizes", "m", nil, "sizes in bytes, such as 8, 64K or 1:1M (default: 8 to 1M)")
	fl.IntVar(&f.rounds, "rounds", 3, "number of measurements of each candidate; the best one counts (with --from: pairs of runs, default 5)")
	fl.BoolVar(&f.quick, "quick", false, "one round, fewer sizes and parameters")
	fl.DurationVar(&f.budget, "budget", 0, "measuring time of one figure (default 20ms, with --quick 4ms)")
	fl.BoolVar(&f.json, "json", false, "print JSON, one object per row")
}

// fromTrace is tune with --from.
func (f *tuneFlags) fromTrace(cmd *cobra.Command, args []string) error {
	if !cmd.Flags().Changed("out") {
		f.out = defaultSettings
	}
	if !cmd.Flags().Changed("rounds") {
		f.rounds = defaultRounds
	}
	if f.rounds < 3 {
		return fmt.Errorf("tune: --rounds %d: with --from use at least 3: fewer confirm nothing", f.rounds)
	}
	return tuneFrom(cmd, f.from, f.out, f.rounds, f.json, args)
}

// measure measures and writes the table as one rank of a job. ranks is the value of -n; 0: it
// was not given.
func (f *tuneFlags) measure(ctx context.Context, c *mpi.Comm, kinds []coll.Kind, sizes []int, ranks int) error {
	on, err := shapeOfJob(c)
	if err != nil {
		return err
	}
	if ranks > 0 && ranks != c.Size() {
		return fmt.Errorf("-n %d, but the job has %d ranks: omit it here, and set the number with muster run -n", ranks, c.Size())
	}
	table := &coll.Tuning{}
	if c.Rank() == 0 { // before measuring
		if table, err = oldTable(f.out); err != nil {
			return err
		}
	}
	started := time.Now()
	printer := newTunePrinter(os.Stdout, f.json, kinds, on.layout, f.quick)
	got, err := f.contests(ctx, c, kinds, sizes, on, printer)
	if err != nil || c.Rank() != 0 {
		return err
	}
	rules := tuneRules(got.figures, on)
	if len(rules) == 0 {
		return errors.New("interrupted before the first collective was measured")
	}
	if err := writeTuning(f.out, table, rules, on); err != nil {
		return err
	}
	if err := printer.rest(kinds, got); err != nil {
		return err
	}
	needed, end := "", os.Stdout
	if on.nodes > 1 {
		needed = " all hosts need the file;"
	}
	if f.json {
		end = os.Stderr
	}
	if f.interrupted {
		fmt.Fprintf(os.Stderr, "tune: interrupted: the table has rules from what was measured\n")
	}
	fmt.Fprintf(end, "\n%s: %d rules for %v, after %.0f s;%s use it with MUSTER_TUNING=%s\n",
		f.out, len(rules), on, time.Since(started).Seconds(), needed, f.out)
	return nil
}

// chosenFigure is what the library chose without a table, and its time.
type chosenFigure struct {
	kind   coll.Kind
	size   int
	name   string
	micros float64
}

// tuned is what was measured: the candidates, and what the library chose.
type tuned struct {
	figures []tuneFigure
	chosen  []chosenFigure
}

// contests measures all candidates, until a rank is interrupted. The figures are those of rank
// 0, which prints the rows of a collective when its last round is over.
func (f *tuneFlags) contests(ctx context.Context, c *mpi.Comm, kinds []coll.Kind, sizes []int, on jobShape, printer *tunePrinter) (got tuned, err error) {
	var log io.Writer
	if c.Rank() == 0 {
		log = os.Stderr
	}
	done := startProgress(log, "tune", float64(f.rounds*len(kinds)))
	defer done.stop()
	for round := range f.rounds {
		for _, kind := range kinds {
			done.step(0, kind.String())
			candidates := candidatesOf(kind, on.layout, f.quick)
			err := contests(c, kind, sizes, on.layout, f.quick, 5*f.budget, func(size int, entries []bench.Entry) {
				got.chosen = append(got.chosen, chosenFigure{kind, size, choiceName(kind, entries[0].Choice), entries[0].Micros()})
				for i, e := range entries[1:] {
					if t := e.Micros(); !math.IsInf(t, 1) {
						got.figures = append(got.figures, tuneFigure{candidates[i], size, t})
					}
				}
			})
			if err != nil {
				return got, err
			}
			done.step(1, "")
			if round == f.rounds-1 && c.Rank() == 0 {
				done.output(func() { err = printer.kind(kind, got) })
			}
			if f.interrupted, err = anyInterrupted(ctx, c, err); err != nil || f.interrupted {
				return got, err
			}
		}
	}
	return got, nil
}

// anyInterrupted reports whether a rank is interrupted. Not every launcher sends a signal to all.
func anyInterrupted(ctx context.Context, c *mpi.Comm, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	flag := []int32{0}
	if ctx.Err() != nil {
		flag[0] = 1
	}
	err = mpi.Allreduce(c, flag, flag, mpi.Max)
	return flag[0] > 0, err
}

// settle checks the flags and fills in defaults.
func (f *tuneFlags) settle() (kinds []coll.Kind, sizes []int, err error) {
	if f.ranks < 2 {
		return nil, nil, fmt.Errorf("-n %d: there is nothing to choose below 2 ranks; use -n 2 or more", f.ranks)
	}
	if f.rounds < 1 {
		return nil, nil, fmt.Errorf("--rounds %d: use at least one", f.rounds)
	}
	if f.sizes == nil {
		f.sizes = []string{"8", "64", "512", "4K", "32K", "256K", "1M"}
		if f.quick {
			f.sizes = []string{"8", "4K", "256K"}
		}
	}
	if f.quick {
		f.rounds = 1
	}
	if f.budget == 0 {
		f.budget = 20 * time.Millisecond
		if f.quick {
			f.budget = 4 * time.Millisecond
		}
	}
	if sizes, err = parseSizes(f.sizes); err != nil {
		return nil, nil, err
	}
	slices.Sort(sizes)
	if sizes = slices.Compact(sizes); len(sizes) < len(f.sizes) {
		return nil, nil, fmt.Errorf("--sizes %s: a size is given twice", strings.Join(f.sizes, ","))
	}
	kinds, err = tunableKinds("--collectives", f.collectives)
	return kinds, sizes, err
}

// oldTable reads an existing table; it returns an empty one if there is no file.
func oldTable(file string) (*coll.Tuning, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &coll.Tuning{}, nil
	}
	if err != nil {
		return nil, err
	}
	table, err := coll.ParseTuning(text)
	if err != nil {
		return nil, fmt.Errorf("--out %s exists and is not a tuning table: %w; use another file", file, err)
	}
	return table, nil
}

// candidate is an algorithm with parameters.
type candidate struct {
	algorithm *coll.Algorithm
	params    []int
}

// String returns the candidate in the syntax of MUSTER_COLLECTIVE.
func (c candidate) String() string {
	var b strings.Builder
	b.WriteString(c.algorithm.Name)
	for i, p := range c.algorithm.Params {
		fmt.Fprintf(&b, ":%s=%d", p.Name, c.params[i])
	}
	return b.String()
}

// serves reports whether the candidate supports the calls of the benchmark that measures
// it.
func (c candidate) serves(on layout, size int) bool {
	b, err := bench.Find(c.algorithm.Kind.String())
	if err != nil {
		return false
	}
	ok, _ := variantServes(b, c.algorithm.Name, on, size)
	return ok
}

// candidatesOf returns the candidates of a collective, with every parameter value worth
// trying, or with two of each algorithm if quick.
func candidatesOf(kind coll.Kind, on layout, quick bool) (list []candidate) {
	for _, a := range coll.AlgorithmsOf(kind) {
		if !(candidate{algorithm: a}).serves(on, 1<<20) {
			continue
		}
		tried := 0
		a.EachParams(func(params []int) {
			if tried++; quick && tried > 2 {
				return
			}
			list = append(list, candidate{a, slices.Clone(params)})
		})
	}
	return list
}
