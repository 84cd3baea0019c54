// Command peers measures Muster against Open MPI, MPICH and libfabric driven bare on
// this machine, and techniques of Muster against its own plain protocols. It writes one
// generated table for each group of figures into docs/results and renders
// docs/results.md from them. "make results" starts it.
//
// It builds loops/peers.c with the compiler wrapper of each library, loops/ofi_bare.c,
// and the muster command without and with libfabric. A group that this machine cannot
// run is skipped, with the reason; one that fails keeps its old table. For each group
// and each round, it waits for a quiet machine, measures the hand-over of a cache line
// between two cores, and runs every contender once; the contender that begins changes
// from round to round. Only figures of the same round are compared. A run that hangs is
// killed and counted.
//
// Files: plan.go and plan_*.go list the groups; build.go builds the programs and
// command.go their command lines; quiet.go and hop.go observe the machine; run.go runs
// one command; summary.go computes medians and ratios; report.go makes tables and
// picture.go charts.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/bench/results"
	"github.com/muster-mpi/muster/internal/lab"
)

// options are the command line.
type options struct {
	only      string        // groups, separated by commas, or all if empty
	rounds    int           // of each group
	quick     bool          // two rounds, and no results written: to see that everything runs
	peersOnly bool          // without Muster, and no results written
	page      bool          // render the page, measure nothing
	budget    time.Duration // start no group after this time; 0: no limit
	limit     time.Duration // for one run
	settle    time.Duration // for the machine to become quiet before a round
	statistic string        // which figure of a run is compared
	protocol  string        // of ours, in groups about long messages; as configured if empty
	before    string        // an earlier muster binary that replaces the peers
	within    float64       // how much worse than before a figure may be, as a fraction
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "measure these groups only, separated by commas: a name, the part of names before a dash, or a pattern with *: "+strings.Join(groupNames(), ", "))
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each group; fewer than 5 prove nothing")
	flag.BoolVar(&o.quick, "quick", false, "two rounds, to see that everything runs; results are not written")
	flag.BoolVar(&o.peersOnly, "peers-only", false, "leave Muster out; results are not written")
	flag.BoolVar(&o.page, "page", false, "measure nothing: render "+results.Page+" from "+results.Folder)
	flag.DurationVar(&o.budget, "budget", 0, "start no further group after this time (default: no limit)")
	flag.DurationVar(&o.limit, "limit", time.Minute, "kill a run that takes longer")
	flag.DurationVar(&o.settle, "settle", 15*time.Second, "wait as long as this for a quiet machine before each round")
	flag.StringVar(&o.statistic, "statistic", "value", "figure of a run: value (the mean, as OSU prints it), min, p50 or p99 (of its batches)")
	flag.StringVar(&o.protocol, "protocol", "", "what `muster bench` gets as --protocol in groups about long messages (default: as configured)")
	flag.StringVar(&o.before, "before", "", "compare with this earlier `muster` binary instead of the peers; results are not written")
	flag.Float64Var(&o.within, "within", 0.03, "with -before: how much worse a figure may be, as a fraction")
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

// measure measures the selected groups, writes a table for each and renders the page. A
// group that fails keeps its old table and does not stop the others.
func measure(ctx context.Context, o options) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	if o.page {
		return results.WritePage(root)
	}
	if o.quick {
		o.rounds = 2
	}
	if o.rounds < 1 || !slices.Contains([]string{"value", "min", "p50", "p99"}, o.statistic) {
		return fmt.Errorf("%d rounds of %q: want at least 1, of value, min, p50 or p99", o.rounds, o.statistic)
	}
	groups, err := selectGroups(o)
	if err != nil {
		return err
	}
	groups, needed, outcomes := possible(groups, o)
	bin, err := build(ctx, root, needed)
	if err != nil {
		return err
	}
	if o.before != "" { // the ranks may start in another folder
		if bin.before, err = filepath.Abs(o.before); err != nil {
			return err
		}
	}
	cpus, err := twoCPUs()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers: the cache-line hand-over is not measured:", err)
	}
	versions, shared, start := contenderVersions(ctx), outputs{}, time.Now()
	for i, g := range groups {
		if o.budget > 0 && time.Since(start) > o.budget {
			outcomes = append(outcomes, outcome{g.name, "skipped", fmt.Errorf("the budget of %s is used up", o.budget)})
			continue
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s, after %s\n", i+1, len(groups), g.name, time.Since(start).Round(time.Second))
		err := measureTable(ctx, g, o, cpus, bin, shared, versions, root)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			outcomes = append(outcomes, outcome{g.name, "failed", err})
			continue
		}
		outcomes = append(outcomes, outcome{g.name, "measured", nil})
	}
	if o.writes() {
		if err := results.WritePage(root); err != nil {
			return err
		}
	}
	return report(outcomes)
}

// writes reports whether tables are written.
func (o *options) writes() bool { return !o.peersOnly && !o.quick && o.before == "" }

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
		return fmt.Errorf("%d of %d tables failed; their old files are unchanged", failed, len(outcomes))
	}
	return nil
}

// measureTable measures a group and writes its table.
func measureTable(ctx context.Context, g *group, o options, cpus []int, bin binaries, shared outputs, versions map[contender]string, root string) error {
	s, err := measureGroup(ctx, g, o, cpus, bin, shared)
	if err != nil {
		return err
	}
	fmt.Println(s.text())
	if !o.writes() {
		return nil
	}
	if !s.measured() {
		return fmt.Errorf("no run of ours succeeded: %w", errors.Join(s.failures[muster]...))
	}
	t := s.table()
	if t.Stamp, err = results.NewStamp(ctx, root, commandLine(g.name, os.Args[1:]), g.versions(versions)); err != nil {
		return err
	}
	folder := filepath.Join(root, filepath.FromSlash(results.Folder))
	if err := t.Write(folder); err != nil {
		return err
	}
	return s.draw(folder)
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

// measureGroup creates the hosts of the group, if it has any, for as long as it runs.
func measureGroup(ctx context.Context, g *group, o options, cpus []int, bin binaries, shared outputs) (s summary, err error) {
	var at hostSet
	if g.over == hosts {
		l, err := lab.Up(lab.Config{Hosts: g.hosts, Rails: g.rails, Rate: g.rate, Loss: g.loss, Queue: g.queue, Prefix: "peers"})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, l.Down()) }()
		at = hostSet{hosts: l.Hosts(), rails: max(g.rails, 1), rsh: l.Rsh(), onHost: bin.onHost}
		if len(at.hosts) > 1 {
			at.second = l.Addr(at.hosts[1], 0)
		}
	}
	runs := newRuns(g, o)
	runs.shared = shared
	for round := range runs.rounds {
		if err := runs.round(ctx, round, cpus, bin, at); err != nil {
			return s, err
		}
	}
	return runs.summary(), nil
}

func selectGroups(o options) ([]*group, error) {
	var chosen []*group
	for _, g := range plan() {
		if !g.selected(o.only) || g.onRequest && o.only == "" {
			continue
		}
		if o.before != "" {
			g.compareWithBefore(o.within)
		}
		if o.peersOnly && len(g.peers) == 0 {
			if o.only == g.name {
				return nil, fmt.Errorf("group %q has no peers to measure: omit -peers-only", o.only)
			}
			continue
		}
		if protocol := cmp.Or(o.protocol, g.protocol); g.protocols && protocol != "" {
			g.ours += " --protocol " + protocol
			g.note += " Ours runs with --protocol " + protocol + "."
		}
		chosen = append(chosen, g)
	}
	for name := range strings.SplitSeq(o.only, ",") {
		if !slices.ContainsFunc(plan(), func(g *group) bool { return g.selected(name) }) {
			return nil, fmt.Errorf("no group %q; the groups are %s", name, strings.Join(groupNames(), ", "))
		}
	}
	return chosen, nil
}

// selected reports whether -only names the group or its family.
func (g *group) selected(only string) bool {
	if only == "" {
		return true
	}
	for name := range strings.SplitSeq(only, ",") {
		if results.Match(name, g.name) || strings.HasPrefix(g.name, name+"-") {
			return true
		}
	}
	return false
}

// compareWithBefore replaces the peers with an earlier build of ours.
func (g *group) compareWithBefore(within float64) {
	g.peers, g.beside, g.added = []contender{before}, false, false
	g.lines = slices.Clone(g.lines)
	for i := range g.lines {
		g.lines[i].peers = nil
		g.lines[i].bound = 1 + within
		if g.largerBetter {
			g.lines[i].bound = 1 - within
		}
	}
}

// moduleRoot returns the folder with go.mod, at or above the current one.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod at or above the current folder: start this inside the repository")
		}
		dir = up
	}
}
