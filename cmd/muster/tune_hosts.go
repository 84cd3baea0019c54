package main

// muster tune as the ranks of a job on several hosts. Starting a job for each candidate, as
// on one host, would take long, and jobs differ from each other by more than candidates do.
// So one job measures all of them, on a communicator each (bench/contest.go). Rank 0 writes
// the table.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// jobShape is what the rules of a table apply to: ranks, the nodes they run on, and the rails
// between these.
type jobShape struct {
	layout
	rails int
}

// oneHost returns the shape of ranks that share a node.
func oneHost(ranks int) jobShape { return jobShape{oneNode(ranks), 1} }

func (s jobShape) String() string {
	if s.rails > 1 {
		return fmt.Sprintf("%v with %d rails", s.layout, s.rails)
	}
	return s.layout.String()
}

// shapeOfJob returns the shape of the ranks of c, without a message.
func shapeOfJob(c *mpi.Comm) (jobShape, error) {
	x, err := inspect.ExplainCollective(c, coll.Barrier.String(), 0, 0)
	if err != nil {
		return jobShape{}, err
	}
	return jobShape{layout{c.Size(), x.Nodes}, x.Rails}, nil
}

// tuneInJob measures and writes the table as one rank of a job. ranks is the value of -n; 0:
// it was not given.
func tuneInJob(c *mpi.Comm, f *tuneFlags, kinds []coll.Kind, ranks int) error {
	on, err := shapeOfJob(c)
	switch {
	case err != nil:
		return err
	case ranks > 0 && ranks != c.Size():
		return fmt.Errorf("tune: -n %d, but the job has %d ranks: omit it here, and set the number with muster run -n", ranks, c.Size())
	case on.nodes == 1:
		return errors.New("tune: all ranks are on one host: omit muster run, and set the number of ranks with -n")
	}
	sizes, err := parseSizes(f.sizes)
	if err != nil {
		return err
	}
	table := &coll.Tuning{}
	if c.Rank() == 0 { // before measuring
		if table, err = oldTable(f.out); err != nil {
			return fmt.Errorf("tune: %w", err)
		}
	}
	started := time.Now()
	figures, chosen, err := tuneContests(c, f, kinds, sizes, on)
	if err != nil || c.Rank() != 0 {
		return err
	}
	rules := tuneRules(figures, on)
	if err := writeTuning(f.out, table, rules, on); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	if err := printTunedHosts(os.Stdout, figures, rules, chosen); err != nil {
		return err
	}
	fmt.Printf("\n%s: %d rules for %v, after %.0f s; all hosts need the file; use it with MUSTER_TUNING=%s\n",
		f.out, len(rules), on, time.Since(started).Seconds(), f.out)
	return nil
}

// chosenFigure is what the library chose without a table, and its time.
type chosenFigure struct {
	kind   coll.Kind
	size   int
	name   string
	micros float64
}

// tuneContests measures all candidates. The figures are those of rank 0.
func tuneContests(c *mpi.Comm, f *tuneFlags, kinds []coll.Kind, sizes []int, on jobShape) (figures []tuneFigure, chosen []chosenFigure, err error) {
	bar := newProgress(os.Stderr, f.rounds*len(kinds))
	bar.unit = "measurements of collectives"
	defer bar.end()
	for range f.rounds {
		for _, kind := range kinds {
			if c.Rank() == 0 {
				bar.show(kind.String())
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
			bar.step()
		}
	}
	return figures, chosen, nil
}

// printTunedHosts prints the rule, what the library chooses without a table, and the best
// candidate for each size.
func printTunedHosts(w io.Writer, figures []tuneFigure, rules []coll.Rule, chosen []chosenFigure) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "collective\tbytes\trule\tµs\tbest measured\tµs\tdefault\tµs")
	kinds, sizes := kindsAndSizes(figures)
	for _, kind := range kinds {
		for _, size := range sizes[kind] {
			best := bestOf(figures, kind, size)
			i := slices.IndexFunc(rules, func(r coll.Rule) bool { return r.Kind == kind && r.Bytes.Has(size) })
			k := slices.IndexFunc(best, func(f tuneFigure) bool { return f.same(candidate{rules[i].Algorithm, rules[i].Params}) })
			fmt.Fprintf(tw, "%s\t%d\t%v\t%.1f\t%v\t%.1f\t", kind, size, best[k].candidate, best[k].micros, best[0].candidate, best[0].micros)
			without := slices.DeleteFunc(slices.Clone(chosen), func(c chosenFigure) bool { return c.kind != kind || c.size != size })
			fastest := slices.MinFunc(without, func(a, b chosenFigure) int { return cmp.Compare(a.micros, b.micros) })
			fmt.Fprintf(tw, "%s\t%.1f\n", fastest.name, fastest.micros)
		}
	}
	return tw.Flush()
}
