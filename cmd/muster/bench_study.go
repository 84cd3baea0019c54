package main

// muster bench study NAME: runs applications with a technique and without it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench/groups"
	"github.com/muster-mpi/muster/bench/results"
)

type studyFlags struct {
	options groups.StudyOptions
	rounds  int
	settle  time.Duration
	limit   time.Duration
	quick   bool
	verbose bool
	output  string
	plot    string
}

func newStudyCommand() *cobra.Command {
	var f studyFlags
	names, titles := groups.Studies()
	var list strings.Builder
	for i, name := range names {
		fmt.Fprintf(&list, "  %-16s %s\n", name, titles[i])
	}
	cmd := &cobra.Command{
		Use:   "study [NAME]",
		Short: "run applications with a technique and without it, and compare",
		Long: `study runs applications (muster app) with a technique of the documents and without it, in
alternating rounds, and prints what both took, their ratio and what the document
reports. Without a name it lists the studies:

` + list.String() + `
A study takes some minutes; it prints each run, and interrupted the table of what it has. Those of several hosts need root: hosts are network
namespaces, with cables slow enough that the network limits and not the cores.
--output writes the table as JSON and as Markdown, and the figure as SVG, into a folder.`,
		Example: `  muster bench study speculation
  muster bench study arrival --rounds 5 --output results
  muster bench study reuse --apps lu,cg --class W --plot reuse.svg`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := io.WriteString(cmd.OutOrStdout(), list.String())
				return err
			}
			if !slices.Contains(names, args[0]) {
				return fmt.Errorf("bench study %s: no study has this name; they are %s", args[0], strings.Join(names, ", "))
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			err := f.run(ctx, cmd, args[0])
			if _, ended := err.(exitStatus); err != nil && !ended {
				err = fmt.Errorf("bench study %s: %w", args[0], err)
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.options.Apps, "apps", "", "run these applications only, separated by commas")
	fl.StringVarP(&f.options.Class, "class", "c", "", "problem size of all applications (default: small ones, by application)")
	fl.IntVarP(&f.options.Ranks, "ranks", "n", 0, "number of ranks (default: by application)")
	fl.IntVar(&f.rounds, "rounds", 3, "runs of each application with each setting")
	fl.DurationVar(&f.settle, "settle", 5*time.Second, "wait as long as this for a quiet machine before each round")
	fl.DurationVar(&f.limit, "limit", time.Minute, "end a run that takes longer")
	fl.BoolVar(&f.quick, "quick", false, "one round, without waiting: to see that everything runs")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show each run")
	fl.StringVarP(&f.output, "output", "o", "", "folder for the table and the figure")
	fl.StringVar(&f.plot, "plot", "", "draw the figure into this SVG file")
	return cmd
}

func (f *studyFlags) run(ctx context.Context, cmd *cobra.Command, name string) error {
	if f.quick {
		f.rounds, f.settle = 1, 0
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "muster-study-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	log := io.Discard
	if f.verbose {
		log = os.Stderr
	}
	table := groups.StudyPrefix + name
	done := startProgress(os.Stderr, "study "+name, 1)
	defer done.stop()
	before := 0
	session, skipped, err := groups.NewSession(ctx, groups.Options{
		Only: table, Rounds: f.rounds, Settle: f.settle, Limit: f.limit, Statistic: "value",
		Alone: true, Bin: bin, Muster: self, Log: log, Study: f.options,
		Ran: func(n, all int, what string) {
			done.step(float64(n-before)/float64(all), fmt.Sprintf("run %d of %d", min(n+1, all), all))
			before = n
			done.output(func() { fmt.Fprintln(os.Stderr, what) })
		},
	})
	if err != nil {
		return err
	}
	for _, s := range skipped {
		err = errors.Join(err, s.Reason)
	}
	if err != nil {
		return err
	}
	out, err := session.Measure(ctx, table)
	if err != nil {
		return err
	}
	done.output(func() { done.w = nil })
	if _, err := io.WriteString(cmd.OutOrStdout(), out.Table.Text()); err != nil {
		return err
	}
	if f.plot != "" {
		if err := os.WriteFile(f.plot, out.Picture, 0o644); err != nil {
			return fmt.Errorf("--plot: %w", err)
		}
	}
	if f.output == "" {
		return interruption(ctx)
	}
	command := "muster " + strings.Join(os.Args[1:], " ")
	if err := out.AddTo(results.NewRun(buildCommit(), command, f.rounds), f.output, command); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.output, table+".md"), []byte(out.Table.Markdown()), 0o644); err != nil {
		return err
	}
	return interruption(ctx)
}

// interruption returns the status of a command that was interrupted and has kept what it has.
func interruption(ctx context.Context) error {
	if ctx.Err() != nil {
		return exitStatus(statusInterrupted)
	}
	return nil
}
