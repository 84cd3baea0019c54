package groups

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/lab"
)

// The peers cross hosts of a lab, and print a figure for each line of a group.
func TestPeersOnHostsOfLab(t *testing.T) {
	if err := lab.Usable(); err != nil {
		t.Skip(err)
	}
	onHost, err := filepath.Abs("loops/onhost.sh")
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(t, lab.Config{Hosts: 2, Rails: 2})
	dir := t.TempDir()
	bin := binaries{openMPI: filepath.Join(dir, "openmpi"), mpich: filepath.Join(dir, "mpich"), onHost: onHost}
	g := skewGroup("test", "test", []string{"alltoall", "reduce"}, []skewSize{skew4B}, []int{1, 4}, []int{0, 50})
	g.ranks, g.args = 2, g.args+" -i 3"
	for _, op := range []string{"alltoall", "reduce"} {
		for _, what := range []string{"mif-1/mean", "mif-4/bound", "mif-1-late-50/tail", "mif-4-late-50/tail", "mif-1/cpu"} {
			g.lines = append(g.lines, line{title: what, metric: op + "/" + what, size: 4})
		}
	}
	at := hostSet{hosts: l.Hosts(), rails: l.Rails(), onHost: bin.onHost}
	for _, p := range []struct {
		who       contender
		compiler  string
		out, must string
	}{{openMPI, "mpicc.openmpi", bin.openMPI, "mpirun.openmpi"}, {mpich, "mpicc.mpich", bin.mpich, "mpiexec.hydra"}} {
		t.Run(p.who.String(), func(t *testing.T) {
			for _, tool := range []string{p.compiler, p.must} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skip(err)
				}
			}
			if err := buildPeer(t.Context(), "loops", p.compiler, p.out); err != nil {
				t.Fatal(err)
			}
			enough := func(out []byte) bool { _, err := g.figures(out, "value"); return err == nil }
			out, err := runUntil(t.Context(), time.Minute, g.command(p.who, bin, at), enough)
			if err != nil {
				t.Fatal(err)
			}
			values, err := g.figures(out, "value")
			if err != nil {
				t.Fatalf("%v in\n%s", err, out)
			}
			for i, v := range values {
				if v <= 0 {
					t.Errorf("%s is %v", g.lines[i].metric, v)
				}
			}
		})
	}
}

func TestRunEndsAfterLastFigure(t *testing.T) {
	enough := func(out []byte) bool { return strings.Contains(string(out), "figure") }
	start := time.Now()
	out, err := runUntil(context.Background(), time.Minute, command{argv: []string{"sh", "-c", "echo figure; sleep 100"}}, enough)
	if err != nil || string(out) != "figure\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if took := time.Since(start); took < exitTimeout || took > 30*time.Second {
		t.Errorf("it was given %s to end, want about %s", took, exitTimeout)
	}
	// One that has not is an error, whatever it says.
	if out, err := runUntil(context.Background(), time.Minute, command{argv: []string{"sh", "-c", "echo half; exit 1"}}, enough); err == nil {
		t.Errorf("a run that failed half-way gave %q", out)
	}
}

func TestSkewGroupsUseSameParameters(t *testing.T) {
	for _, g := range append(skewPlan(), labCollectivePlan()...) {
		for _, pair := range [][2]string{{"-o ", "--op "}, {"-s ", "--sizes "}, {"-f ", "--mif "}} {
			word := func(s, flag string) string {
				_, rest, _ := strings.Cut(s, " "+flag)
				return strings.Fields(rest + " ?")[0]
			}
			if theirs, ours := word(g.args, pair[0]), word(g.ours, pair[1]); theirs != ours || theirs == "?" {
				t.Errorf("%s: theirs has %s%s and ours %s%s", g.name, pair[0], theirs, pair[1], ours)
			}
		}
	}
}

// Hosts get one rank more than others if the ranks are no multiple of them.
func TestSlotsOfHosts(t *testing.T) {
	at := hostSet{hosts: []string{"a", "b", "c", "d"}}
	for ranks, want := range map[int]string{16: "a:4,b:4,c:4,d:4", 14: "a:4,b:4,c:3,d:3", 5: "a:2,b:1,c:1,d:1"} {
		if got := at.slots(ranks); got != want {
			t.Errorf("%d ranks run on %s, want %s", ranks, got, want)
		}
	}
}

func TestChartShowsRatios(t *testing.T) {
	g := labCollectivePlan()[0]
	r := newRuns(g, Options{Rounds: 1})
	for i := range g.lines {
		r.values[openMPI][i], r.values[muster][i] = []float64{30}, []float64{10}
	}
	s := r.summary()
	c := s.chart()
	if len(c.Series) != 2 || c.Series[0].Name != "Open MPI, MIF 1" || c.Series[1].Name != "Open MPI, MIF 32" {
		t.Fatalf("the lines are %+v, want those of Open MPI at both factors", c.Series)
	}
	for _, line := range c.Series {
		if len(line.Points) != 6 || line.Points[0] != (bench.Point{X: 4, Y: 3}) {
			t.Errorf("%s has the points %v", line.Name, line.Points)
		}
	}
	if svg, err := s.picture(); err != nil || strings.Count(string(svg), "<polyline") != 2 {
		t.Errorf("the picture is %v %s", err, svg)
	}
	if text := s.table().Markdown(); !strings.Contains(text, "](coll-lab-alltoall.svg)") {
		t.Errorf("the table does not show the chart:\n%s", text)
	}
}
