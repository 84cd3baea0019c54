package launch

import (
	"context"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/pmi"
)

// TestHostOfReplacement checks where a process starts in place of a failed rank: on its host or, if
// that was lost, on the one with the fewest replacements.
func TestHostOfReplacement(t *testing.T) {
	cfg := &Config{Hosts: []Host{{Name: "a"}, {Name: "b"}, {Name: "c"}}, layout: layout{host: []int{0, 0, 1, 2}}}
	k := &replacements{most: 2, first: &job{cfg: cfg}}
	check := func(of pmi.RankRef, want string) {
		t.Helper()
		if got, err := k.hostForLocked(of); got != want || (err != nil) != (want == "") {
			t.Errorf("the replacement of %v starts on %q (%v), want %q", of, got, err, want)
		}
	}
	check(pmi.RankRef{Rank: 1}, "a")
	check(pmi.RankRef{Rank: 3}, "c")
	k.loseHost("a")
	check(pmi.RankRef{Rank: 1}, "b")
	k.jobs = []*replacement{{name: "x", host: "b"}}
	check(pmi.RankRef{Rank: 0}, "c")
	check(pmi.RankRef{Job: "x"}, "b")
	k.loseHost("b")
	check(pmi.RankRef{Job: "x"}, "c")
	k.loseHost("c")
	check(pmi.RankRef{Rank: 3}, "")
}

// TestReplacementsAreBounded checks what a launcher refuses.
func TestReplacementsAreBounded(t *testing.T) {
	k := &replacements{most: 1, first: &job{cfg: &Config{}}}
	if err := k.replace(&pmi.ReplaceRequest{Name: "x"}); err == nil || !strings.Contains(err.Error(), "being ended") {
		t.Errorf("before the job has begun: %v", err)
	}
	k.ctx = context.Background()
	k.jobs = []*replacement{{name: "x"}}
	if err := k.replace(&pmi.ReplaceRequest{Name: "y"}); err == nil || !strings.Contains(err.Error(), "--respawn") {
		t.Errorf("one more than the flag allows: %v", err)
	}
	k.most = 2
	if err := k.replace(&pmi.ReplaceRequest{Name: "x"}); err == nil || !strings.Contains(err.Error(), "the name") {
		t.Errorf("a name that is used: %v", err)
	}
}

// TestFailuresOfKin checks that each reader gets all failures, in one order.
func TestFailuresOfKin(t *testing.T) {
	k := &replacements{}
	for i := range pmi.MaxFailures + 1 {
		k.record("x", spansOf(i), "host", "gone")
	}
	var got []pmi.Failure
	for {
		more := k.failuresFrom(len(got))
		if got = append(got, more...); len(more) < pmi.MaxFailures {
			break
		}
	}
	if len(got) != pmi.MaxFailures+1 || got[pmi.MaxFailures].Rank != pmi.MaxFailures || got[0].Job != "x" {
		t.Errorf("read %d failures, want %d in the order of their report: %v", len(got), pmi.MaxFailures+1, got)
	}
	var none *replacements // of a job without respawn
	none.record("x", spansOf(1), "host", "gone")
	none.loseHost("a")
	if none.living() != 0 {
		t.Error("a job without respawn has replacements")
	}
}
