package main

// muster tune: find the best algorithm by measurement. On one host every algorithm has a
// job of its own, so that it is measured under the settings of a user who forces it. A job
// measures one algorithm of each collective, and each round runs all jobs once. On several
// hosts one job measures all of them (tune_hosts.go).
//
//	newTuneCommand  the launcher's side: plan, jobs, progress, table
//	measureForTune  a rank's side (tune_measure.go)
//	tuneRules       from figures to rules (tune_table.go)

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/mpi"
)

type tuneFlags struct {
	ranks       int
	out         string
	collectives []string
	sizes       []string
	rounds      int
	quick       bool
	measure     bool // this is a rank of one of the jobs
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

By itself it starts jobs on this host, and skips algorithms that need several nodes. As
the program of a job on several hosts it measures these, and rank 0 writes the table:
copy it to all hosts.

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
			inJob := os.Getenv(pmi.EnvFD) != "" || os.Getenv(pmi.EnvRank) != ""
			switch {
			case f.measure && inJob:
				return measureForTune(&f)
			case inJob:
				kinds, err := f.settle()
				if err != nil {
					return fmt.Errorf("tune: %w", err)
				}
				ranks := 0
				if cmd.Flags().Changed("ranks") {
					ranks = f.ranks
				}
				mpi.Main(func(c *mpi.Comm) error { return tuneInJob(c, &f, kinds, ranks) })
				return nil
			}
			if err := tune(cmd, &f); err != nil {
				return fmt.Errorf("tune: %w", err)
			}
			return nil
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
	fl.BoolVar(&f.measure, "measure", false, "run as a rank of a job of tune")
	if err := fl.MarkHidden("measure"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// tune runs the jobs and writes the table.
func tune(cmd *cobra.Command, f *tuneFlags) error {
	kinds, err := f.settle()
	if err != nil {
		return err
	}
	table, err := oldTable(f.out)
	if err != nil {
		return err
	}
	jobs := tuneJobs(kinds, f.ranks, f.quick)
	started := time.Now()
	bar := newProgress(os.Stderr, f.rounds*len(jobs)+1)
	defer bar.end()
	bar.show("shared memory")
	segment, err := measureSegment(cmd, f, kinds)
	if err != nil {
		return err
	}
	bar.step()
	var figures []tuneFigure
	for range f.rounds {
		for _, job := range jobs {
			bar.show(job.String())
			got, err := job.run(cmd, f)
			if err != nil {
				return err
			}
			figures = append(figures, got...)
			bar.step()
		}
	}
	bar.end()
	rules := tuneRules(figures, oneHost(f.ranks))
	if err := writeTuning(f.out, table, rules, oneHost(f.ranks)); err != nil {
		return err
	}
	printTuning(cmd.OutOrStdout(), figures, rules, segment)
	fmt.Fprintf(cmd.OutOrStdout(), "\n%s: %d rules for %d ranks, after %.0f s; use it with MUSTER_TUNING=%s\n",
		f.out, len(rules), f.ranks, time.Since(started).Seconds(), f.out)
	return nil
}

// settle checks the flags and fills in defaults.
func (f *tuneFlags) settle() (kinds []coll.Kind, err error) {
	if f.ranks < 2 {
		return nil, fmt.Errorf("-n %d: there is nothing to choose below 2 ranks; use -n 2 or more", f.ranks)
	}
	if f.rounds < 1 {
		return nil, fmt.Errorf("--rounds %d: use at least one", f.rounds)
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
	sizes, err := parseSizes(f.sizes)
	if err != nil {
		return nil, err
	}
	slices.Sort(sizes)
	if len(slices.Compact(sizes)) < len(f.sizes) {
		return nil, fmt.Errorf("--sizes %s: a size is given twice", strings.Join(f.sizes, ","))
	}
	return tunableKinds("--collectives", f.collectives)
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
	for _, a := range coll.Of(kind) {
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

// tuneJob measures one candidate of each of several collectives.
type tuneJob []candidate

// tuneJobs spreads the candidates over as few jobs as possible.
func tuneJobs(kinds []coll.Kind, ranks int, quick bool) []tuneJob {
	var jobs []tuneJob
	for _, k := range kinds {
		for i, c := range candidatesOf(k, oneNode(ranks), quick) {
			if i == len(jobs) {
				jobs = append(jobs, nil)
			}
			jobs[i] = append(jobs[i], c)
		}
	}
	return jobs
}

func (j tuneJob) String() string {
	var words []string
	for _, c := range j {
		words = append(words, fmt.Sprintf("%s=%s", c.algorithm.Kind, c))
	}
	return strings.Join(words, ",")
}

// run measures all candidates of the job.
func (j tuneJob) run(cmd *cobra.Command, f *tuneFlags) ([]tuneFigure, error) {
	var kinds []coll.Kind
	for _, c := range j {
		kinds = append(kinds, c.algorithm.Kind)
	}
	results, err := measureSetting(cmd, f, kinds, j.String())
	if err != nil {
		return nil, err
	}
	var figures []tuneFigure
	for _, c := range j {
		for _, r := range results[c.algorithm.Kind] {
			if c.serves(oneNode(f.ranks), r.Size) { // otherwise another algorithm was measured
				figures = append(figures, tuneFigure{candidate: c, size: r.Size, micros: r.P50})
			}
		}
	}
	return figures, nil
}

// measureSegment measures calls through the shared memory of the host, without any
// algorithm. The table has no rule for it: ranks of a host use shared memory up to a fixed
// size, and the result shows whether that size suits this machine.
func measureSegment(cmd *cobra.Command, f *tuneFlags, kinds []coll.Kind) (map[coll.Kind][]bench.Result, error) {
	var words []string
	var able []coll.Kind
	for _, k := range kinds {
		b, err := bench.Find(k.String())
		if err != nil {
			return nil, err
		}
		if ok, _ := variantServes(b, coll.Segment.Name, oneNode(f.ranks), 8); ok {
			able, words = append(able, k), append(words, k.String()+"="+coll.Segment.Name)
		}
	}
	if able == nil {
		return nil, nil
	}
	return measureSetting(cmd, f, able, strings.Join(words, ","))
}

// measureSetting runs a job with a value of MUSTER_COLLECTIVE.
func measureSetting(cmd *cobra.Command, f *tuneFlags, kinds []coll.Kind, setting string) (map[coll.Kind][]bench.Result, error) {
	args := []string{"tune", "--measure", "--budget=" + f.budget.String(), "--sizes=" + strings.Join(f.sizes, ",")}
	for _, k := range kinds {
		args = append(args, "--collectives="+k.String())
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "MUSTER_COLLECTIVE=") || strings.HasPrefix(kv, "MUSTER_TUNING=")
	})
	results, err := benchmarkJob(cmd, f.ranks, args, append(env, "MUSTER_COLLECTIVE="+setting))
	if err != nil {
		return nil, fmt.Errorf("the job with MUSTER_COLLECTIVE=%s: %w", setting, err)
	}
	by := map[coll.Kind][]bench.Result{}
	for _, r := range results {
		k, err := coll.ParseKind(r.Bench)
		if err != nil {
			return nil, err
		}
		by[k] = append(by[k], r)
	}
	for _, k := range kinds {
		if want := len(f.sizes); len(by[k]) < want && k != coll.Barrier {
			return nil, fmt.Errorf("the job with MUSTER_COLLECTIVE=%s has measured %d of %d sizes of %s", setting, len(by[k]), want, k)
		}
	}
	return by, nil
}

// progress shows the progress of a long command: a bar on a terminal, otherwise a line
// every few seconds.
type progress struct {
	w           io.Writer
	unit        string // "": jobs
	terminal    bool
	done, total int
	began, last time.Time
}

func newProgress(f *os.File, total int) *progress {
	info, err := f.Stat()
	return &progress{w: f, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0, total: total, began: time.Now()}
}

// show prints the progress and the next job.
func (p *progress) show(what string) {
	const width = 30
	if p.terminal {
		full := width * p.done / max(p.total, 1)
		fmt.Fprintf(p.w, "\r\x1b[K[%s%s] %d/%d%s %.40s", strings.Repeat("█", full), strings.Repeat("·", width-full), p.done, p.total, p.left(), what)
		return
	}
	if time.Since(p.last) > 5*time.Second {
		fmt.Fprintf(p.w, "tune: %d of %d %s done%s\n", p.done, p.total, cmp.Or(p.unit, "jobs"), p.left())
		p.last = time.Now()
	}
}

// left returns the estimated remaining time, once there is an estimate.
func (p *progress) left() string {
	if p.done < 2 {
		return ""
	}
	rest := time.Since(p.began) / time.Duration(p.done) * time.Duration(p.total-p.done)
	return fmt.Sprintf(", %v left", rest.Round(time.Second))
}

func (p *progress) step() { p.done++ }

func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
