//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/lab"
)

func TestChaosScheduleIsPrinted(t *testing.T) {
	args := []string{"lab", "chaos", "--seed", "7", "--hosts", "3", "--rails", "2", "--duration", "2s", "--dry-run"}
	out := must(t, args...)
	if !strings.Contains(out, "cut h3 rail 0 for ") || out != must(t, args...) {
		t.Errorf("the schedule of seed 7 is\n%s", out)
	}
	for want, args := range map[string][]string{
		`there is no fault "fire"`:         {"--faults", "fire"},
		`--shm "1K"`:                       {"--shm", "1K"},
		"--name selects an existing one":   {"--name", "a"},
		`invalid argument "x" for "--seed`: {"--seed", "x"},
	} {
		got := muster(t, ".", append([]string{"lab", "chaos", "--hosts", "2", "--dry-run"}, args...)...)
		if got.status != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%v must be refused with %q: %+v", args, want, got)
		}
	}
}

// A job that survives the mild faults, one whose launcher is killed, and one that hangs.
func TestChaosOnLab(t *testing.T) {
	if err := lab.Usable(); err != nil {
		t.Skip(err)
	}
	name := labName(t, "f")
	must(t, "lab", "up", "--name", name, "--rails", "2")
	for _, c := range []struct {
		args   string
		status int
		want   []string
	}{
		{"--seed 3 --duration 1s --every 100ms --longest 500ms --faults mild -- -n 4 --env " + asRank + "=well " + selfPath(t), 0, []string{"seed 3, 2 hosts, 2 rails"}},
		{"--seed 1 --duration 1s --every 100ms --longest 300ms --faults mild -- -n 4 sleep 1.5", 0, []string{"stop a rank", ": rank "}},
		{"--seed 4 --duration 3s --faults launcher -- sleep 30", 1, []string{"kill the launcher: pid", "signal: killed"}},
		{"--seed 5 --duration 100ms --hang 100ms --faults cut -- sleep 30", statusHang, []string{"has not ended 100ms after the last fault"}},
	} {
		got := muster(t, ".", append([]string{"lab", "chaos", "--name", name}, strings.Fields(c.args)...)...)
		if got.status != c.status {
			t.Errorf("chaos %s: status %d, want %d: %+v", c.args, got.status, c.status, got)
		}
		for _, want := range c.want {
			if !strings.Contains(got.err, want) {
				t.Errorf("chaos %s does not report %q:\n%s", c.args, want, got.err)
			}
		}
	}
	for _, line := range cables(t, must(t, "lab", "status", "--name", name)) {
		if !strings.HasSuffix(line, " - - up") || strings.HasPrefix(line, "h") && strings.Fields(line)[1] != "0" {
			t.Errorf("something is left on the lab: %q", line)
		}
	}
}
