//go:build !windows

package launch

import (
	"strings"
	"testing"
	"time"
)

func TestStartWatch(t *testing.T) {
	at := time.Unix(1000, 0)
	nobody := func(int) bool { return false }
	cfg := &Config{Ranks: 4, Hosts: []Host{{"a", 2}, {"b", 2}}, layout: layout{ranks: [][]int{{0, 1}, {2, 3}}}, Limits: Limits{Start: 10 * time.Second}}
	w := newStartWatch(cfg, at)
	check := func(what string, want string) {
		t.Helper()
		text, late := w.late(at, nobody)
		if late != (want != "") || !strings.Contains(text, want) {
			t.Fatalf("%s: late %v %q, should contain %q", what, late, text, want)
		}
	}
	check("at the start", "")
	at = at.Add(9 * time.Second)
	check("within the time", "")
	w.markReady(1, at)
	at = at.Add(time.Second)
	check("one agent is missing", `longer than 10 s in the stage "starting agents"; no answer from a;`)
	w.markReady(0, at)
	at = at.Add(time.Hour)
	check("the program is being copied, which has no limit", "")
	w.markSent(at)
	at = at.Add(9 * time.Second)
	check("the next stage has its own time", "")
	at = at.Add(11 * time.Second)
	w.markStarted(0, at)
	w.markStarted(3, at)
	check("two processes are missing", `"starting ranks"; missing: rank 1 on a, rank 2 on b;`)
	w.markStarted(1, at)
	w.markStarted(2, at)
	at = at.Add(time.Hour)
	check("commands that never join have no limit", "")
	w.markJoined(3, at)
	at = at.Add(11 * time.Second)
	check("three have not joined", `"ranks joining"; missing: ranks 0-1 on a, rank 2 on b;`)
	if text, late := w.late(at, func(rank int) bool { return rank < 2 }); !late || strings.Contains(text, "on a") {
		t.Errorf("exited ranks must not be reported: %q", text)
	}
	for r := range 3 {
		w.markJoined(r, at)
	}
	at = at.Add(time.Hour)
	check("no rank is in a fence", "")
	w.markFenced(1, at)
	at = at.Add(11 * time.Second)
	check("one is", `"fence"; missing: rank 0 on a, ranks 2-3 on b;`)
	for _, r := range []int{0, 2, 3} {
		w.markFenced(r, at)
	}
	at = at.Add(time.Hour)
	check("all were: the start is over", "")
	if !w.over {
		t.Error("the watch must end after the first fence")
	}
}

func TestStartWatchWithoutLimit(t *testing.T) {
	w := newStartWatch(&Config{Ranks: 2}, time.Unix(0, 0))
	w.markStarted(0, time.Unix(0, 0))
	if text, late := w.late(time.Unix(1e6, 0), func(int) bool { return false }); late || !w.over {
		t.Errorf("a job of this machine has no limit: %q", text)
	}
}
