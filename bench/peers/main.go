// Command peers measures Muster against Open MPI, MPICH and libfabric driven
// bare on this machine and writes what it finds into docs/results.md. `make
// bench-peers` starts it.
//
// It builds loops/peers.c with the compiler wrapper of each library,
// loops/ofi_bare.c, and the muster command without and with libfabric. A group
// that needs something this machine has not is skipped, and why is said. Then, for each group of figures and for at least five rounds,
// it waits for a quiet machine, measures how long a cache line takes from one
// core to the other, and runs every contender once, beginning with another one
// each time. Figures of one round are compared with each other only: the machine
// may have changed by the next. Every run is bounded in time; one that hangs is
// killed and counted.
//
// The files: plan.go and the other plan_*.go say what is measured and what it must show; build.go makes
// the programs and command.go their commands; quiet.go and hop.go look at the
// machine; run.go runs one command; summary.go makes medians and ratios;
// report.go prints them, picture.go draws them.
package main

import (
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

	"github.com/muster-mpi/muster/internal/lab"
)

// options are the command line.
type options struct {
	only      string        // groups, separated by commas, or all if empty
	rounds    int           // of each group
	quick     bool          // two rounds, and no results written: to see that everything runs
	peersOnly bool          // without Muster, and no results written
	limit     time.Duration // for one run
	settle    time.Duration // for the machine to become quiet before a round
	statistic string        // which figure of a run is compared
	protocol  string        // of ours, in groups about long messages; as configured if empty
	before    string        // an earlier muster binary that takes the place of the peers
	within    float64       // how much worse than before a figure may be, as a fraction
	results   string        // the file to write, relative to the module
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "measure these groups only, separated by commas, or those whose names begin so and go on after a dash: "+strings.Join(groupNames(), ", "))
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each group; fewer than 5 prove nothing")
	flag.BoolVar(&o.quick, "quick", false, "two rounds, to see that everything runs; results are not written")
	flag.BoolVar(&o.peersOnly, "peers-only", false, "leave Muster out; results are not written")
	flag.DurationVar(&o.limit, "limit", time.Minute, "kill a run that takes longer")
	flag.DurationVar(&o.settle, "settle", 15*time.Second, "wait as long as this for a quiet machine before each round")
	flag.StringVar(&o.statistic, "statistic", "value", "figure of a run: value (the mean, as OSU prints it), min, p50 or p99 (of its batches)")
	flag.StringVar(&o.protocol, "protocol", "", "what `muster bench` gets as --protocol in groups about long messages (default: as configured)")
	flag.StringVar(&o.before, "before", "", "compare with this earlier `muster` binary instead of the peers; results are not written")
	flag.Float64Var(&o.within, "within", 0.03, "with -before: how much worse a figure may be, as a fraction")
	flag.StringVar(&o.results, "results", "docs/results.md", "file whose sections are rewritten, relative to the module")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, o options) error {
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
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	groups, needed := possible(groups, o)
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
	versions := contenderVersions(ctx)
	for _, g := range groups {
		s, err := measureGroup(ctx, g, o, cpus, bin)
		if err != nil {
			return err
		}
		s.versions = g.versions(versions)
		fmt.Println(s.text())
		if o.peersOnly || o.quick || o.before != "" {
			continue
		}
		if err := writeSection(filepath.Join(root, o.results), g.name, s.markdown()); err != nil {
			return err
		}
		if err := s.draw(root); err != nil {
			return err
		}
	}
	return nil
}

// measureGroup makes the hosts that the group wants, for as long as it runs.
func measureGroup(ctx context.Context, g *group, o options, cpus []int, bin binaries) (s summary, err error) {
	var at place
	if g.over == hosts {
		l, err := lab.Up(lab.Config{Hosts: g.hosts, Rails: g.rails, Rate: g.rate, Prefix: "peers"})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, l.Down()) }()
		at = place{hosts: l.Hosts(), rails: max(g.rails, 1), rsh: l.Rsh(), onHost: bin.onHost}
	}
	runs := newRuns(g, o)
	for round := range o.rounds {
		if err := runs.round(ctx, round, cpus, bin, at); err != nil {
			return s, err
		}
	}
	return runs.summary(), nil
}

func selectGroups(o options) ([]*group, error) {
	var chosen []*group
	for _, g := range plan() {
		if !g.selected(o.only) {
			continue
		}
		if o.before != "" {
			g.compareWithBefore(o.within)
		}
		if o.peersOnly && len(g.peers) == 0 {
			if o.only == g.name {
				return nil, fmt.Errorf("the group %q has no peers to measure: leave out --peers-only", o.only)
			}
			continue
		}
		if g.protocols && o.protocol != "" {
			g.ours += " --protocol " + o.protocol
			g.note += " Ours runs with --protocol " + o.protocol + "."
		}
		chosen = append(chosen, g)
	}
	for name := range strings.SplitSeq(o.only, ",") {
		if !slices.ContainsFunc(plan(), func(g *group) bool { return g.selected(name) }) {
			return nil, fmt.Errorf("there is no group %q; there are %s", name, strings.Join(groupNames(), ", "))
		}
	}
	return chosen, nil
}

// selected reports whether -only asks for the group by name or by family.
func (g *group) selected(only string) bool {
	if only == "" {
		return true
	}
	for name := range strings.SplitSeq(only, ",") {
		if g.name == name || strings.HasPrefix(g.name, name+"-") {
			return true
		}
	}
	return false
}

// compareWithBefore replaces the peers by an earlier build of ours.
func (g *group) compareWithBefore(within float64) {
	g.peers, g.beside = []contender{before}, false
	g.lines = slices.Clone(g.lines)
	for i := range g.lines {
		g.lines[i].bound = 1 + within
		if g.largerBetter {
			g.lines[i].bound = 1 - within
		}
	}
}

// moduleRoot is the folder with go.mod, at or above the current one.
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
