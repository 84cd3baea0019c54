//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench"
)

func TestBenchRejectsBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"overlap", "--protocol", "teleport"}, "use one of get, put"},
		{[]string{"overlap", "--protocol", "get,get"}, "given twice"},
		{[]string{"overlap", "--protocol", "get,put", "--rounds", "0"}, "at least once"},
		{[]string{"overlap", "--sizes", "big"}, "want a number of bytes"},
		{[]string{"overlap", "-n", "3"}, "runs on 2 ranks"},
		{[]string{"progress", "--delay", "0.9"}, "longer than the transfer"},
		{[]string{"progress", "--delay", "nan"}, "longer than the transfer"},
		{[]string{"exchange", "--ratios", "0.5,0"}, "above 0"},
		{[]string{"exchange", "--communication", "-3us"}, "30us"},
		{[]string{"allreduce", "--algorithm", "teleport"}, "allreduce has no algorithm \"teleport\"; it has"},
		{[]string{"allreduce", "--algorithm", "ring,ring"}, "--algorithm ring is given twice"},
		{[]string{"allgather", "--algorithm", "bruck:ports=0"}, "ports cannot be 0"},
		{[]string{"allreduce", "--protocol", "get"}, "unknown flag: --protocol"},
		{[]string{"latency", "--protocol", "get"}, "unknown flag: --protocol"},
		{[]string{"latency", "--device", "pigeon"}, "use one of shm, hybrid, "},
		{[]string{"latency", "--device", "rd,rd"}, "given twice"},
		{[]string{"idle", "--plot", "x.svg"}, "unknown flag: --plot"},
	} {
		got := muster(t, t.TempDir(), append([]string{"bench"}, c.args...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("muster bench %q must be refused with %q; got %+v", c.args, c.want, got)
		}
	}
}

func TestBenchRejectsTwoProtocolsInOneJob(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := muster(t, t.TempDir(), "run", "-n", "2", self, "bench", "overlap", "--protocol", "get,put")
	if got.status == 0 || !strings.Contains(got.err, "a running job has one protocol") || got.out != "" {
		t.Errorf("two protocols for one job gave %+v", got)
	}
}

func TestBenchAlternatesWorldsOfOneJob(t *testing.T) {
	got := muster(t, t.TempDir(), "bench", "rndv-overhead", "--protocol", "off,get,put", "--rounds", "2", "--sizes", "1K,256K", "-i", "20", "--json")
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	times, compared, shares := 0, 0, 0
	for line := range strings.Lines(got.out) {
		var r bench.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		switch {
		case r.Against == "" && r.Value > 0 && r.Unit == "us":
			times++
		case r.Against == "off" && r.Protocol != "off" && r.Unit == "%":
			compared++
		case r.Metric == "mixed/control" && r.Unit == "ppm" && r.Value > 0:
			shares++
		default:
			t.Errorf("a figure is %+v", r)
		}
	}
	// Five loops at 1 KB, and four at 256 KB, which has no loop for wrong predictions.
	if times != 9*3 || compared != 9*2 || shares != 3 {
		t.Errorf("there are %d times, %d comparisons and %d shares, want 27, 18 and 3:\n%s", times, compared, shares, got.out)
	}
}

func TestBenchFailures(t *testing.T) {
	got := muster(t, t.TempDir(), "bench", "failures", "-n", "4", "-i", "2", "--json")
	var metrics []string
	for line := range strings.Lines(got.out) {
		var r bench.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Value <= 0 || r.Low > r.Value || r.High < r.Value {
			t.Errorf("%q: %v", line, err)
		}
		metrics = append(metrics, r.Metric)
	}
	want := []string{"allreduce", "agree", "shrink", "revoke", "allreduce-failed", "agree-failed", "shrink-failed", "revoke-failed"}
	if got.status != 0 || !slices.Equal(metrics, want) || !strings.Contains(got.err, "the job continues with 3 ranks") {
		t.Errorf("the metrics are %q, want %q, and a rank fails:\n%+v", metrics, want, got)
	}
}

// The job's own world has started the CPU profile of the process.
func TestFurtherWorldHasNoCPUProfile(t *testing.T) {
	cfg, err := furtherConfig([]string{"MUSTER_PPROF=profiles", "MUSTER_CHANNEL=rc"}, []string{"MUSTER_CHANNEL=ud"})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.PProf != "" || cfg.Channel != "ud" {
		t.Errorf("PProf is %q and Channel %q", cfg.PProf, cfg.Channel)
	}
}

func TestReplaceEnvironRestores(t *testing.T) {
	t.Setenv("PMI_FD", "7")
	t.Setenv("PMI_RANK", "1")
	before := os.Environ()
	restore := replaceEnviron(map[string]string{"MUSTER_RANK": "0"}, "PMI_")
	if os.Getenv("PMI_FD") != "" || os.Getenv("PMI_RANK") != "" || os.Getenv("MUSTER_RANK") != "0" {
		t.Errorf("in between it is %v", os.Environ())
	}
	restore()
	after := os.Environ()
	slices.Sort(before)
	slices.Sort(after)
	if !slices.Equal(before, after) {
		t.Errorf("before it was %v, then %v", before, after)
	}
}

func TestBenchAlternatesAndPlotsProtocols(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "bench", "exchange", "--protocol", "get,put", "--rounds", "2", "--sizes", "64K", "--ratios", "0.5,2",
		"-i", "5", "--json", "--plot", "exchange.svg")
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	seen := map[string]int{}
	for line := range strings.Lines(got.out) {
		var r bench.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		seen[r.Metric+" "+r.Protocol+" "+r.Against]++
		if r.Against == "" && r.Value <= 0 || r.Size != 64<<10 || r.Min > r.Value || r.P99 < r.Value {
			t.Errorf("a figure is %+v", r)
		}
	}
	for _, want := range []string{"model-1/0.5 get ", "model-2/2 put ", "model-1/2 put get", "model-2/communication put get"} {
		if seen[want] != 1 {
			t.Errorf("%q was printed %d times; there are %v", want, seen[want], seen)
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, "exchange.svg"))
	if err != nil || strings.Count(string(svg), "<polyline") != 2 || !strings.Contains(string(svg), "change against get (%)") {
		t.Errorf("the picture is %v %s", err, svg)
	}
}

func TestBenchPlotsOneProtocol(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "bench", "progress", "--protocol", "put", "--sizes", "64K", "-i", "5", "--plot", "progress.svg")
	if got.status != 0 || !strings.Contains(got.out, "# Protocol: put") || !strings.Contains(got.out, "recv/receiver-first/pages") {
		t.Errorf("%+v", got)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "progress.svg"))
	if err != nil || strings.Count(string(svg), "<polyline") != 4 {
		t.Errorf("the picture is %v %s", err, svg)
	}
}

func TestComparisonIsPerRound(t *testing.T) {
	c := comparison{variants: []string{"off", "spec"}}
	// The machine is twice as slow in the second round.
	for _, round := range [][2]float64{{10, 11}, {20, 22}, {10, 12}} {
		for k, v := range round {
			c.add(k, []bench.Result{{Metric: "plain", Size: 8, Unit: "us", Value: v}, {Metric: "share", Size: 8, Unit: "%", Value: 5}})
		}
	}
	var values []float64
	for _, r := range c.results() {
		values = append(values, r.Value)
		if r.Against != "" && (r.Unit != "%" || r.Protocol != "spec") {
			t.Errorf("a comparison is %+v", r)
		}
	}
	if len(values) != 5 {
		t.Fatalf("there are %v; want two times, their comparison and two shares", values)
	}
	values[2] = float64(int(values[2]*1000+.5)) / 1000
	if !slices.Equal(values, []float64{10, 12, 10, 5, 5}) {
		t.Errorf("the figures are %v; want 10 and 12 µs, 10 %% more, twice 5 %%", values)
	}
}
