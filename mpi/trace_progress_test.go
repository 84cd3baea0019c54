package mpi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/mpi"
)

// TestTraceShowsTheProgressThread checks that the thread has a row of its own, and is in it
// while the rank makes no call.
func TestTraceShowsTheProgressThread(t *testing.T) {
	x := newExchanges(t)
	file := filepath.Join(t.TempDir(), "out.json")
	profiled(t, 2, &mpi.Config{Trace: file, Progress: "async"}, nil, x.run)
	tr := readTrace(t, file)
	r := tr.Ranks[0]
	alone, active := 0, int64(0)
	for _, p := range r.Phases {
		if p.Row != trace.RowProgress {
			continue
		}
		active += int64(p.End - p.Begin)
		for i := range r.Events[1:] { // the thread polls between two calls
			if p.Begin < r.Events[i+1].Begin && p.End > r.Events[i].End {
				alone++
				break
			}
		}
	}
	if active <= 0 {
		t.Error("the trace has no time in which the thread polls")
	}
	if alone < x.rounds {
		t.Errorf("the progress thread received %d messages between calls of rank 0; the trace has it %d times there: %+v", x.rounds, alone, r.Phases)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := trace.Check(text); err != nil {
		t.Errorf("not in the Trace Event Format: %+v, %v", c, err)
	}
	if !strings.Contains(string(text), `"name":"thread_name","args":{"name":"progress thread"}`) {
		t.Error("the thread has no row")
	}
	if summary := tr.Analyze().Report(tr).Text(); !strings.Contains(summary, "progress thread: ") {
		t.Errorf("the summary lacks the time of the thread:\n%s", summary)
	}
}
