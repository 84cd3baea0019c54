package judge

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

// ofOpenMPI ends the names of suites that are built for Open MPI.
const ofOpenMPI = "-openmpi"

// ErrUnavailable is the reason to skip all tests: a machine without a package archive runs the rest.
var ErrUnavailable = errors.New("not available")

// Suite is the tests of a command.
type Suite struct {
	Name   string
	Passes string // the file with the tests that must pass
	// OpenMPI, if set, says after the flags are parsed that the programs are built for Open MPI. The
	// file of passes is then that with -openmpi in its name.
	OpenMPI *bool
	// Tests returns the wanted tests, whose programs are built if necessary, and the names of those
	// whose programs do not build. Cache is a folder to keep.
	Tests func(ctx context.Context, cache string, wanted func(id string) bool) (tests []*Test, missing []string, err error)
}

// Test is a program with its arguments.
type Test struct {
	ID      string // the folder and the line by which lists name it
	Dir     string // working folder
	Program string
	Args    []string
	Env     []string
	Ranks   int
	Limit   time.Duration // 0: none of its own
	// Passed reports whether the test passes by the rules of its authors, and if not, why.
	Passed func(status int, timeout bool, out string) (ok bool, why string)
}

// top returns the first part of the ID: the folder.
func (t *Test) top() string {
	top, _, _ := strings.Cut(t.ID, "/")
	return top
}

type options struct {
	bin       string
	cache     string
	only      string
	passes    string
	out       string
	record    string
	page      string
	note      string
	all       bool
	reference bool
	update    bool
	verbose   bool
	openmpi   bool
	jobs      int
	limit     time.Duration
	budget    time.Duration
}

// Main parses the flags of the command, besides those that the caller has defined, and runs the tests.
func Main(s Suite) {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder of muster, with libmpich.so.12 in its folder cabi")
	flag.StringVar(&o.cache, "cache", "", "folder for the programs (default: muster/"+s.Name+" in the user's cache folder)")
	flag.BoolVar(&o.all, "all", false, "run all tests, not only those that must pass")
	flag.BoolVar(&o.reference, "reference", false, "run each test on the installed MPICH or Open MPI too, and compare")
	flag.BoolVar(&o.update, "update", false, "rewrite the list of tests that must pass, for the tests that were run; with -all")
	flag.BoolVar(&o.verbose, "v", false, "print the output of tests that fail")
	flag.StringVar(&o.only, "only", "", "run only tests whose line, such as \"pt2pt/sendrecv1 2\", matches this regular expression")
	flag.StringVar(&o.passes, "passes", s.Passes, "file with the tests that must pass")
	flag.StringVar(&o.out, "o", "", "write the report to this file too")
	flag.StringVar(&o.record, "record", "", "add the outcomes to this file; with -reference, run only tests without an outcome of MPICH in it")
	flag.StringVar(&o.page, "page", "", "run nothing: write this page of results from the file of -record")
	flag.StringVar(&o.note, "note", "", "with -page: how the outcomes of the record were obtained, if not all by one run")
	flag.IntVar(&o.jobs, "jobs", 2, "tests that run at the same time")
	flag.DurationVar(&o.limit, "limit", 60*time.Second, "time limit of a test")
	flag.DurationVar(&o.budget, "budget", 0, "start no test after this time, which includes building the programs; 0: no limit")
	flag.Parse()
	if s.OpenMPI != nil && *s.OpenMPI {
		o.openmpi = true
		s.Name += ofOpenMPI
		if o.passes == s.Passes {
			o.passes = strings.Replace(s.Passes, ".txt", "-openmpi.txt", 1)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := o.run(ctx, s)
	if errors.Is(err, ErrUnavailable) {
		fmt.Println("skipped:", err)
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, s Suite) error {
	began := time.Now()
	if o.update && !o.all {
		return fmt.Errorf("-update needs -all: the list is made from all tests")
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	known, err := readRecord(o.record)
	if err != nil {
		return err
	}
	must, err := readPasses(o.passes)
	if err != nil {
		return err
	}
	if o.page != "" {
		return writePage(o.page, s.Name, o.note, known, must)
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	if o.cache == "" {
		if o.cache, err = Folder(s.Name); err != nil {
			return err
		}
	}
	wanted := func(id string) bool {
		done := o.reference && known[id][onMPICH] != ""
		return !done && (o.all || slices.Contains(must, id)) && only.MatchString(id)
	}
	tests, missing, err := s.Tests(ctx, o.cache, wanted)
	if err != nil {
		return err
	}
	deadline := began.Add(o.budget)
	if o.budget == 0 {
		deadline = began.Add(1000 * time.Hour)
	}
	results := runAll(ctx, o, tests, deadline)
	if o.record != "" && ctx.Err() == nil {
		known.add(o, results)
		if err := known.write(o.record); err != nil {
			return err
		}
	}
	text := report(o, results, must)
	fmt.Print(text)
	fmt.Printf("\nin %d s\n", int(time.Since(began).Seconds()))
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if o.update {
		return writePasses(o.passes, s.Name, must, results)
	}
	if missing = slices.DeleteFunc(missing, func(id string) bool { return !slices.Contains(must, id) }); len(missing) > 0 {
		return fmt.Errorf("programs of %s do not build:\n  %s", o.passes, strings.Join(missing, "\n  "))
	}
	if lost := regressions(results, must); len(lost) > 0 {
		return fmt.Errorf("%d tests that must pass do not (%s)", len(lost), o.passes)
	}
	return ctx.Err()
}

// Folder returns a folder for the files of a command.
func Folder(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; use -cache", err)
	}
	return filepath.Join(dir, "muster", name), nil
}
