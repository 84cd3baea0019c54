// Command peers measures Muster against Open MPI, MPICH and libfabric driven bare on
// this machine, and techniques of Muster against its own plain protocols. It writes one
// JSON file into docs/results, with a table for each group of figures, and renders the pages
// in docs/results, docs/results.md and docs/documents. "make results" starts it.
//
// Package bench/groups has the groups and measures them. A group that this machine cannot
// run is skipped, with the reason; one that fails keeps its old table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/bench/documents"
	"github.com/muster-mpi/muster/bench/groups"
	"github.com/muster-mpi/muster/bench/results"
)

// options are the command line.
type options struct {
	groups.Options
	quick  bool          // two rounds, and no results written: to see that everything runs
	page   bool          // render the page, measure nothing
	budget time.Duration // start no group after this time; 0: no limit
}

func main() {
	var o options
	names, err := groups.Names("*")
	if err != nil {
		panic(err) // the plan has groups
	}
	flag.StringVar(&o.Only, "only", "", "measure these groups only, separated by commas: a name, the part of names before a dash, or a pattern with *: "+strings.Join(names, ", "))
	flag.IntVar(&o.Rounds, "rounds", 5, "rounds of each group; fewer than 5 prove nothing")
	flag.BoolVar(&o.quick, "quick", false, "two rounds, to see that everything runs; results are not written")
	flag.BoolVar(&o.page, "page", false, "measure nothing: render "+results.Page+" and the pages in "+results.Folder+" and "+documents.Folder+" from the runs")
	flag.DurationVar(&o.budget, "budget", 0, "start no further group after this time (default: no limit)")
	flag.DurationVar(&o.Limit, "limit", time.Minute, "kill a run that takes longer")
	flag.DurationVar(&o.Settle, "settle", 15*time.Second, "wait as long as this for a quiet machine before each round")
	flag.StringVar(&o.Statistic, "statistic", "value", "figure of a run: value (the mean, as OSU prints it), min, p50 or p99 (of its batches)")
	flag.StringVar(&o.Protocol, "protocol", "", "what `muster bench` gets as --protocol in groups about long messages (default: as configured)")
	flag.StringVar(&o.Before, "before", "", "compare with this earlier `muster` binary instead of the peers; results are not written")
	flag.Float64Var(&o.Within, "within", 0.03, "with -before: how much worse a figure may be, as a fraction")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// outcome is the state of a group: "measured", "skipped" or "failed".
type outcome struct {
	group, state string
	err          error
}

// measure measures the selected groups, writes the run and renders the pages. A group that fails
// keeps its old table and does not stop the others.
func measure(ctx context.Context, o options) error {
	root := groups.SourceRoot()
	if root == "" {
		return errors.New("this is not a folder of the repository: start the command inside it")
	}
	if o.page {
		return writePages(root)
	}
	if o.quick {
		o.Rounds = 2
	}
	o.Root, o.Bin, o.Log = root, filepath.Join(root, "bench", "peers", "bin"), os.Stderr
	session, skipped, err := groups.NewSession(ctx, o.Options)
	if err != nil {
		return err
	}
	commit := ""
	if o.writes() {
		if commit, err = results.Commit(ctx, root); err != nil {
			return err
		}
	}
	run := results.NewRun(commit, strings.Join(append([]string{"go run ./bench/peers"}, os.Args[1:]...), " "), o.Rounds)
	var outcomes []outcome
	for _, s := range skipped {
		outcomes = append(outcomes, outcome{s.Group, "skipped", s.Reason})
	}
	start, names := time.Now(), session.Groups()
	for i, name := range names {
		if o.budget > 0 && time.Since(start) > o.budget {
			outcomes = append(outcomes, outcome{name, "skipped", fmt.Errorf("the budget of %s is used up", o.budget)})
			continue
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s, after %s\n", i+1, len(names), name, time.Since(start).Round(time.Second))
		err := measureTable(ctx, session, name, o, run, filepath.Join(root, filepath.FromSlash(results.Folder)))
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			outcomes = append(outcomes, outcome{name, "failed", err})
			continue
		}
		outcomes = append(outcomes, outcome{name, "measured", nil})
	}
	if o.writes() {
		if err := writePages(root); err != nil {
			return err
		}
	}
	return errors.Join(ctx.Err(), report(outcomes))
}

// writePages renders the results and the documents.
func writePages(root string) error {
	if err := results.WritePages(root, groups.Sections(), groups.Pages()); err != nil {
		return err
	}
	return documents.WritePages(root, groups.Sections(), groups.Pages())
}

// measureTable measures a group and adds its table to the run in a folder.
func measureTable(ctx context.Context, session *groups.Session, name string, o options, run *results.Run, folder string) error {
	out, err := session.Measure(ctx, name)
	if err != nil {
		return err
	}
	fmt.Println(out.Table.Text())
	if !o.writes() {
		return nil
	}
	return out.AddTo(run, folder, commandLine(name, os.Args[1:]))
}

// writes reports whether tables are written.
func (o *options) writes() bool { return !o.quick && o.Before == "" }

// report prints what was skipped and what failed. It is an error if something failed.
func report(outcomes []outcome) error {
	failed := 0
	for _, one := range outcomes {
		if one.err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s: %v\n", one.state, one.group, one.err)
		}
		if one.state == "failed" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tables failed; the pages show what was measured before", failed, len(outcomes))
	}
	return nil
}

// commandLine returns the command that measures one group with the flags of this process.
func commandLine(group string, args []string) string {
	words := []string{"go", "run", "./bench/peers", "-only", group}
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch name {
		case "only", "budget":
			if !joined {
				i++
			}
		default:
			words = append(words, args[i])
		}
	}
	return strings.Join(words, " ")
}
