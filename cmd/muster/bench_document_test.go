package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench/documents"
	"github.com/muster-mpi/muster/bench/groups"
)

func documentOf(t *testing.T, name string) *documents.Document {
	t.Helper()
	d, err := documents.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A table that several figures have is measured once, and one that is not available is named with
// the reason.
func TestDocumentShowsTheirsBesideOurs(t *testing.T) {
	s := new(fakeSession)
	var ran []string
	f := documentFlags{rounds: 1, run: func(_ context.Context, _ io.Writer, args []string) error {
		ran = append(ran, strings.Join(args, " "))
		return nil
	}}
	f.open = func(_ context.Context, only string) (session, []groups.Skipped, error) {
		s.names = strings.Split(only, ",")
		return s, []groups.Skipped{{Group: "lab-overlap", Reason: errors.New("no root")}}, nil
	}
	var out strings.Builder
	if err := f.measure(t.Context(), &out, documentOf(t, "T1")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"T1 Figure 4.13", "above 80 %", "lab-overlap was not measured: no root", "conditions of T1: 4 servers", "T1 Table 6.1", "muster explain"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q", want)
		}
	}
	seen := map[string]bool{}
	for _, name := range s.measured {
		if seen[name] {
			t.Errorf("%s was measured twice", name)
		}
		seen[name] = true
	}
	if len(ran) == 0 || seen["lab-overlap"] {
		t.Errorf("ran %q, measured %q", ran, s.measured)
	}
}

func TestDocumentListsFigures(t *testing.T) {
	for _, name := range documents.Names() {
		d := documentOf(t, name)
		var out strings.Builder
		if err := listFigures(&out, d); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != len(d.Figures) {
			t.Errorf("%s has %d figures, and %d are listed", name, len(d.Figures), n)
		}
	}
}
