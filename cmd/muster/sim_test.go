//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/sim"
)

func TestSimPrints(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "sim", "allreduce", "--ranks", "64", "--nodes", "8", "--sizes", "8,64K", "--path", "--svg", "out.svg")
	for _, want := range []string{"64 ranks on 8 nodes with 2 rails", "not measured", "not ranked", "recursive-doubling", "rail 0 of node", "critical path:"} {
		if got.status != 0 || !strings.Contains(got.out, want) {
			t.Errorf("muster sim allreduce does not print %q: %+v", want, got)
		}
	}
	if picture, err := os.ReadFile(filepath.Join(dir, "out.svg")); err != nil || !strings.Contains(string(picture), "recursive-doubling") {
		t.Errorf("the picture lacks an algorithm: %v, %s", err, picture)
	}
	got = muster(t, dir, "sim", "bcast", "--ranks", "1000", "--nodes", "10", "--algorithm", "knomial:radix=4", "--json", "--arrival", "late:2:1ms", "--slow-node", "9:4", "--lost-rail", "9:1")
	var line simLine
	if err := json.Unmarshal([]byte(got.out), &line); err != nil || line.Messages.Messages() != 999 || line.Algorithm != "knomial:radix=4" {
		t.Errorf("muster sim bcast --json: %v, %+v, %+v", err, line, got)
	}
}

// TestSimWritesTuning checks that the table is one that programs read, and that algorithms
// within the error have no rule.
func TestSimWritesTuning(t *testing.T) {
	dir := t.TempDir()
	m := sim.Default()
	m.Error = 0.01
	if err := os.WriteFile(filepath.Join(dir, "m.json"), m.Marshal(), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"sim", "allreduce", "--ranks", "256", "--nodes", "16", "--machine", "m.json", "--tuning", "t.json", "-a", "recursive-doubling,ring"}
	if got := muster(t, dir, args...); got.status != 0 || !strings.Contains(got.out, "1 rules") {
		t.Fatalf("muster %q: %+v", args, got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "t.json"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := coll.ParseTuning(text)
	if err != nil || len(table.Rules) != 1 || table.Rules[0].Algorithm.Name != "recursive-doubling" {
		t.Errorf("the table is %s (%v); want recursive-doubling, because the ring has 510 steps", text, err)
	}
	m.Error = 100
	if err := os.WriteFile(filepath.Join(dir, "m.json"), m.Marshal(), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := muster(t, dir, args...); got.status != 0 || !strings.Contains(got.out, "no rule, 2 algorithms are within the error") {
		t.Errorf("muster %q with an error of 10000 %%: %+v", args, got)
	}
}

func TestSimRejectsBadFlags(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--ranks 0", "1 to 16M ranks"},
		{"--ranks 4 --nodes 5", "use 1 to 4"},
		{"--arrival soon", "want together"},
		{"--slow-node 3", "NODE:FACTOR"},
		{"--lost-rail 1:1:1", "NODE:RAIL"},
		{"--nodes 2 --lost-rail 7:0", "beyond the 2 nodes"},
		{"--algorithm teleport", "it has"},
		{"--algorithm knomial:radix", "name:parameter=value"},
		{"--level quantum", "use schedule"},
		{"--machine missing.json", "no such file"},
		{"--tuning t.json", "error of the simulation is unknown"},
		{"--limit 1", "more than --limit"},
		{"--level validate", "the program of a job"},
		{"--failed-rank 8", "with a rank below 8"},
		{"--failed-rank 1:soon", "RANK:TIME"},
		{"--level packets --limit 8", "more than --limit"},
	} {
		got := muster(t, t.TempDir(), append([]string{"sim", "bcast", "--ranks", "8"}, strings.Fields(c.flags)...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) {
			t.Errorf("muster sim bcast %s must be refused with %q; got %+v", c.flags, c.want, got)
		}
	}
}

// TestSimMixes simulates several calls, and the failure of a rank.
func TestSimMixes(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "sim", "mix", "3*barrier", "compute:50us", "alltoall:4K=pairwise", "allreduce:8", "-n", "64", "--nodes", "4", "--json")
	var line workloadLine
	if err := json.Unmarshal([]byte(got.out), &line); err != nil || line.Calls != 5 || line.Last < 50 || line.Messages.Messages() < 64*63 {
		t.Errorf("muster sim mix: %v, %+v, %+v", err, line, got)
	}
	for _, c := range []struct{ call, want string }{
		{"0*barrier", "above 0"}, {"compute:soon", "compute:50us"}, {"compute:1ms", "no collective"}, {"allreduce", "KIND:BYTES"}, {"allreduce:8=teleport", "it has"}, {"dance:8", "unknown collective"},
	} {
		if got := muster(t, dir, "sim", "mix", c.call, "-n", "8"); got.status == 0 || !strings.Contains(got.err, c.want) {
			t.Errorf("muster sim mix %s must be refused with %q: %+v", c.call, c.want, got)
		}
	}
	got = muster(t, dir, "sim", "allreduce", "-n", "64", "--nodes", "8", "-a", "recursive-doubling,ring", "--failed-rank", "3:1ms")
	for _, want := range []string{"rank 3 fails", "all ranks know at 1000.00", "new communicator of 63 ranks"} {
		if got.status != 0 || !strings.Contains(got.out, want) {
			t.Errorf("a failed rank: the output lacks %q: %+v", want, got)
		}
	}
}

// TestSimReplays records a program and simulates it, also with more ranks.
func TestSimReplays(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := muster(t, dir, "run", "-n", "4", "--trace", "t.json", self, "app", "is", "--class", "S"); got.status != 0 {
		t.Fatalf("the program: %+v", got)
	}
	// Both commands print the same times of the trace, and what they are.
	times := regexp.MustCompile(`recorded: (?:4 ranks, )?(\S+) from the end of Init to the end of the last call, (\S+) of it from the first call\n`)
	summary, replay := muster(t, dir, "trace", "t.json"), muster(t, dir, "sim", "replay", "t.json")
	a, b := times.FindStringSubmatch(summary.out), times.FindStringSubmatch(replay.out)
	if a == nil || b == nil || a[1] != b[1] || a[2] != b[2] {
		t.Errorf("muster trace and muster sim replay print different times of a trace, %q and %q:\n%s\n%s", a, b, summary.out, replay.out)
	}
	if !strings.Contains(replay.out, "simulated: from the end of Init to the end of the last call\n") {
		t.Errorf("muster sim replay does not print what is simulated:\n%s", replay.out)
	}
	for _, c := range []struct{ flags, want string }{
		{"", "recorded: 4 ranks"},
		{"--ranks 64 --nodes 4", "extrapolated from 4 ranks: 16 copies"},
	} {
		got := muster(t, dir, append([]string{"sim", "replay", "t.json"}, strings.Fields(c.flags)...)...)
		if got.status != 0 || !strings.Contains(got.out, c.want) || strings.Contains(got.out, "extrapolated") == (c.flags == "") {
			t.Errorf("muster sim replay t.json %s does not print %q: %+v", c.flags, c.want, got)
		}
	}
	if got := muster(t, dir, "sim", "replay", "t.json", "--ranks", "6"); got.status == 0 || !strings.Contains(got.err, "multiple of 4") {
		t.Errorf("6 ranks of a trace of 4: %+v", got)
	}
}

// TestSimComparesPackets makes a call in a job of processes: simulated packets by kind are
// those that the job counts, also if a message has several segments.
func TestSimComparesPackets(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := muster(t, t.TempDir(), "run", "-n", "4", "--label", "never", self, "sim", "allreduce", "--level", "packets", "-a", "recursive-doubling", "--sizes", "24K")
	for _, want := range []string{"eager 8, seg 16", "equal in 1 of 1 cases"} {
		if got.status != 0 || !strings.Contains(got.out, want) {
			t.Errorf("the comparison of packets does not print %q: %+v", want, got)
		}
	}
	got = muster(t, t.TempDir(), "sim", "alltoall", "--level", "packets", "-n", "20", "--nodes", "4", "-a", "pairwise", "--sizes", "8,1M", "--arrival", "spread:1ms")
	for _, want := range []string{"eager 380;", "rts 380", "unexpected messages (rank", "links "} {
		if got.status != 0 || !strings.Contains(got.out, want) {
			t.Errorf("muster sim --level packets does not print %q: %+v", want, got)
		}
	}
}

// TestSimCalibrates calibrates ranks of this host and validates with them.
func TestSimCalibrates(t *testing.T) {
	dir := t.TempDir()
	if got := muster(t, dir, "sim", "calibrate", "-n", "2", "--rounds", "1", "--out", "m.json"); got.status != 0 || !strings.Contains(got.out, "calibrated with 2 ranks") {
		t.Fatalf("muster sim calibrate: %+v", got)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := muster(t, dir, "run", "-n", "2", "--label", "never", self, "sim", "bcast", "--level", "validate", "--machine", "m.json", "--sizes", "8,8K")
	if got.status != 0 || !strings.Contains(got.out, "8192 bytes: Kendall") || !strings.Contains(got.out, "median error") {
		t.Fatalf("muster sim --level validate: %+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "m.json"))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := sim.ParseMachine(text); err != nil || m.Error == 0 {
		t.Errorf("the machine file has no error of the simulation: %v, %s", err, text)
	}
}
