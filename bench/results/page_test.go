package results

import (
	"math"
	"strings"
	"testing"
)

// exampleRun returns a run with one table.
func exampleRun() *Run {
	return &Run{
		Date: "2026-11-16 06:29:00", Commit: "0123abcd4+dirty", Machine: "2 cores, 8 GiB, Linux 6.1", Command: "go run ./bench/peers", Rounds: 3,
		Tables: []*Table{{
			Name: "x", Title: "Half round trip", Rounds: 3, Notes: "Medians of 3 rounds.",
			Head: []string{"", "Open MPI, µs", "Muster, µs", "ratio", "must be", ""},
			Rows: [][]string{
				{"8 B", "0.40 (0.36–0.43)", "0.20 (0.19–0.24)", "0.50 (0.49–0.63)", "≤ 0.6 ×", "met"},
				{"1 KB", "0.80 (0.79–0.81)", "0.90 (0.8–1.0)", "1.12 (1.1–1.2)", "≤ 1 ×", "missed"},
				{"1 MB", "0 (0–0)", "2.5 (2–3)", "+Inf (1–+Inf)", "≤ 1 ×", "-"},
				{"2 MB", "-", "-", "-", "≤ 1 ×", "-"},
			},
			Stamp: Stamp{Date: "2026-11-16 06:30:00", Versions: "Go 1.26, Open MPI 4.1.4", Command: "go run ./bench/peers -only x"},
		}},
	}
}

func exampleTables(t *testing.T) map[string]*Table {
	t.Helper()
	r := exampleRun()
	if err := r.complete(); err != nil {
		t.Fatal(err)
	}
	return newest([]*Run{r})
}

func TestClaimResults(t *testing.T) {
	tables := exampleTables(t)
	for _, c := range []struct {
		name  string
		claim Claim
		want  string
	}{
		{"all rows within their bounds", Claim{Rows: "^8 B", Column: "ratio"}, "met"},
		{"rounds on both sides of the threshold", Claim{Rows: "^1 KB", Column: "ratio", Op: AtMost, Limit: 1.11}, "within noise"},
		{"missed, with a bound", Claim{Rows: "^1 KB", Column: "ratio", Bound: "a reason"}, "bounded"},
		{"one row misses", Claim{Rows: "^(8 B|1 KB)", Column: "ratio"}, "**missed**"},
		{"the best row of an up-to claim", Claim{Rows: "^(8 B|1 KB)", Column: "ratio", Op: AtMost, Limit: 0.6, Best: true}, "met"},
		{"infinite", Claim{Rows: "^1 MB", Column: "ratio"}, "not measured"},
		{"infinite, where larger is better", Claim{Rows: "^1 MB", Column: "ratio", Op: AtLeast, Limit: 1}, "not measured"},
		{"one row absent", Claim{Rows: "^(8 B|2 MB)", Column: "ratio"}, "not measured"},
		{"one row absent and one missed", Claim{Rows: "^(1 K|2 M)B", Column: "ratio"}, "**missed**"},
		{"no such row", Claim{Rows: "^9 B", Column: "ratio"}, "not measured"},
		{"no such column", Claim{Rows: "^8 B", Column: "MPICH"}, "not measured"},
		{"no such table", Claim{Tables: "y", Column: "ratio"}, "not measured"},
		{"behind the peer by no more than allowed", Claim{Rows: "^8 B", Column: "Muster", Op: AtLeast, Limit: -0.3, Gap: true}, "met"},
		{"behind the peer by more", Claim{Rows: "^8 B", Column: "Muster", Op: AtLeast, Limit: -0.1, Gap: true}, "**missed**"},
	} {
		if c.claim.Tables == "" {
			c.claim.Tables = "x"
		}
		if got := c.claim.row(tables)[2]; got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestClaimShowsWorstRow(t *testing.T) {
	c := Claim{Source: "t1", Where: "4.4", Text: "faster", Tables: "x", Column: "ratio", Rows: "^(8 B|1 KB)"}
	tables := exampleTables(t)
	tables["x"].page = "pairs"
	got := strings.Join(c.row(tables), " | ")
	want := "[T1](references.md#t1) 4.4: faster | 1/2; worst 1 KB: 1.12× (≤1) | **missed** | `ONLY=x` | [2026-11-16](results/pairs.md#x) 0123abcd4+dirty"
	if got != want {
		t.Errorf("the row is\n%s, want\n%s", got, want)
	}
}

func TestLoadedMachineIsMarked(t *testing.T) {
	table := exampleTables(t)["x"]
	table.Loaded = true
	if got := measuredOn([]*Table{table}); !strings.HasSuffix(got, ", loaded") {
		t.Errorf("a table of a loaded machine is marked %q", got)
	}
}

func TestFigures(t *testing.T) {
	for cell, want := range map[string]float64{"0.39 (0.36–0.43)": 0.39, "-10.47 (-12–3)": -10.47, "71968": 71968} {
		if got := figure(cell); got != want {
			t.Errorf("%q is %v, want %v", cell, got, want)
		}
	}
	for _, cell := range []string{"-", "", "+Inf (1–2)", "NaN", "met"} {
		if got := figure(cell); !math.IsNaN(got) {
			t.Errorf("%q is %v, want no figure", cell, got)
		}
	}
}
