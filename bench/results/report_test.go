package results

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func noReason(string) string { return "no lab" }

func TestFigureHasRangeAndContenders(t *testing.T) {
	sections := []Section{{Title: "s", Claims: []Claim{{Source: "t1", Where: "4", Text: "a", Tables: "x", Rows: "^(8 B|2 MB)", Column: "ratio"}}}}
	c := Judge(sections, exampleTables(t), noReason).Sections[0].Claims[0]
	if c.Source != "T1 4" || c.Result != NotMeasured || c.Reason != "no lab" || len(c.Figures) != 2 {
		t.Fatalf("the claim is %+v", c)
	}
	f := c.Figures[0]
	if f.Value != 0.5 || f.Low != 0.49 || f.High != 0.63 || f.Rounds != 3 || f.Limit != 0.6 || !f.Met() || f.Points {
		t.Errorf("the figure is %+v", f)
	}
	if want := (Named{"Open MPI, µs", "0.40 (0.36–0.43)"}); len(f.All) != 3 || f.All[0] != want {
		t.Errorf("the contenders are %v, want %v first of three", f.All, want)
	}
	if f := c.Figures[1]; f.Measured() || f.Met() {
		t.Errorf("a figure that is absent is %+v", f)
	}
}

// measurement is a report of figures around their true values, with rounds that scatter by a
// few percent.
func measurement(seed uint64, scale map[int]float64) *Report {
	random := rand.New(rand.NewPCG(seed, 1))
	r := &Report{Date: "2026-11-17 10:00:00", Commit: "abc"}
	claims := []Judged{{Text: "latency"}, {Text: "bandwidth"}, {Text: "overlap"}}
	for i := range 300 {
		truth := []float64{0.7, 900, 85}[i%3]
		if s, ok := scale[i]; ok {
			truth *= s
		}
		var rounds []float64
		for range 5 {
			rounds = append(rounds, truth*(1+0.04*random.NormFloat64()))
		}
		slices.Sort(rounds)
		f := Figure{Table: fmt.Sprint("t", i), Row: "8 B", Op: []string{AtMost, AtLeast, AtLeast}[i%3], Unit: []string{"×", " MB/s", "%"}[i%3], Points: i%3 == 2,
			Value: rounds[2], Low: rounds[0], High: rounds[4], Rounds: 5}
		claims[i%3].Figures = append(claims[i%3].Figures, f)
	}
	r.Sections = []JudgedGroup{{Title: "all", Claims: claims}}
	return r
}

// A planted regression of 20 % is the only one, whatever the direction in which figures are
// better.
func TestOnlyPlantedRegressionIsFlagged(t *testing.T) {
	for i, worse := range []float64{1.2, 0.8, 0.8} {
		for seed := range uint64(20) {
			old := measurement(2*seed, nil)
			planted := map[int]float64{30 + i: worse}
			now, again := measurement(2*seed+1, planted), measurement(1000+seed, planted)
			now.CompareWith(old)
			again.CompareWith(old)
			now.Confirm(again)
			list := now.Regressions()
			if len(list) != 1 || list[0].Table != fmt.Sprint("t", 30+i) {
				t.Errorf("seed %d, figure %d: the regressions are %v", seed, i, list)
			}
		}
	}
}

func TestChange(t *testing.T) {
	quiet := Figure{Value: 1, Low: 0.99, High: 1.01, Rounds: 5, Op: AtMost}
	with := func(f Figure, value, spread float64, rounds int) *Figure {
		f.Value, f.Low, f.High, f.Rounds = value, value-spread/2, value+spread/2, rounds
		return &f
	}
	percent := Figure{Value: 2, Low: 1, High: 3, Rounds: 5, Op: AtLeast, Points: true}
	for _, c := range []struct {
		name      string
		old, new  *Figure
		compared  bool
		regressed bool
	}{
		{"slower than the noise", &quiet, with(quiet, 1.2, 0.02, 5), true, true},
		{"faster", &quiet, with(quiet, 0.5, 0.02, 5), true, false},
		{"within what hours of the day differ by", &quiet, with(quiet, 1.08, 0.02, 5), true, false},
		{"rounds that scatter", &quiet, with(quiet, 1.2, 0.6, 5), true, false},
		{"two rounds say less than five", &quiet, with(quiet, 1.2, 0.2, 2), true, false},
		{"one round says nothing", &quiet, with(quiet, 2, 0, 1), true, false},
		{"not measured before", nil, &quiet, false, false},
		{"not measured now", &quiet, &Figure{Op: AtMost}, false, false},
		{"a percentage near zero", &percent, with(percent, -2, 2, 5), true, false},
		{"a percentage that drops", &percent, with(percent, -20, 2, 5), true, true},
	} {
		change := c.new.changeFrom(c.old)
		if (change != nil) != c.compared || change != nil && change.Regressed != c.regressed {
			t.Errorf("%s: %+v", c.name, change)
		}
	}
}

func TestConfirmWithdraws(t *testing.T) {
	old, now, again := measurement(1, nil), measurement(2, map[int]float64{6: 1.5, 9: 1.5}), measurement(3, map[int]float64{9: 1.5})
	if tables := now.CompareWith(old); !slices.Equal(tables, []string{"t6", "t9"}) {
		t.Fatalf("the tables with a regression are %v", tables)
	}
	again.CompareWith(old)
	now.Confirm(again)
	if list := now.Regressions(); len(list) != 1 || list[0].Table != "t9" {
		t.Errorf("confirmed: %v, want t9", list)
	}
}

// TestConfirmWithdrawsTwoModes checks that a median that moved between two modes of a figure
// is no regression.
func TestConfirmWithdrawsTwoModes(t *testing.T) {
	of := func(value, low, high float64, rounds int, op string) *Report {
		return &Report{Sections: []JudgedGroup{{Claims: []Judged{{Figures: []Figure{{Table: "t", Row: "r", Value: value, Low: low, High: high, Rounds: rounds, Op: op}}}}}}}
	}
	for _, c := range []struct {
		name            string
		old, now, again *Report
		want            int
	}{
		{"all rounds are slower", of(1, 0.98, 1.01, 3, AtMost), of(1.2, 1.19, 1.22, 3, AtMost), of(1.2, 1.05, 1.22, 6, AtMost), 1},
		{"one is not", of(1, 0.98, 1.01, 3, AtMost), of(1.2, 1.19, 1.22, 3, AtMost), of(1.2, 0.99, 1.22, 6, AtMost), 0},
		{"all have less bandwidth", of(1, 0.98, 1.01, 3, AtLeast), of(0.8, 0.79, 0.82, 3, AtLeast), of(0.8, 0.79, 0.83, 6, AtLeast), 1},
		{"one has not", of(1, 0.98, 1.01, 3, AtLeast), of(0.8, 0.79, 0.82, 3, AtLeast), of(0.8, 0.79, 1.01, 6, AtLeast), 0},
	} {
		c.now.CompareWith(c.old)
		c.again.CompareWith(c.old)
		if c.now.Confirm(c.again); len(c.now.Regressions()) != c.want {
			t.Errorf("%s: %d regressions, want %d", c.name, len(c.now.Regressions()), c.want)
		}
	}
}

func TestReportAsPageAndJSON(t *testing.T) {
	sections := []Section{{Title: "Short <messages>", Claims: []Claim{
		{Source: "t1", Where: "4.4", Text: "faster & better", Tables: "x", Column: "ratio", Rows: "^(8 B|1 KB)"},
		{Source: "p3", Where: "5", Text: "applications", Reason: "needs a cluster"},
	}}}
	r := Judge(sections, exampleTables(t), noReason)
	r.Date, r.Commit = "2026-11-17 10:00:00", "abc"
	path := filepath.Join(t.TempDir(), "report.json")
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	old, err := ReadReport(path)
	if err != nil {
		t.Fatal(err)
	}
	old.Sections[0].Claims[0].Figures[0].Value, old.Sections[0].Claims[0].Figures[0].High = 0.3, 0.51
	r.CompareWith(old)
	var page strings.Builder
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 missed", "1 not measurable here", "Short &lt;messages&gt;", "faster &amp; better", "T1 4.4", "≤ 0.6 to 1×", "<svg", "needs a cluster",
		"Compared with 2026-11-17 10:00:00 abc", "66.7 % worse", "go run ./bench/peers -only x", "0123abcd4"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page.String(), "http://") && strings.Count(page.String(), "http") != strings.Count(page.String(), `xmlns="http`) {
		t.Error("the page refers to other pages")
	}
	if _, err := ReadReport("report_test.go"); err == nil || !strings.Contains(err.Error(), "not a report") {
		t.Errorf("a file that is no report: %v", err)
	}
}
