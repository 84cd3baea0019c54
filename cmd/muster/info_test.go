//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestInfo(t *testing.T) {
	var out bytes.Buffer
	x, err := gatherInfo([]string{"HOME=/x", "MUSTER_CHANNEL=rd"})
	if err == nil {
		err = x.print(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`(?m)^version +\S`, `MUSTER_CHANNEL +rd +environment +hybrid`, `MUSTER_CHECK +off +default +off`, `MUSTER_SPIN +- +default +1000, 20 while`, `(?m)^shm +(yes|no; needs Linux)`, `(?m)^rc +yes`, `MUSTER_CREDIT +8388608 +default +8388608`, `(?m)^ofi +(yes|no; build with -tags ofi)`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output must match %q:\n%s", want, &out)
		}
	}
	if _, err := gatherInfo([]string{"MUSTER_CHANEL=rd"}); err == nil || !strings.Contains(err.Error(), "MUSTER_CHANNEL") {
		t.Errorf("a misspelt setting must be an error: %v", err)
	}
}

// TestJSONOfCommands checks that --json prints one document, and what is in it.
func TestJSONOfCommands(t *testing.T) {
	for _, c := range []struct{ args, key string }{
		{"version --json", "version"},
		{"info --json", "settings"},
		{"sched allreduce --algorithm ring -n 4 --text --json", "ranks"},
		{"sched allgather --algorithm node-bruck --nodes 4x4 --json", "nodes"},
		{"explain network --json", "network"},
	} {
		out, err := execute(strings.Fields(c.args)...)
		var document map[string]any
		if err == nil {
			err = json.Unmarshal(out, &document)
		}
		if err != nil || document[c.key] == nil {
			t.Errorf("muster %s: %v, want a document with %q:\n%s", c.args, err, c.key, out)
		}
	}
}

// TestJSONOfJobs checks --json of commands that start ranks.
func TestJSONOfJobs(t *testing.T) {
	for _, c := range []struct{ args, key string }{
		{"explain --json", "protocols"},
		{"explain allreduce -n 4 --size 64K --json", "choices"},
		{"explain bcast -n 4 --json", "shared_memory"},
	} {
		got := muster(t, t.TempDir(), strings.Fields(c.args)...)
		var document map[string]any
		if err := json.Unmarshal([]byte(got.out), &document); err != nil || document[c.key] == nil {
			t.Errorf("muster %s: %v, want a document with %q: %+v", c.args, err, c.key, got)
		}
	}
}

// execute runs a command in this process.
func execute(args ...string) ([]byte, error) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	err := root.Execute()
	return out.Bytes(), err
}

func TestHelpBeginsWithWhatIsLookedUp(t *testing.T) {
	out, err := execute("run", "--help")
	text := string(out)
	if err != nil {
		t.Fatal(err)
	}
	flags, examples, rest := strings.Index(text, "\nFlags:\n"), strings.Index(text, "\nExamples:\n"), strings.Index(text, "run starts PROG")
	if flags < 0 || flags > 300 || examples < flags || rest < examples {
		t.Errorf("flags at %d, examples at %d, the rest at %d:\n%.600s", flags, examples, rest, text)
	}
	if out, err = execute("bench", "--help"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nMessages\n", "\nCollectives\n", "\nReports of several benchmarks\n"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("bench --help has no group %q:\n%s", want, out)
		}
	}
	if bytes.Contains(out, []byte("Additional Commands")) {
		t.Errorf("a benchmark has no group:\n%s", out)
	}
	if out, err = execute("--help"); err != nil || !bytes.Contains(out, []byte("\n  completion ")) {
		t.Errorf("completion is not listed: %v\n%s", err, out)
	}
}
