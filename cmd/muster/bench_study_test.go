//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench/results"
)

func TestStudyLists(t *testing.T) {
	got := muster(t, t.TempDir(), "bench", "study")
	if got.status != 0 || strings.Count(got.out, "\n") != 7 || !strings.Contains(got.out, "speculation ") {
		t.Errorf("muster bench study does not list the studies: %+v", got)
	}
}

func TestStudyRejectsBadArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sleep"}, "they are speculation, reuse"},
		{[]string{"reuse", "--apps", "tetris"}, "it has lu, cg"},
		{[]string{"reuse", "--rounds", "0"}, "at least 1"},
	} {
		got := muster(t, t.TempDir(), append([]string{"bench", "study"}, c.args...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) {
			t.Errorf("muster bench study %q must be refused with %q; got %+v", c.args, c.want, got)
		}
	}
}

// TestStudyRuns runs a small study for real: an application of two ranks, three settings.
func TestStudyRuns(t *testing.T) {
	folder := t.TempDir()
	got := muster(t, folder, "bench", "study", "reuse", "--quick", "--apps", "mg", "--class", "S", "--ranks", "2", "--output", "out", "--plot", "reuse.svg")
	if got.status != 0 || !strings.Contains(got.out, "mg S, 2 ranks, run time (s), always over never") {
		t.Fatalf("the study ends with %+v", got)
	}
	tables, err := results.Load(filepath.Join(folder, "out"))
	if err != nil || tables["study-reuse"] == nil {
		t.Fatalf("the tables are %v, %v", tables, err)
	}
	table := tables["study-reuse"]
	if !strings.HasPrefix(table.Stamp.Command, "muster bench study reuse --quick") || len(table.Rows) != 10 {
		t.Errorf("the table is %+v", table)
	}
	for _, row := range table.Rows {
		if strings.Contains(row[0], " over ") && (row[1] == "-" || row[2] == "-" || row[3] == "-") {
			t.Errorf("the row has no figures: %q", row)
		}
	}
	if page, err := os.ReadFile(filepath.Join(folder, "out", "study-reuse.md")); err != nil || string(page) != table.Markdown() {
		t.Errorf("the table as Markdown is %q, %v", page, err)
	}
	for _, name := range []string{"reuse.svg", "out/study-reuse.svg"} {
		if svg, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !strings.HasPrefix(string(svg), "<svg") {
			t.Errorf("%s is %q, %v", name, svg, err)
		}
	}
}

// TestAppReportsCalls: --json has the time in each call and the counters of all ranks.
func TestAppReportsCalls(t *testing.T) {
	got := muster(t, t.TempDir(), "app", "is", "-n", "2", "--json")
	var r appReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.status != 0 {
		t.Fatalf("muster app is --json: %v, %+v", err, got)
	}
	if r.Name != "IS" || r.Class != "S" || r.Ranks != 2 || !r.Verified || r.Seconds <= 0 || r.InMPI <= 0 || r.CPU <= 0 {
		t.Errorf("the report is %+v", r)
	}
	alltoall := r.Calls["Alltoallv"]
	if alltoall.Kind != "collective" || alltoall.Calls < 2*10 || alltoall.Seconds <= 0 { // ten iterations on each rank
		t.Errorf("Alltoallv is %+v", alltoall)
	}
	if sent := r.Counters["messages.sent"]; sent.Max > sent.Sum {
		t.Errorf("messages sent are %+v", sent)
	}
}
