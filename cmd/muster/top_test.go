//go:build !windows

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/pmi"
)

// sampleOf returns what top reads of ranks at a time.
func sampleOf(t *testing.T, at time.Time, ranks ...launch.RankMetrics) *jobSample {
	t.Helper()
	var text strings.Builder
	writeMetrics(&text, ranks)
	s, err := parseMetrics(strings.NewReader(text.String()), at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTopScreen(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rank := func(n int, host string, messages, waiting uint64) launch.RankMetrics {
		return launch.RankMetrics{Rank: n, Host: host, Running: true, Joined: true, Resident: 4 << 20, CPU: time.Duration(n+1) * time.Second,
			Counters: pmi.Metrics{MessagesSent: messages, BytesSent: 1024 * messages, Waiting: waiting}}
	}
	before := sampleOf(t, began, rank(0, `a"b`, 0, 0), rank(1, "c", 10, 0), rank(2, "c", 0, 0))
	late := rank(1, "c", 4010, 1e9)
	late.Call, late.Since = "Recv", 1500*time.Millisecond
	ended := launch.RankMetrics{Rank: 2, Host: "c"}
	now := sampleOf(t, began.Add(2*time.Second), rank(0, `a"b`, 0, 0), late, ended)
	got := now.screen(before, topByWait, 2)
	for _, want := range []string{
		"03:04:07  2 of 3 ranks running on 2 hosts   2K messages/s   1.95 MB/s   waiting 17 %",
		"Recv", "1.5s", "50 %",
		"and 1 further rank; --rows shows more\n", "\nhost  ranks", "a\"b",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
	if strings.Index(got, "Recv") > strings.Index(got, "\n0 ") {
		t.Errorf("the rank that waits must be first:\n%s", got)
	}
	if got := now.screen(before, "rank", 9); !strings.Contains(got, "(ended)") || strings.Index(got, "\n0 ") > strings.Index(got, "\n1 ") {
		t.Errorf("by rank:\n%s", got)
	}
}

// A sample that is served twice is no new one, and rates are over some seconds.
func TestTopHistory(t *testing.T) {
	began := time.UnixMicro(1e15)
	var h jobHistory
	for i, c := range []struct {
		read   time.Duration
		fresh  bool
		oldest time.Duration
	}{{0, true, 0}, {0, false, 0}, {time.Second, true, 0}, {2 * time.Second, true, 0}, {3 * time.Second, true, 0}, {4 * time.Second, true, time.Second}, {20 * time.Second, true, 4 * time.Second}} {
		s := sampleOf(t, time.Now(), launch.RankMetrics{Read: began.Add(c.read)})
		if fresh := h.add(s); fresh != c.fresh || h[0].at != began.Add(c.oldest) {
			t.Errorf("sample %d: new %v, oldest %v; want %v, %v", i, fresh, h[0].at.Sub(began), c.fresh, c.oldest)
		}
	}
}

func TestTopWithoutJob(t *testing.T) {
	f := topFlags{every: time.Second, sort: topByWait}
	if err := f.run(context.Background(), new(strings.Builder), "127.0.0.1:1"); !errors.Is(err, errNoJob) || !strings.Contains(err.Error(), "muster run --metrics 127.0.0.1:1") {
		t.Errorf("without a job: %v", err)
	}
	for _, args := range [][]string{{"top", "--sort", "speed"}, {"top", "--every", "1ms"}, {"top", "nowhere"}} {
		if _, err := execute(args...); err == nil {
			t.Errorf("muster %q must be refused", args)
		}
	}
}
