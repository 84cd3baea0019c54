package groups

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// filledStudy has the value 1 for each figure.
func filledStudy(st *study) *studyRuns {
	r := newStudyRuns(st, 1)
	for range st.apps {
		r.imbalance = append(r.imbalance, imbalance{1, 1, st.arrivals})
	}
	for _, app := range r.values {
		for _, figure := range app {
			for k := range figure {
				figure[k] = []float64{1}
			}
		}
	}
	return r
}

// Each target of a document belongs to a row, so that a renamed figure does not lose it.
func TestTargetsHaveRows(t *testing.T) {
	for _, st := range studies() {
		rows := filledStudy(st).rows()
		for i := range st.apps {
			a := &st.apps[i]
			for _, want := range a.targets {
				if !slices.ContainsFunc(rows, func(r studyRow) bool { return r.app == a && r.target == want }) {
					t.Errorf("%s: no row of %s has the target %+v", st.name, a.title(), want)
				}
			}
		}
		labels := map[string]bool{}
		for _, r := range rows {
			if labels[r.label] {
				t.Errorf("%s has two rows %q", st.name, r.label)
			}
			labels[r.label] = true
		}
		if st.note == "" || st.differs == "" || st.hosts > 0 && st.rate == "" {
			t.Errorf("%s does not say how it is measured, or why it differs from the document", st.name)
		}
	}
}

// exampleStudy has an application whose time falls by a quarter with the technique.
func exampleStudy() *study {
	return &study{
		name: "study-x", title: "A study", note: "A note.", differs: "a reason.",
		settings: []setting{{"off", nil}, {"on", []string{"MUSTER_X=on"}}},
		figures: []studyFigure{
			{title: "run time (s)", value: func(_ *studyApp, r *appRun) float64 { return r.Seconds }},
			{title: "used (%)", alone: true, value: func(*studyApp, *appRun) float64 { return 95 }},
		},
		apps: []studyApp{{name: "cg", class: "S", ranks: 2, targets: []target{{"run time", "on", "−30 %", 0.7, 0.7}}}, {name: "lu", class: "S", ranks: 4}},
	}
}

// In each round every setting runs once, and the first one changes.
func TestStudyAlternates(t *testing.T) {
	r := newStudyRuns(exampleStudy(), 3)
	var order []string
	for round := range r.rounds {
		err := r.round(t.Context(), round, func(a *studyApp, one setting) (*appRun, error) {
			order = append(order, a.name+" "+one.name)
			if a.name == "lu" && round == 1 {
				return nil, errors.New("broken")
			}
			seconds := 4.0 + float64(round)
			if one.name == "on" {
				seconds *= 0.75
			}
			return &appRun{Seconds: seconds}, nil
		}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"cg off", "cg on", "lu off", "lu on", "cg on", "cg off", "lu on", "lu off"}; !slices.Equal(order[:8], want) {
		t.Errorf("the runs are %v, want %v", order[:8], want)
	}
	table := r.table()
	if want := []string{"cg S, 2 ranks, run time (s), on over off", "5.00 (4.00–6.00)", "3.75 (3.00–4.50)", "0.75 (0.75–0.75)", "−30 %", "≤ 0.7 ×", "missed"}; !slices.Equal(table.Rows[0], want) {
		t.Errorf("the first row is %q, want %q", table.Rows[0], want)
	}
	if want := []string{"cg S, 2 ranks, used (%), on", "-", "95.0 (95.0–95.0)", "-", "-", "-", ""}; !slices.Equal(table.Rows[1], want) {
		t.Errorf("the second row is %q, want %q", table.Rows[1], want)
	}
	if len(r.failures) != 2 || !strings.Contains(table.Notes, "2 runs failed; the first: lu S, 4 ranks with on: broken.") {
		t.Errorf("failures %v are not reported: %s", r.failures, table.Notes)
	}
	for _, want := range []string{"Medians of 3 alternating rounds", "A note.", "Where it differs from the document: a reason."} {
		if !strings.Contains(table.Notes, want) || !strings.Contains(table.Text(), want) {
			t.Errorf("the table does not say %q: %s", want, table.Notes)
		}
	}
	if table.Rounds != 3 || len(table.Rows) != 4 || table.Head[3] != "ratio" {
		t.Errorf("the table is %+v", table)
	}
	if svg, err := r.picture(); err != nil || strings.Count(string(svg), "<rect") != 3 || !strings.Contains(string(svg), "the document&#39;s ratio") || !wellFormed(svg) {
		t.Errorf("the picture has not a background, one bar for each ratio with a target, and an entry of the legend (%v): %s", err, svg)
	}
}

func wellFormed(text []byte) bool {
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); err == io.EOF {
			return true
		} else if err != nil {
			return false
		}
	}
}

func TestStudyOverRanks(t *testing.T) {
	st := eagerStudy()
	r := newStudyRuns(st, 1)
	for i := range st.apps {
		for f := range st.figures {
			for k := range st.settings {
				r.values[i][f][k] = []float64{float64(st.apps[i].ranks * (k + 1))}
			}
		}
	}
	c := r.chart()
	if len(c.Series) != 6 || len(c.Series[1].Points) != 5 || c.Series[1].Points[4].X != 64 || c.Series[1].Points[4].Y != 128 {
		t.Errorf("the lines are %+v; want one for each application and channel, over the ranks", c.Series)
	}
	if svg, err := r.picture(); err != nil || strings.Count(string(svg), "<polyline") != 6 {
		t.Errorf("the picture is %s, %v", svg, err)
	}
}

func TestStudyOptions(t *testing.T) {
	for _, c := range []struct {
		o    StudyOptions
		want string
	}{
		{StudyOptions{}, "[cg S, 2 ranks lu S, 4 ranks]"},
		{StudyOptions{Apps: "lu", Class: "W"}, "[lu W, 4 ranks]"},
		{StudyOptions{Ranks: 8}, "[cg S, 8 ranks lu S, 8 ranks]"},
	} {
		st, err := exampleStudy().change(c.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range st.apps {
			got = append(got, st.apps[i].title())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v runs %v, want %s", c.o, got, c.want)
		}
	}
	if _, err := exampleStudy().change(StudyOptions{Apps: "cg,mg"}); err == nil || !strings.Contains(err.Error(), "cg, lu") {
		t.Errorf("an application that the study does not have is accepted: %v", err)
	}
	eager, err := eagerStudy().change(StudyOptions{Ranks: 2})
	if err != nil || len(eager.apps) != 2 {
		t.Errorf("with one number of ranks the study runs %+v, %v; want each application once", eager, err)
	}
}

func TestStudyCommand(t *testing.T) {
	st := exampleStudy()
	st.env = []string{"MUSTER_Y=1"}
	cmd := st.command("muster", hostSet{hosts: []string{"a", "b"}, rsh: "on {host}"}, &st.apps[1], st.settings[1], nil)
	if got, want := strings.Join(cmd.argv, " "), "muster run -n 4 --label never --bind-to none --hosts a:2,b:2 --rsh on {host} muster app lu --class S --json"; got != want {
		t.Errorf("the command is %s, want %s", got, want)
	}
	if !slices.Equal(cmd.env, []string{"MUSTER_Y=1", "MUSTER_X=on"}) {
		t.Errorf("the environment is %v", cmd.env)
	}
}

func TestParseRun(t *testing.T) {
	r, err := parseRun([]byte(`some output
{"name":"CG","seconds":2,"in_mpi":1,"verified":true,"calls":{"Send":{"kind":"send","calls":3,"seconds":0.5},"Wait":{"kind":"wait","seconds":0.25}},"counters":{"memory.total":{"sum":2000000,"max":5}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if r.timeIn([]string{"Send", "Wait", "Recv"}) != 0.75 || r.kind("wait") != 0.25 || megabytes(r, "memory.total") != 2 || !math.IsNaN(share(r, "offers.used", "offers.made")) {
		t.Errorf("the run is read as %+v", r)
	}
	for _, bad := range []string{"", `{"name":`, `{"name":"CG","verified":false}`} {
		if _, err := parseRun([]byte(bad)); err == nil {
			t.Errorf("%q is accepted as the output of an application", bad)
		}
	}
}

// A study that no run of succeeds is an error, with its cause.
func TestStudyFails(t *testing.T) {
	st := exampleStudy()
	s := &Session{o: Options{Rounds: 1, Limit: 1, Log: io.Discard}, bin: binaries{muster: "/nonexistent/muster"}, studies: []*study{st}}
	if _, err := s.Measure(context.Background(), "study-x"); err == nil || !strings.Contains(err.Error(), "no run succeeded") {
		t.Errorf("the error is %v", err)
	}
}
