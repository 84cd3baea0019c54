package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestViolationIsReportedOnce runs a round whose job hangs: it is a violation at once, not
// after another attempt, and its seed is printed.
func TestViolationIsReportedOnce(t *testing.T) {
	s := soak{bin: t.TempDir()}
	job := filepath.Join(s.bin, "muster-soak")
	if err := os.WriteFile(job, []byte("#!/bin/sh\necho run >>"+s.bin+"/runs\nexit 124\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(s.bin, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := os.Stdout
	os.Stdout = out
	violations := s.loop(t.Context(), 7, time.Minute, 3, "", false)
	os.Stdout = stdout
	printed, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"VIOLATION, seed 7: the job hangs", "make soak SEED=7 ROUNDS=1"} {
		if !strings.Contains(string(printed), want) {
			t.Errorf("the output has no %q:\n%s", want, printed)
		}
	}
	if runs, err := os.ReadFile(filepath.Join(s.bin, "runs")); violations != 1 || err != nil || strings.Count(string(runs), "run") != 1 {
		t.Errorf("%d violations after the jobs %q (%v), want 1 after one job", violations, runs, err)
	}
}
