package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/advise"
	"github.com/muster-mpi/muster/internal/trace"
)

// TestAdvicePage writes the page of a trace with one finding: it has all pictures, and needs nothing
// from elsewhere.
func TestAdvicePage(t *testing.T) {
	tr := &trace.Trace{}
	for r := range 4 {
		k := &trace.Rank{Rank: r, Host: "h", Comms: []trace.Comm{{Name: "world"}}}
		for i := range int64(8) {
			begin := i * 1000
			if r == 2 {
				begin += 800
			}
			k.Events = append(k.Events, trace.Event{Label: &trace.Label{Name: "Allreduce", Kind: "collective", Site: "prog.go:7 (main.main)"}, Begin: begin, End: i*1000 + 900, Peer: trace.None, From: trace.None, By: -1})
		}
		k.Events = append(k.Events, trace.Event{Label: &trace.Label{Name: "Send", Kind: "send"}, Begin: 8000, End: 8100, Peer: int32(r+1) % 4, Bytes: 4096, Sends: true, From: trace.None, By: -1})
		k.Number()
		tr.Ranks = append(tr.Ranks, k)
	}
	file := filepath.Join(t.TempDir(), "advice.html")
	if err := writeAdvicePage(file, []string{"job.json"}, tr, advise.Find(tr)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	if n := strings.Count(page, "<svg "); n != 3 {
		t.Errorf("the page has %d pictures, not 3", n)
	}
	for _, want := range []string{"load imbalance", "prog.go:7", "finding 1: ", "from 2 to 3: ", "Advice for <code>job.json"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, other := range []string{"http", "<script", "<link", "@import"} {
		if strings.Contains(page, other) {
			t.Errorf("the page has %q: it must need nothing from elsewhere", other)
		}
	}
}
