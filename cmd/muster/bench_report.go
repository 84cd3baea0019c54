package main

// muster bench report: measures the groups that the claims name, one after the other, and
// renders a page. Finished tables stay in the folder, so that a second start continues.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench/groups"
	"github.com/muster-mpi/muster/bench/results"
	"github.com/muster-mpi/muster/mpi"
)

// reporter makes a report.
type reporter struct {
	folder   string
	only     string
	rounds   int
	settle   time.Duration
	quick    bool
	verbose  bool
	against  string
	commit   string
	progress io.Writer
	// open prepares the measurement of groups, which are separated by commas; a test
	// replaces it.
	open func(ctx context.Context, only string) (session, []groups.Skipped, error)
}

// session measures groups; see groups.Session.
type session interface {
	Groups() []string
	Measure(ctx context.Context, name string) (*groups.Outcome, error)
	Forget()
}

func newReportCommand() *cobra.Command {
	r := &reporter{progress: os.Stderr, commit: buildCommit()}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "measure the claims that this machine can show, and write them as a page",
		Long: `report measures every claim of the documents that Muster is built on, and our own
targets, as far as this machine can show them, and writes report.html and report.json:
the claim with its source, the document's figure, ours and that of Open MPI and MPICH,
met or missed, with picture, command, date and commit. A claim that cannot be measured is
listed with the reason.

The peers' loops are built with mpicc.openmpi and mpicc.mpich. Where these are not
installed, ours is measured alone. Claims about several hosts need root, for network
namespaces. Some need a program that is built from the sources of Muster: start the
command inside the repository.

Tables of finished claims are kept in the folder. The same command continues after an
interruption, and measures again what was measured from another commit or with other
flags. With all claims and three rounds it takes about half an hour.

With --against, figures that are worse than in an earlier report.json by more than the
noise are measured once more, in twice as many rounds, and if they are worse again, in
every round, marked. The noise is
estimated from the spread of the rounds of both reports, and is at least 10 %. Then the
exit status is 1.`,
		Example: `  muster bench report
  muster bench report --only latency,bw,'coll-*-2' --rounds 7 --output monday
  muster bench report --quick --only latency
  muster bench report --output tuesday --against monday/report.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.open = r.openGroups
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return r.run(ctx)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&r.folder, "output", "o", "muster-report", "folder for the page and the tables")
	fl.StringVar(&r.only, "only", "", "measure these tables only, separated by commas: a name, the part of names before a dash, or a pattern with *")
	fl.IntVar(&r.rounds, "rounds", 5, "rounds of each table; with 1 the noise is unknown")
	fl.DurationVar(&r.settle, "settle", 5*time.Second, "wait as long as this for a quiet machine before each round")
	fl.BoolVar(&r.quick, "quick", false, "two rounds, without waiting: to see that everything runs")
	fl.BoolVarP(&r.verbose, "verbose", "v", false, "show each run")
	fl.StringVar(&r.against, "against", "", "report.json of an earlier report: mark what has become worse")
	return cmd
}

// run measures what is missing and writes the report. An interrupted report is written with
// what it has.
func (r *reporter) run(ctx context.Context) error {
	if r.quick {
		r.rounds, r.settle = 2, 0
	}
	var old *results.Report
	if r.against != "" { // before anything is measured
		var err error
		if old, err = results.ReadReport(r.against); err != nil {
			return fmt.Errorf("--against: %w", err)
		}
	}
	wanted, err := claimGroups(r.only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	reasons := map[string]string{}
	failure := r.measure(ctx, wanted, r.tables(), reasons)
	if failure != nil && ctx.Err() == nil {
		return failure
	}
	report, err := r.judge(r.tables(), wanted, reasons)
	if err != nil {
		return err
	}
	if old != nil {
		if tables := report.CompareWith(old); len(tables) > 0 && ctx.Err() == nil {
			if err := r.confirm(ctx, report, old, tables); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
	if err := r.write(report); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted; the same command continues")
	}
	if worse := report.Regressions(); len(worse) > 0 {
		for _, f := range worse {
			fmt.Fprintf(r.progress, "worse than before: %s, %s\n", f.Table, f.Row)
		}
		return exitStatus(1)
	}
	return nil
}

// claimGroups returns the groups that claims need and that are selected.
func claimGroups(only string) ([]string, error) {
	selected, err := groups.Names(only)
	if err != nil {
		return nil, err
	}
	patterns := claimTables()
	return slices.DeleteFunc(selected, func(name string) bool { return !results.Match(patterns, name) }), nil
}

// claimTables returns the tables of all claims, separated by commas.
func claimTables() string {
	var list []string
	for _, s := range groups.Sections() {
		for _, c := range s.Claims {
			if c.Reason == "" {
				list = append(list, c.Tables)
			}
		}
	}
	return strings.Join(list, ",")
}

// tables is the folder of finished tables.
func (r *reporter) tables() string { return filepath.Join(r.folder, "tables") }

// command is the command line that measures a group. A table with another one, or of another
// commit, is measured again.
func (r *reporter) command(group string) string {
	words := []string{"muster", "bench", "report", "--only", group}
	if r.quick {
		return strings.Join(append(words, "--quick"), " ")
	}
	return strings.Join(append(words, "--rounds", fmt.Sprint(r.rounds)), " ")
}

// measure measures the groups whose tables are not in the folder. It adds the reasons of those
// that cannot be measured.
func (r *reporter) measure(ctx context.Context, wanted []string, folder string, reasons map[string]string) error {
	have, err := results.Load(folder)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
		t := have[name]
		return t != nil && t.Stamp.Commit == r.commit && t.Stamp.Command == r.command(name)
	})
	if kept := len(wanted) - len(missing); kept > 0 {
		fmt.Fprintf(r.progress, "%d of %d tables are in %s\n", kept, len(wanted), folder)
	}
	if len(missing) == 0 {
		return nil
	}
	s, skipped, err := r.open(ctx, strings.Join(missing, ","))
	if err != nil {
		return err
	}
	for _, sk := range skipped {
		reasons[sk.Group] = sk.Reason.Error()
	}
	s.Forget()
	names := slices.DeleteFunc(s.Groups(), func(name string) bool { return !slices.Contains(missing, name) })
	start, run := time.Now(), results.NewRun(r.commit, r.command(cmp.Or(r.only, "'*'")), r.rounds)
	for i, name := range names {
		fmt.Fprintf(r.progress, "%d of %d: %s%s\n", i+1, len(names), name, remaining(time.Since(start), i, len(names)))
		out, err := s.Measure(ctx, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = out.AddTo(run, folder, r.command(name))
		}
		if err == nil {
			for _, row := range out.Table.Rows {
				fmt.Fprintf(r.progress, "    %s\n", strings.Join(row, "  "))
			}
		}
		if err != nil {
			reasons[name] = err.Error()
			fmt.Fprintf(r.progress, "%s: %v\n", name, err)
		}
	}
	return nil
}

// remaining estimates the time that is left after some of all tables.
func remaining(elapsed time.Duration, done, all int) string {
	if done == 0 {
		return ""
	}
	left := elapsed / time.Duration(done) * time.Duration(all-done)
	return fmt.Sprintf(", after %s, about %s left", elapsed.Round(time.Second), left.Round(time.Second))
}

// judge makes the report from the tables in a folder.
func (r *reporter) judge(folder string, wanted []string, reasons map[string]string) (*results.Report, error) {
	have, err := results.Load(folder)
	if err != nil {
		return nil, err
	}
	for name := range have {
		if !slices.Contains(wanted, name) {
			delete(have, name)
		}
	}
	report := results.Judge(r.sections(wanted), have, func(tables string) string {
		for _, name := range wanted {
			if reason := reasons[name]; reason != "" && results.Match(tables, name) {
				return name + ": " + reason
			}
		}
		if slices.ContainsFunc(wanted, func(name string) bool { return results.Match(tables, name) && have[name] == nil }) {
			return "not reached yet: the same command continues"
		}
		return "no peer is installed: install Open MPI or MPICH with its compiler wrapper"
	})
	run := results.NewRun(r.commit, r.command(cmp.Or(r.only, "'*'")), r.rounds)
	report.Date, report.Commit, report.Machine, report.Command = run.Date, run.Commit, run.Machine, run.Command
	return report, nil
}

// sections returns the claims that are about wanted tables, or all of them without --only.
func (r *reporter) sections(wanted []string) (list []results.Section) {
	for _, s := range groups.Sections() {
		if r.only != "" {
			s.Claims = slices.DeleteFunc(s.Claims, func(c results.Claim) bool {
				return !slices.ContainsFunc(wanted, func(name string) bool { return results.Match(c.Tables, name) })
			})
		}
		if len(s.Claims) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// confirm measures tables with regressions again, and withdraws those that are not worse a
// second time.
func (r *reporter) confirm(ctx context.Context, report, old *results.Report, tables []string) error {
	r.rounds *= 2
	defer func() { r.rounds /= 2 }()
	fmt.Fprintf(r.progress, "worse than before at first, measured again in up to %d rounds: %s\n", r.rounds, strings.Join(tables, ", "))
	folder, reasons := filepath.Join(r.folder, "again"), map[string]string{}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := r.measure(ctx, tables, folder, reasons); err != nil {
		return err
	}
	again, err := r.judge(folder, tables, reasons)
	if err != nil {
		return err
	}
	again.CompareWith(old)
	report.Confirm(again)
	return nil
}

// write writes both forms of the report.
func (r *reporter) write(report *results.Report) error {
	var page bytes.Buffer
	if err := report.WriteHTML(&page); err != nil {
		return err
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"report.html": page.Bytes(), "report.json": append(text, '\n')} {
		if err := os.WriteFile(filepath.Join(r.folder, name), content, 0o644); err != nil {
			return err
		}
	}
	n := report.Counts()
	fmt.Fprintf(r.progress, "%s: %d claims met, %d within noise, %d missed, %d bounded, %d not measured, %d not measurable here\n",
		filepath.Join(r.folder, "report.html"), n[results.Met], n[results.WithinNoise], n[results.Missed], n[results.Bounded], n[results.NotMeasured], n[results.NotMeasurable])
	return nil
}

// openGroups prepares the measurement.
func (r *reporter) openGroups(ctx context.Context, only string) (session, []groups.Skipped, error) {
	fmt.Fprintln(r.progress, "building the programs of the peers")
	log := io.Discard
	if r.verbose {
		log = r.progress
	}
	return openSession(ctx, groups.Options{Only: only, Rounds: r.rounds, Settle: r.settle, Bin: filepath.Join(r.folder, "bin"), Log: log})
}

// openSession builds the programs of the peers into o.Bin. The muster command is this program
// itself.
func openSession(ctx context.Context, o groups.Options) (session, []groups.Skipped, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	o.Limit, o.Statistic, o.Alone, o.Root, o.Muster = time.Minute, "value", true, groups.SourceRoot(), self
	return groups.NewSession(ctx, o)
}

// buildCommit returns the commit that this program was built from, or else its version.
func buildCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return mpi.Version()
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(9, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if commit == "" {
		return mpi.Version()
	}
	return commit + dirty
}
