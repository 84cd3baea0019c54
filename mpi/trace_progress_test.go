package mpi_test

import (
	"os"
	"path/filepath"
	"slices"
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
	active := int64(0)
	for _, p := range r.Phases {
		if p.Row == trace.RowProgress {
			active += int64(p.End - p.Begin)
		}
	}
	if active <= 0 {
		t.Error("the trace has no time in which the thread polls")
	}
	// A message that is complete between two calls was received by the thread. On a busy machine
	// the rank itself receives some, because the thread gets no core in time.
	alone := 0
	for _, m := range r.Phases {
		if m.Row != trace.RowProtocol || slices.ContainsFunc(r.Events, func(e trace.Event) bool { return e.Begin <= m.End && m.End <= e.End }) {
			continue
		}
		alone++
		if !slices.ContainsFunc(r.Phases, func(p trace.Phase) bool { return p.Row == trace.RowProgress && p.Begin <= m.End && m.End <= p.End }) {
			t.Errorf("nobody has received the message that was complete after %d ns: %+v", m.End, r.Phases)
		}
	}
	if alone < x.rounds/2 || alone > x.rounds {
		t.Errorf("the progress thread received %d messages between calls of rank 0, which computed during %d: %+v", alone, x.rounds, r.Phases)
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
