package main

// muster tune: find the best algorithms by measurement. One job measures all of them, on a
// communicator each (bench/contest.go), because jobs differ from each other by more than
// algorithms do. Rank 0 writes the table. Outside a job, tune starts itself as the ranks.
//
//	newTuneCommand  flags, and the job on this host
//	measure         a rank's side: figures, table, output
//	tuneRules       from figures to rules (tune_table.go)

import (
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

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
)

type tuneFlags struct {
	ranks       int
	out         string
	collectives []string
	sizes       []string
	rounds      int
	quick       bool
	budget      time.Duration
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
columns show what the library chooses without a table.

The rules apply to the measured number of ranks, of nodes, and of rails between these. An
existing file keeps its rules for others, so several runs can build one table. Measure on
idle machines.`,
		Example: `  muster tune -n 4                                   writes muster-tuning.json
  muster tune -n 16 --quick                          a rough table in a few seconds
  muster tune -n 8 --collectives allreduce,bcast --sizes 8,64K,1M
  MUSTER_TUNING=muster-tuning.json muster run -n 4 ./prog
  muster run --hostfile hosts -n 64 muster tune      on several hosts
  muster run --lab -n 16 muster tune --quick         on the hosts of muster lab`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
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
			return runRanks(cmd, f.ranks, func(c *mpi.Comm) error {
				if err := f.measure(c, kinds, sizes, ranks); err != nil {
					return fmt.Errorf("tune: %w", err)
				}
				return nil
			})
		},
	}
	fl := cmd.Flags()
	fl.IntVarP(&f.ranks, "ranks", "n", 4, "number of ranks; as part of a job: all of it")
	fl.StringVarP(&f.out, "out", "o", "muster-tuning.json", "table to write or to extend")
	fl.StringSliceVar(&f.collectives, "collectives", nil, "collectives to measure (default: all)")
	fl.StringSliceVarP(&f.sizes, "sizes", "m", nil, "sizes in bytes, such as 8, 64K or 1:1M (default: 8 to 1M)")
	fl.IntVar(&f.rounds, "rounds", 3, "number of measurements of each candidate; the best one counts")
	fl.BoolVar(&f.quick, "quick", false, "one round, fewer sizes and parameters")
	fl.DurationVar(&f.budget, "budget", 0, "measuring time of one figure (default 20ms, with --quick 4ms)")
	return cmd
}

// measure measures and writes the table as one rank of a job. ranks is the value of -n; 0: it
// was not given.
func (f *tuneFlags) measure(c *mpi.Comm, kinds []coll.Kind, sizes []int, ranks int) error {
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
	figures, chosen, err := f.contests(c, kinds, sizes, on)
	if err != nil || c.Rank() != 0 {
		return err
	}
	rules := tuneRules(figures, on)
	if err := writeTuning(f.out, table, rules, on); err != nil {
		return err
	}
	if err := printTuning(os.Stdout, figures, rules, chosen); err != nil {
		return err
	}
	needed := ""
	if on.nodes > 1 {
		needed = " all hosts need the file;"
	}
	fmt.Printf("\n%s: %d rules for %v, after %.0f s;%s use it with MUSTER_TUNING=%s\n",
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

// contests measures all candidates. The figures are those of rank 0.
func (f *tuneFlags) contests(c *mpi.Comm, kinds []coll.Kind, sizes []int, on jobShape) (figures []tuneFigure, chosen []chosenFigure, err error) {
	done := progress{w: os.Stderr, total: f.rounds * len(kinds), began: time.Now()}
	for range f.rounds {
		for _, kind := range kinds {
			if c.Rank() == 0 {
				done.show()
			}
			candidates := candidatesOf(kind, on.layout, f.quick)
			err := contests(c, kind, sizes, on.layout, f.quick, 5*f.budget, func(size int, entries []bench.Entry) {
				chosen = append(chosen, chosenFigure{kind, size, choiceName(kind, entries[0].Choice), entries[0].Micros()})
				for i, e := range entries[1:] {
					if t := e.Micros(); !math.IsInf(t, 1) {
						figures = append(figures, tuneFigure{candidates[i], size, t})
					}
				}
			})
			if err != nil {
				return nil, nil, err
			}
			done.step()
		}
	}
	return figures, chosen, nil
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

// progress reports the progress of a long command every few seconds.
type progress struct {
	w           io.Writer
	done, total int
	began, last time.Time
}

func (p *progress) show() {
	if time.Since(p.last) <= 5*time.Second {
		return
	}
	p.last = time.Now()
	rest := ""
	if p.done > 1 { // otherwise there is no estimate
		left := time.Since(p.began) / time.Duration(p.done) * time.Duration(p.total-p.done)
		rest = fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	fmt.Fprintf(p.w, "tune: %d of %d measurements of collectives done%s\n", p.done, p.total, rest)
}

func (p *progress) step() { p.done++ }
