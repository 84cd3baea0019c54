//go:build !windows

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestStumbles repeats what people stumbled over who tried muster without having written it. Each
// row is one stumble: a command line, and a check of what it prints that fails if the stumble is back.
func TestStumbles(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bench := []string{self, "bench", "latency", "--sizes", "8", "--iterations", "100"}
	isJSON := func(o outcome) bool { return json.Valid([]byte(o.out)) }
	for _, s := range []struct {
		stumble string
		args    []string
		good    func(outcome) bool
	}{
		{"the help of run does not begin with its flags", []string{"run", "--help"}, func(o outcome) bool {
			flags, examples := strings.Index(o.out, "\nFlags:"), strings.Index(o.out, "\nExamples:")
			return 0 < flags && flags < 200 && examples > 0
		}},
		{"the help of bench is one long list", []string{"bench", "--help"}, func(o outcome) bool {
			return strings.Contains(o.out, "\nMessages\n") && strings.Contains(o.out, "\nReports of several benchmarks\n")
		}},
		{"completion is not listed", []string{"--help"}, func(o outcome) bool { return strings.Contains(o.out, "\n  completion ") }},
		{"version has no JSON", []string{"version", "--json"}, isJSON},
		{"info has no JSON", []string{"info", "--json"}, isJSON},
		{"explain has no JSON", []string{"explain", "allreduce", "-n", "4", "--json"}, isJSON},
		{"sched has no JSON", []string{"sched", "allgather", "-a", "bruck", "-n", "4", "--json"}, isJSON},
		{"the word after --profile is taken as the program", append([]string{"run", "-n", "2", "--profile", "arrivals"}, bench...), func(o outcome) bool { return o.status == 0 }},
		{"the profile is longer than a screen", append([]string{"run", "-n", "2", "--profile"}, bench...), func(o outcome) bool {
			return o.status == 0 && strings.Count(o.out+o.err, "\n") <= 40
		}},
		{"files of the output have other names than the guide says", append([]string{"run", "-n", "2", "--output", "files"}, bench...), func(o outcome) bool {
			_, err := os.Stat(filepath.Join(dir, "files", "rank-0.out"))
			return err == nil
		}},
		{"a trace cannot be written", append([]string{"run", "-n", "2", "--trace", "t.json"}, bench...), func(o outcome) bool { return o.status == 0 }},
		{"a trace has no JSON", []string{"trace", "t.json", "--json"}, isJSON},
		{"the picture of a trace has no axis of time", []string{"trace", "t.json", "--svg", "t.svg"}, func(o outcome) bool {
			picture, err := os.ReadFile(filepath.Join(dir, "t.svg"))
			return err == nil && strings.Contains(string(picture), "time since") && regexp.MustCompile(`>[0-9.]+(µs|ms|s)</text>`).Match(picture)
		}},
		{"output for files has colors", []string{"doctor"}, func(o outcome) bool { return !strings.Contains(o.out+o.err, "\x1b[") }},
		{"top without a job does not say how to start one", []string{"top", "127.0.0.1:1"}, func(o outcome) bool {
			return o.status != 0 && strings.Contains(o.err, "muster run --metrics")
		}},
	} {
		if o := muster(t, dir, s.args...); !s.good(o) {
			t.Errorf("%s:\nmuster %s\nstatus %d\n%s%s", s.stumble, strings.Join(s.args, " "), o.status, o.out, o.err)
		}
	}
}

// TestStumblesOfPages looks for those that are in pages.
func TestStumblesOfPages(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if results := read("docs/results.md"); !strings.Contains(results, "![") || strings.Index(results, "![") > strings.Index(results, "\n|") {
		t.Error("docs/results.md begins with tables instead of pictures")
	}
	if !regexp.MustCompile(`(?s)\n## Unreleased\n.*\n## [0-9.]+ - 20[0-9-]{8}\n`).MatchString(read("CHANGELOG.md")) {
		t.Error("CHANGELOG.md has no release with a date below Unreleased")
	}
	for _, way := range []string{"go install", "make build", "tar xzf", "apt install", "muster doctor", "muster completion", "muster man", "module use"} {
		if !strings.Contains(read("docs/guide/install.md"), way) {
			t.Errorf("docs/guide/install.md does not say %q", way)
		}
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "guide", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, page := range pages {
		text := read("docs/guide/" + filepath.Base(page))
		words += len(strings.Fields(text))
		if regexp.MustCompile(`--bind[ =]`).MatchString(text) {
			t.Errorf("%s has the flag --bind, which is --bind-to", page)
		}
	}
	if words > 25000 {
		t.Errorf("the guides have %d words, more than 25000", words)
	}
}

// TestSimIsNotSilent interrupts a simulation after its first row.
func TestSimIsNotSilent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "sim", "allreduce", "--ranks", "4K", "--nodes", "64")
	cmd.Env = append(os.Environ(), asMuster+"=1", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	row := regexp.MustCompile(`^ *[0-9]+[KMG]? +[a-z]+`)
	found := false
	for !found && lines.Scan() {
		found = row.MatchString(lines.Text())
	}
	// Two seconds on a quiet machine; a minute of silence is the stumble.
	if took := time.Since(began); !found || took > 20*time.Second {
		t.Errorf("the first row came after %v (found: %v)", took, found)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); ctx.Err() != nil {
		t.Errorf("the simulation goes on after an interrupt: %v", err)
	}
}
