// Command mpich runs the tests of MPICH's own suite on Muster's libmpich.so.12 (package cabi),
// and compares them with MPICH itself.
//
//	make test-mpich                                      what must pass: testdata/passes.txt
//	make test-mpich MPICH='-all -reference'              all tests, on both
//	make test-mpich MPICH='-all -update -only pt2pt/'    add what passes now
//
// The suite is in Debian's source package mpich. It is downloaded by apt and built once with
// mpicc.mpich, into a cache folder; the same programs then run on either library. A test
// passes by the rules of the suite: status 0, and "No Errors" and nothing else in the output,
// unless its line in the testlist asks for something else. Left out are tests that choose an
// algorithm of MPICH by an environment variable, those that are marked as beyond the standard,
// and the folders of functions that Muster does not have: files, processes started by MPI_Comm_spawn.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

type options struct {
	bin       string
	tree      string
	cache     string
	only      string
	passes    string
	out       string
	all       bool
	reference bool
	update    bool
	verbose   bool
	jobs      int
	every     int
	limit     time.Duration
	budget    time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder of muster, with libmpich.so.12 in its folder cabi")
	flag.StringVar(&o.tree, "tree", "", "folder test/mpi of an MPICH source tree that is built already")
	flag.StringVar(&o.cache, "cache", "", "folder for the suite (default: muster/mpich in the user's cache folder)")
	flag.BoolVar(&o.all, "all", false, "run all tests, not only those that must pass")
	flag.BoolVar(&o.reference, "reference", false, "run each test on the installed MPICH too, and compare")
	flag.BoolVar(&o.update, "update", false, "rewrite the list of tests that must pass, for the tests that were run; with -all")
	flag.BoolVar(&o.verbose, "v", false, "print the output of tests that fail")
	flag.StringVar(&o.only, "only", "", "run only tests whose line, such as \"pt2pt/sendrecv1 2\", matches this regular expression")
	flag.StringVar(&o.passes, "passes", "tests/mpich/testdata/passes.txt", "file with the tests that must pass")
	flag.StringVar(&o.out, "o", "", "write the report to this file too")
	flag.IntVar(&o.jobs, "jobs", 2, "tests that run at the same time")
	flag.IntVar(&o.every, "every", 1, "build and run only every nth program of each folder, for a short run")
	flag.DurationVar(&o.limit, "limit", 60*time.Second, "time limit of a test")
	flag.DurationVar(&o.budget, "budget", 0, "start no test after this time, which includes building the suite; 0: no limit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := o.run(ctx)
	if errors.Is(err, errUnavailable) {
		fmt.Println("skipped:", err)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mpich:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context) error {
	began := time.Now()
	if o.every < 1 {
		return fmt.Errorf("-every %d: use 1 or more", o.every)
	}
	if o.update && !o.all {
		return fmt.Errorf("-update needs -all: the list is made from all tests")
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	must, err := readPasses(o.passes)
	if err != nil {
		return err
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	wanted := func(id string) bool { return (o.all || slices.Contains(must, id)) && only.MatchString(id) }
	tests, missing, err := o.suite(ctx, wanted)
	if err != nil {
		return err
	}
	deadline := began.Add(o.budget)
	if o.budget == 0 {
		deadline = began.Add(1000 * time.Hour)
	}
	results := runAll(ctx, o, tests, deadline)
	text := report(o, results, must)
	fmt.Print(text)
	fmt.Printf("\nin %d s\n", int(time.Since(began).Seconds()))
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if o.update {
		return writePasses(o.passes, must, results)
	}
	if missing = slices.DeleteFunc(missing, func(id string) bool { return !slices.Contains(must, id) }); len(missing) > 0 {
		return fmt.Errorf("programs of %s do not build:\n  %s", o.passes, strings.Join(missing, "\n  "))
	}
	if lost := regressions(results, must); len(lost) > 0 {
		return fmt.Errorf("%d tests that must pass do not (%s)", len(lost), o.passes)
	}
	return ctx.Err()
}
