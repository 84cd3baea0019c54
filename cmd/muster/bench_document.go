package main

// muster bench document NAME: measures the figures and tables of a document, and prints theirs
// beside ours.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench/documents"
	"github.com/muster-mpi/muster/bench/groups"
	"github.com/muster-mpi/muster/bench/results"
)

type documentFlags struct {
	figure  string
	list    bool
	rounds  int
	settle  time.Duration
	quick   bool
	verbose bool
	// open prepares the measurement of groups; a test replaces it.
	open func(ctx context.Context, only string) (session, []groups.Skipped, error)
	// run runs this program with arguments; a test replaces it.
	run func(ctx context.Context, out io.Writer, args []string) error
}

func newDocumentCommand() *cobra.Command {
	f := documentFlags{run: runSelf}
	cmd := &cobra.Command{
		Use:   "document NAME",
		Short: "measure the figures and tables of a document, and print theirs beside ours",
		Long: `document measures what the figures and tables of a document show (` + strings.Join(documents.Names(), ", ") + `:
docs/references.md), and prints for each what the document states, our figure, the
conditions of both and what bounds ours. What cannot be measured here is listed with what
is missing. docs/documents has the same with pictures.

The tables of most figures are those of bench report; some are of the simulator, and some
figures are shown by another command of muster, which is run. Figures about several hosts
need root, and the peers Open MPI and MPICH take part where they are installed.`,
		Example: `  muster bench document T1 --list
  muster bench document T1 --figure 4.13
  muster bench document T2 --figure "table 6.2"
  muster bench document P3 --rounds 3`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: documents.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := documents.Find(args[0])
			if err == nil && f.list {
				return listFigures(cmd.OutOrStdout(), d)
			}
			if err == nil {
				ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
				defer stop()
				err = f.measure(ctx, cmd.OutOrStdout(), d)
			}
			if err != nil {
				return fmt.Errorf("bench document: %w", err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.figure, "figure", "", `this figure or table only, such as 4.13 or "table 5.1" (default: all)`)
	fl.BoolVar(&f.list, "list", false, "list the figures and how each is measured")
	fl.IntVar(&f.rounds, "rounds", 5, "rounds of each table")
	fl.DurationVar(&f.settle, "settle", 5*time.Second, "wait as long as this for a quiet machine before each round")
	fl.BoolVar(&f.quick, "quick", false, "one round, without waiting: to see that everything runs")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "show each run")
	return cmd
}

// listFigures prints the figures of a document.
func listFigures(w io.Writer, d *documents.Document) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range d.Figures {
		f := &d.Figures[i]
		by := strings.Join(f.Tables(), ",")
		if f.Run != "" {
			by = "muster " + f.Run
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.ID, f.Kind(), f.Title, by)
	}
	return t.Flush()
}

// measure measures the selected figures one after the other. A table that several figures have
// is measured once.
func (f *documentFlags) measure(ctx context.Context, w io.Writer, d *documents.Document) error {
	if f.quick {
		f.rounds, f.settle = 1, 0
	}
	figures, err := d.Select(f.figure)
	if err != nil {
		return err
	}
	var only []string
	for i := range figures {
		only = append(only, figures[i].Tables()...)
	}
	var s session
	reasons := map[string]error{}
	if len(only) > 0 {
		bin, err := os.MkdirTemp("", "muster-document-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(bin)
		open := f.open
		if open == nil {
			open = func(ctx context.Context, only string) (session, []groups.Skipped, error) {
				return f.openGroups(ctx, only, bin)
			}
		}
		var skipped []groups.Skipped
		if s, skipped, err = open(ctx, strings.Join(only, ",")); err != nil {
			return err
		}
		for _, one := range skipped {
			reasons[one.Group] = one.Reason
		}
	}
	start, tables := time.Now(), map[string]*results.Table{}
	for i := range figures {
		if len(figures) > 1 {
			fmt.Fprintf(os.Stderr, "%d of %d: %s %s%s\n", i+1, len(figures), d.Name, figures[i].Heading(), remaining(time.Since(start), i, len(figures)))
		}
		if err := f.one(ctx, w, d, &figures[i], s, tables, reasons); err != nil {
			return err
		}
	}
	return nil
}

// one measures a figure and prints it.
func (f *documentFlags) one(ctx context.Context, w io.Writer, d *documents.Document, figure *documents.Figure, s session, tables map[string]*results.Table, reasons map[string]error) error {
	for _, name := range figure.Tables() {
		if tables[name] != nil || reasons[name] != nil {
			continue
		}
		out, err := s.Measure(ctx, name)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			reasons[name] = err
			continue
		}
		tables[name] = out.Table
	}
	fmt.Fprintf(w, "\n%s", d.Show(figure, tables))
	for _, name := range figure.Tables() {
		if tables[name] != nil {
			fmt.Fprint(w, tables[name].Text())
		} else {
			fmt.Fprintf(w, "  %s was not measured: %v\n", name, reasons[name])
		}
	}
	if figure.Run == "" {
		return nil
	}
	fmt.Fprintf(w, "  muster %s\n", figure.Run)
	return f.run(ctx, w, strings.Fields(figure.Run))
}

// runSelf runs this program with arguments.
func runSelf(ctx context.Context, out io.Writer, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, args...)
	c.Stdout, c.Stderr = out, os.Stderr
	return c.Run()
}

// openGroups prepares the measurement.
func (f *documentFlags) openGroups(ctx context.Context, only, bin string) (session, []groups.Skipped, error) {
	log := io.Discard
	if f.verbose {
		log = os.Stderr
	}
	return openSession(ctx, groups.Options{Only: only, Rounds: f.rounds, Settle: f.settle, Bin: bin, Log: log})
}
