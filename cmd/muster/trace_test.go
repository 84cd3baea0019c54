//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/trace"
)

// TestRunTrace traces a job of three ranks and summarises the trace.
func TestRunTrace(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	job := func(how string, flags ...string) outcome {
		return muster(t, dir, append(append([]string{"run", "-n", "3", "--env", asRank + "=" + how}, flags...), self)...)
	}
	for _, file := range []string{"out.json", "out.json.gz"} {
		if got := job("well", "--trace", file); got.status != 0 || !strings.Contains(got.err, "muster: the trace is in "+file) {
			t.Fatalf("the job should write a trace: %+v", got)
		}
		got := muster(t, dir, "trace", file, "--svg", "out.svg")
		for _, part := range []string{"trace: 3 ranks on 1 host(s)", " 12 calls, 6 messages\n", "messages matched: 100.0 % (0 without the other end)\n", "Critical path"} {
			if !strings.Contains(got.out, part) {
				t.Errorf("the summary of %s lacks %q: %+v", file, part, got)
			}
		}
		if svg, err := os.ReadFile(filepath.Join(dir, "out.svg")); err != nil || !strings.HasPrefix(string(svg), "<svg ") {
			t.Errorf("the picture: %v, %.40s", err, svg)
		}
	}
	got := muster(t, dir, "trace", "out.json", "--path", "--from", "1ns", "--svg", "part.svg")
	if svg, err := os.ReadFile(filepath.Join(dir, "part.svg")); err != nil || !strings.Contains(string(svg), "of which from") || !strings.Contains(got.out, "step by step") {
		t.Errorf("a part of the time: %v, %+v", err, got)
	}
	if got := muster(t, dir, "trace", "out.json", "--from", "1h"); got.status == 0 || !strings.Contains(got.err, "nothing is between") {
		t.Errorf("a part without calls must be refused: %+v", got)
	}
	var report trace.Report
	if got := muster(t, dir, "trace", "out.json", "--json"); json.Unmarshal([]byte(got.out), &report) != nil || report.Ranks != 3 || report.Messages != 6 || len(report.Path) == 0 {
		t.Errorf("--json: %+v, %+v", report, got)
	}
	if got := job("fail", "--trace", "no.json"); got.status == 0 || !strings.Contains(got.err, "muster: no trace: the job has failed\n") {
		t.Errorf("a failed job must report that there is no trace: %+v", got)
	}
	if got := job("well", "--trace", "no.txt"); got.status == 0 || !strings.Contains(got.err, ".json") {
		t.Errorf("a bad file name must be refused: %+v", got)
	}
}

// TestTraceOnHosts traces a job on two hosts, and lets the launcher fetch the file. Where
// the kernel permits it, the clock of the second host is 1000 s ahead.
func TestTraceOnHosts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ahead, script := 0, ""
	if exec.Command("unshare", "-T", "-f", "--monotonic", "1000", "true").Run() == nil {
		ahead, script = 1000, `if test "$1" = late; then shift; exec unshare -T -f --monotonic 1000 "$@"; fi`+"\n"
	}
	rsh := filepath.Join(dir, "rsh")
	if err := os.WriteFile(rsh, []byte("#!/bin/sh\n"+script+"shift\n"+`exec "$@"`+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := muster(t, dir, "run", "--hosts", "first:1,late:2", "--rsh", rsh+" {host}", "--env", asRank+"=well", "--trace", "out.json", self)
	if got.status != 0 || !strings.Contains(got.err, "muster: the trace is in out.json") {
		t.Fatalf("the launcher should fetch the trace: %+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := trace.Check(text)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Read(text)
	if err != nil || len(tr.Ranks) != 3 {
		t.Fatalf("3 ranks should be in the trace: %v", err)
	}
	last := tr.Ranks[2]
	if wrong := last.Offset + int64(ahead)*1e9; max(wrong, -wrong) > last.Error || (last.Error > 0) != (ahead > 0) {
		t.Errorf("the clock of rank 2 is %d s ahead; the trace corrects it by %d ns with an error of at most %d ns", ahead, last.Offset, last.Error)
	}
	if c.Flows != 6 || c.Open != 0 || c.Most > last.Error {
		t.Errorf("want 6 flows with both ends, and none backward by more than %d ns: %+v", last.Error, *c)
	}
	if left, _ := filepath.Glob(filepath.Join(temporary, "muster-fetch-*")); len(left) != 0 {
		t.Errorf("the agent has left %v", left)
	}
	if got := muster(t, dir, "run", "--hosts", "first:1,late:1", "--rsh", rsh+" {host}", "--env", asRank+"=well", "--trace", "no/such.json", self); got.status == 0 || !strings.Contains(got.err, "--trace=no/such.json") {
		t.Errorf("a file that cannot be written must be refused: %+v", got)
	}
}
