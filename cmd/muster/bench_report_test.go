package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/bench/groups"
	"github.com/muster-mpi/muster/bench/results"
)

// fakeSession measures tables of one row.
type fakeSession struct {
	names    []string
	measured []string
	ratio    map[string]float64 // 0.5 unless listed
	stop     func(name string)
}

func (s *fakeSession) Groups() []string { return slices.Clone(s.names) }
func (s *fakeSession) Forget()          {}

func (s *fakeSession) Measure(ctx context.Context, name string) (*groups.Outcome, error) {
	if s.stop != nil {
		s.stop(name)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.measured = append(s.measured, name)
	ratio := 0.5
	if r, ok := s.ratio[name]; ok {
		ratio = r
	}
	return &groups.Outcome{Table: &results.Table{
		Name: name, Title: name, Rounds: 5,
		Head: []string{"", "Open MPI, µs", "Muster, µs", "ratio", "must be", ""},
		Rows: [][]string{{"8 B", "1.0 (0.99–1.01)", fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f (%.2f–%.2f)", ratio, ratio-0.01, ratio+0.01), "≤ 1 ×", "met"}},
	}}, nil
}

// newFakeReport returns a reporter of three tables, of which one cannot be measured.
func newFakeReport(t *testing.T, s *fakeSession) *reporter {
	r := &reporter{folder: t.TempDir(), only: "latency,bw,rate,tcp", rounds: 5, commit: "0123abcde", progress: io.Discard}
	r.open = func(_ context.Context, only string) (session, []groups.Skipped, error) {
		s.names = slices.DeleteFunc(strings.Split(only, ","), func(name string) bool { return name == "tcp" })
		return s, []groups.Skipped{{Group: "tcp", Reason: errors.New("pkg-config is not installed")}}, nil
	}
	return r
}

func readFake(t *testing.T, r *reporter) *results.Report {
	t.Helper()
	report, err := results.ReadReport(filepath.Join(r.folder, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestReportResumes(t *testing.T) {
	s := new(fakeSession)
	r := newFakeReport(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = func(name string) {
		if name == "rate" {
			cancel()
		}
	}
	if err := r.run(ctx); err == nil || !strings.Contains(err.Error(), "continues") {
		t.Fatalf("an interrupted report ends with %v", err)
	}
	if !slices.Equal(s.measured, []string{"latency", "bw"}) {
		t.Fatalf("measured %v before the interruption", s.measured)
	}
	if n := readFake(t, r).Counts(); n[results.Met] != 2 {
		t.Errorf("the interrupted report has %v", n)
	}
	s.stop, s.measured = nil, nil
	for range 2 { // the second time nothing is left to do
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.measured, []string{"rate"}) {
			t.Errorf("after the interruption %v were measured, want rate alone", s.measured)
		}
	}
	for _, section := range readFake(t, r).Sections {
		for _, c := range section.Claims {
			if c.Text == "latency, libfabric over TCP" && c.Reason != "tcp: pkg-config is not installed" {
				t.Errorf("the reason of a group that cannot run is %q", c.Reason)
			}
		}
	}
	s.measured, r.commit = nil, "fedcba987"
	if err := r.run(t.Context()); err != nil || len(s.measured) != 3 {
		t.Errorf("of another commit %v were measured (%v), want all three", s.measured, err)
	}
	if page, err := os.ReadFile(filepath.Join(r.folder, "report.html")); err != nil || !strings.Contains(string(page), "fedcba987") {
		t.Errorf("the page does not name the commit (%v)", err)
	}
}

func TestReportAgainstEarlier(t *testing.T) {
	s := new(fakeSession)
	monday := newFakeReport(t, s)
	if err := monday.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		first  map[string]float64
		second map[string]float64
		want   []string
	}{
		{"nothing has changed", nil, nil, nil},
		{"20 % slower", map[string]float64{"latency": 0.6, "bw": 0.52}, map[string]float64{"latency": 0.6}, []string{"latency"}},
		{"slower once", map[string]float64{"latency": 0.6}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &fakeSession{ratio: c.first}
			tuesday := newFakeReport(t, s)
			tuesday.against = filepath.Join(monday.folder, "report.json")
			open, opened := tuesday.open, 0
			tuesday.open = func(ctx context.Context, only string) (session, []groups.Skipped, error) {
				if opened++; opened == 2 {
					s.ratio = c.second
				}
				return open(ctx, only)
			}
			err := tuesday.run(t.Context())
			var status exitStatus
			if flagged := errors.As(err, &status); flagged != (c.want != nil) || err != nil && !flagged {
				t.Errorf("the report ends with %v", err)
			}
			var got []string
			for _, f := range readFake(t, tuesday).Regressions() {
				got = append(got, f.Table)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the regressions are %v, want %v", got, c.want)
			}
		})
	}
}

func TestReportRefuses(t *testing.T) {
	r := newFakeReport(t, new(fakeSession))
	r.only = "no-such-table"
	if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), "--only") {
		t.Errorf("an unknown table: %v", err)
	}
	r = newFakeReport(t, new(fakeSession))
	r.against = filepath.Join(r.folder, "missing.json")
	if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), "--against") {
		t.Errorf("an earlier report that does not exist: %v", err)
	}
}

func TestRemainingTime(t *testing.T) {
	if got, want := remaining(90*time.Second, 3, 5), ", after 1m30s, about 1m0s left"; got != want {
		t.Errorf("the progress is %q, want %q", got, want)
	}
	if got := remaining(0, 0, 5); got != "" {
		t.Errorf("before the first table the progress is %q", got)
	}
}
