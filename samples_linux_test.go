package muster_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/lab"
)

// The commands of the guides, and their output, are those of this test. Each block that is not
// Go has one of these marks behind its three backquotes:
//
//	console                    the lines below a command are among those that it prints; without
//	                           such lines the command must succeed
//	console like               the same, but numbers, times and sizes may differ
//	console lab                as like, on the hosts of a lab: needs root
//	console cabi               as like, with the C library: make test-cabi runs them
//	... long                   one of these, run with -samples.long only
//	console unchecked: REASON  not run; also sh unchecked
//
// README.md and the pages with commands from installation to test are executed by
// readme_test.go; for them only the marks are checked here. A Go block that is a whole file
// is saved as main.go. A comment <!-- setup: COMMANDS --> is run by the shell, in which
// "build NAME [PACKAGE]" builds main.go, or a package of this tree, as ./NAME.
var (
	samplesBin  = flag.String("samples.bin", "", "run the samples of C programs, with the muster and the C library of this folder")
	samplesLong = flag.Bool("samples.long", false, "run also the samples that take long")
)

// labName is that of the lab of this test; the pages use the default, which may be in use.
// libraryFolder is where the pages have the C library.
const (
	labName       = "samples"
	libraryFolder = "/usr/local/lib/muster"
)

var (
	samplePattern = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```$|^<!-- setup:(.*?)-->$")
	hexNumber     = regexp.MustCompile(`\b(0x)?[0-9a-f]{12,16}\b`)
	aTime         = regexp.MustCompile(`[0-9][0-9.]* ?(ns|us|µs|ms|s|min)\b`)
	aSize         = regexp.MustCompile(`[0-9][0-9.]* ?[KMG]?B\b`)
	aNumber       = regexp.MustCompile(`<?[0-9]+( [0-9]{3}\b)*([.][0-9]+)*(e[+-]?[0-9]+)?`)
	anAlgorithm   = regexp.MustCompile(`\b(` + algorithmNames() + `)(:[a-z]+=[0-9]+)*( |$)`)
	knownMark     = regexp.MustCompile(`^(console( like| lab| cabi)?( long)?|(console|sh) unchecked: \S.{9,}|go)$`)
	testFolder    = regexp.MustCompile(`\btests/[a-z]+`)
	executedMark  = regexp.MustCompile(`^(console( lab)?|go)$`) // tests/hosts runs those of a lab
	histogramBar  = regexp.MustCompile(`% [#.]+`)
)

// algorithmNames is a pattern of the names of collective algorithms: which is the best one is
// measured.
func algorithmNames() string {
	var names []string
	for _, a := range coll.Algorithms() {
		names = append(names, regexp.QuoteMeta(a.Name))
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // the longest first
	return strings.Join(names, "|")
}

// shape is a line with numbers, times, sizes, bars, algorithms and distances replaced.
func shape(line string) string {
	line = anAlgorithm.ReplaceAllString(line, "ALGORITHM$3")
	line = hexNumber.ReplaceAllString(line, "0")
	line = aTime.ReplaceAllString(line, "TIME")
	line = aSize.ReplaceAllString(line, "SIZE")
	line = aNumber.ReplaceAllString(line, "0")
	line = histogramBar.ReplaceAllString(line, "%")
	return strings.Join(strings.Fields(line), " ")
}

func TestShape(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"Wait   1 600  1.14 s   <0.1 %  ####", "Wait   3  16.5 ms   31 %  ####", true},
		{"16 B to <32 B  1 605   49 % ##########   37.6 KB", "16 B to <32 B  5   <0.1 % .   3 B", true},
		{"id=muster-23319-e4bc6e9844ac", "id=muster-7-7c24f2bdffd7", true},
		{"error 3.0e-05", "error 0", true},
		{"bcast  8  knomial:radix=3  0.47  chain:segment=8192  0.5", "bcast  8  binomial  1  ring  2", true},
		{"rank 0 waits in Recv", "rank 0 waits in Send", false},
	} {
		if (shape(c.a) == shape(c.b)) != c.same {
			t.Errorf("%q and %q have the shapes %q and %q", c.a, c.b, shape(c.a), shape(c.b))
		}
	}
}

// sample is a block of a page, or the commands of a setup comment.
type sample struct {
	info, text string
	setup      bool
}

func samplesOf(text string) (list []sample) {
	for _, m := range samplePattern.FindAllStringSubmatch(text, -1) {
		list = append(list, sample{m[1], m[2] + m[3], m[3] != ""})
	}
	return list
}

// is reports whether a word is among the marks of a block.
func (s sample) is(mark string) bool { return slices.Contains(strings.Fields(s.info), mark) }

func guides(t *testing.T) []string {
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no guides: %v", err)
	}
	return append(pages, "README.md")
}

// TestSamplesAreMarked checks that each block of a guide is run, or has the reason why not.
func TestSamplesAreMarked(t *testing.T) {
	for _, page := range guides(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		known := knownMark
		if slices.Contains(executedPages, page) {
			known = executedMark
		}
		for _, s := range samplesOf(string(text)) {
			if s.setup || s.info == "go" {
				continue
			}
			if !known.MatchString(s.info) {
				t.Errorf("%s: this block is marked %q, which must match %v; samples_linux_test.go describes the marks:\n%s", page, s.info, known, s.text)
			}
			for _, folder := range testFolder.FindAllString(s.info, -1) {
				if _, err := os.Stat(folder); err != nil {
					t.Errorf("%s: %q: %v", page, s.info, err)
				}
			}
			if s.is("console") && !s.is("unchecked:") && len(commandsOf(s.text)) == 0 {
				t.Errorf("%s: this block has no command; write $ before it, and # before what explains it:\n%s", page, s.text)
			}
		}
	}
}

func TestSamplesOfGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("builds muster")
	}
	tree, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bin := *samplesBin
	if program := os.Getenv("TEST_MUSTER"); bin == "" && program != "" {
		bin = filepath.Dir(program) // make test has built it
	} else if bin == "" {
		bin = t.TempDir()
		if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "muster"), "./cmd/muster").CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	noLab := lab.Usable()
	for _, page := range guides(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(executedPages, page) || !strings.Contains(string(text), "```console") {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			r := &sampleRun{tree: tree, bin: bin, dir: t.TempDir()}
			if noLab == nil && strings.Contains(string(text), "```console lab") {
				down := func() { _ = exec.Command(filepath.Join(bin, "muster"), "lab", "down", "--name", labName).Run() } // it may be down
				down()                                                                                                    // a test that was killed may have left it
				t.Cleanup(down)
			}
			for _, s := range samplesOf(string(text)) {
				r.page(t, s, noLab)
			}
		})
	}
}

// sampleRun executes the samples of a page.
type sampleRun struct{ tree, bin, dir string }

func (r *sampleRun) page(t *testing.T, s sample, noLab error) {
	switch {
	case s.setup && noLab != nil && strings.Contains(s.text, "muster lab"), s.setup && *samplesBin == "" && strings.Contains(s.text, "main.c"):
		return
	case s.setup:
		if out, err := r.execute(t, s.text, setupLimit, nil); err != nil {
			t.Fatalf("setup: %s\n%v\n%s", s.text, err, out)
		}
		return
	case s.info == "go" && strings.HasPrefix(s.text, "package main\n"):
		if err := os.WriteFile(filepath.Join(r.dir, "main.go"), []byte(s.text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	case !s.is("console") || s.is("unchecked:") || s.is("long") && !*samplesLong:
		return
	case s.is("cabi") && *samplesBin == "":
		t.Logf("not run, because make test-cabi does:\n%s", s.text)
		return
	case s.is("lab") && noLab != nil:
		t.Logf("not run, because %v:\n%s", noLab, s.text)
		return
	}
	for _, c := range commandsOf(s.text) {
		want := func(line string) string { return strings.TrimRight(line, " ") }
		if s.is("like") || s.is("lab") || s.is("cabi") {
			want = shape
		}
		missing := func(out string) (lines []string) {
			printed := map[string]bool{}
			for line := range strings.Lines(out) {
				printed[want(strings.TrimSuffix(line, "\n"))] = true
			}
			return slices.DeleteFunc(slices.Clone(c.output), func(line string) bool { return printed[want(line)] })
		}
		var enough func(string) bool
		if len(c.output) > 0 {
			enough = func(out string) bool { return len(missing(out)) == 0 }
		}
		out, err := r.execute(t, c.line, sampleLimit, enough)
		if len(c.output) == 0 && err != nil {
			t.Errorf("$ %s\nfails: %v\n%s", c.line, err, out)
		}
		if lines := missing(out); len(lines) > 0 {
			t.Errorf("$ %s\ndoes not print\n%s\nbut (%v)\n%s", c.line, strings.Join(lines, "\n"), err, out)
		}
	}
}

const (
	sampleLimit = time.Minute     // for one command
	setupLimit  = 5 * time.Minute // for a setup, which compiles
	sampleStay  = 2 * time.Second
)

// execute runs commands until they end, at most for a time, or for sampleStay after enough is true:
// some samples are of jobs that hang. It returns what they have printed.
func (r *sampleRun) execute(t *testing.T, commands string, most time.Duration, enough func(string) bool) (string, error) {
	t.Helper()
	// chaos makes a lab of its own; hosts a and b of a page are those of the lab.
	commands = strings.NewReplacer("muster lab chaos ", "muster lab chaos ", "muster lab ", "muster lab --name "+labName+" ", "--lab ", "--lab="+labName+" ",
		"--hosts a,b ", "--lab="+labName+" ", "--hosts a:4,b:4 ", "--lab="+labName+" -n 8 ", "--hostfile hosts ", "--lab="+labName+" ", "localhost:9100", "localhost:0", "muster-lab-", "muster-"+labName+"-", libraryFolder, filepath.Join(r.bin, "cabi")).Replace(commands)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `set -e
build() { go build -C "$TREE" -o "$PWD/$1" "${2:-$PWD/main.go}"; }
`+commands)
	cmd.Dir = r.dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "MUSTER_") && !strings.HasPrefix(kv, "PMI") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "TREE="+r.tree, "PATH="+r.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
	var out syncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a job that hangs is ended with the shell
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	end := func(why error) (string, error) {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			_ = syscall.Kill(-cmd.Process.Pid, sig) // it may have ended
			select {
			case <-ended:
				return r.normal(out.String()), why
			case <-time.After(10 * time.Second):
			}
		}
		return r.normal(out.String()), errors.Join(why, errors.New("it cannot be killed"))
	}
	limit := time.After(most)
	var stay <-chan time.Time
	for {
		select {
		case err := <-ended:
			return r.normal(out.String()), err
		case <-limit:
			return end(fmt.Errorf("it has not ended after %v", most))
		case <-stay:
			return end(errors.New("ended by the test"))
		case <-time.After(100 * time.Millisecond):
			if stay == nil && enough != nil && enough(r.normal(out.String())) {
				stay = time.After(sampleStay)
			}
		}
	}
}

// normal replaces the names of this host and of the lab by those of the pages.
func (r *sampleRun) normal(out string) string {
	host, _ := os.Hostname()
	out = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(out, "host")
	return strings.NewReplacer(filepath.Join(r.bin, "cabi"), libraryFolder, "muster-"+labName+"-", "muster-lab-", "lab "+labName, "lab lab", " --name "+labName, "", "--lab="+labName, "--lab").Replace(out)
}

// syncBuffer is a buffer that can be read while a command writes to it.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
