// Command peers measures Muster against Open MPI and MPICH on this machine and
// writes what it finds into docs/results.md. `make bench-peers` starts it.
//
// It builds loops/peers.c with the compiler wrapper of each library, and the
// muster command. Then, for each group of figures and for at least five rounds,
// it waits for a quiet machine, measures how long a cache line takes from one
// core to the other, and runs every contender once, beginning with another one
// each time. Figures of one round are compared with each other only: the machine
// may have changed by the next. Every run is bounded in time; one that hangs is
// killed and counted.
//
// The files: plan.go says what is measured, how it is started and what it must
// show; quiet.go and hop.go look at the machine; run.go runs one command;
// summary.go makes medians and ratios; report.go prints them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	only      string        // one group, or all if empty
	rounds    int           // of each group
	quick     bool          // two rounds, and no results written: to see that everything runs
	peersOnly bool          // without Muster, and no results written
	limit     time.Duration // for one run
	settle    time.Duration // for the machine to become quiet before a round
	statistic string        // which figure of a run is compared
	results   string        // the file to write, relative to the module
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "measure this group only: "+strings.Join(groupNames(), ", "))
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each group; fewer than 5 prove nothing")
	flag.BoolVar(&o.quick, "quick", false, "two rounds, to see that everything runs; results are not written")
	flag.BoolVar(&o.peersOnly, "peers-only", false, "leave Muster out; results are not written")
	flag.DurationVar(&o.limit, "limit", time.Minute, "kill a run that takes longer")
	flag.DurationVar(&o.settle, "settle", 15*time.Second, "wait as long as this for a quiet machine before each round")
	flag.StringVar(&o.statistic, "statistic", "value", "figure of a run: value (the mean, as OSU prints it), min, p50 or p99 (of its batches)")
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
	bin, err := build(ctx, root, o)
	if err != nil {
		return err
	}
	cpus, err := twoCPUs()
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers: the cache-line hand-over is not measured:", err)
	}
	versions := peerVersions(ctx)
	for _, g := range groups {
		runs := newRuns(g, o)
		for round := range o.rounds {
			if err := runs.round(ctx, round, cpus, bin); err != nil {
				return err
			}
		}
		s := runs.summary(versions)
		fmt.Println(s.text())
		if o.peersOnly || o.quick {
			continue
		}
		if err := writeSection(filepath.Join(root, o.results), g.name, s.markdown()); err != nil {
			return err
		}
	}
	return nil
}

func selectGroups(o options) ([]*group, error) {
	var chosen []*group
	for _, g := range plan() {
		if o.only != "" && g.name != o.only {
			continue
		}
		if o.peersOnly && len(g.peers) == 0 {
			if o.only != "" {
				return nil, fmt.Errorf("the group %q has no peers to measure: leave out --peers-only", o.only)
			}
			continue
		}
		chosen = append(chosen, g)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("there is no group %q; there are %s", o.only, strings.Join(groupNames(), ", "))
	}
	return chosen, nil
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

// binaries are the programs that were built.
type binaries struct{ openMPI, mpich, muster string }

func build(ctx context.Context, root string, o options) (binaries, error) {
	here := filepath.Join(root, "bench", "peers")
	bin := binaries{
		openMPI: filepath.Join(here, "bin", "peers-openmpi"),
		mpich:   filepath.Join(here, "bin", "peers-mpich"),
		muster:  filepath.Join(root, "bin", "muster"),
	}
	if err := os.MkdirAll(filepath.Join(here, "bin"), 0o755); err != nil {
		return bin, err
	}
	for _, c := range []struct{ compiler, out string }{{"mpicc.openmpi", bin.openMPI}, {"mpicc.mpich", bin.mpich}} {
		if _, err := exec.LookPath(c.compiler); err != nil {
			return bin, fmt.Errorf("%s is not installed; on Debian: apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev", c.compiler)
		}
		// The last flag: gcc takes MPICH's MPI_STATUSES_IGNORE for an array.
		err := command(ctx, root, c.compiler, "-O2", "-Wall", "-Wextra", "-Wno-stringop-overflow", "-o", c.out, filepath.Join(here, "loops", "peers.c"), "-lpthread")
		if err != nil {
			return bin, err
		}
	}
	if o.peersOnly {
		return bin, nil
	}
	return bin, command(ctx, root, "go", "build", "-o", bin.muster, "./cmd/muster")
}

func command(ctx context.Context, dir, name string, args ...string) error {
	fmt.Fprintln(os.Stderr, "building with", name)
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

var versionNumber = regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?`)

// peerVersions is for the head of the report; a library that does not tell is
// named without a number.
func peerVersions(ctx context.Context) string {
	of := func(name, program string) string {
		out, err := exec.CommandContext(ctx, program, "--version").Output()
		if err != nil {
			return name
		}
		return strings.TrimSpace(name + " " + versionNumber.FindString(string(out)))
	}
	return of("Open MPI", "mpirun.openmpi") + ", " + of("MPICH", "mpiexec.hydra")
}
