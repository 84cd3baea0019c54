//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if got := job("fail", "--trace", "no.json"); got.status == 0 || !strings.Contains(got.err, "muster: no trace: the job has failed\n") {
		t.Errorf("a failed job must report that there is no trace: %+v", got)
	}
	if got := job("well", "--trace", "no.txt"); got.status == 0 || !strings.Contains(got.err, ".json") {
		t.Errorf("a bad file name must be refused: %+v", got)
	}
}
