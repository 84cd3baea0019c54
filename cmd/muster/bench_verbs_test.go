//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/rdma/ofi"
)

func TestVerbsBenchRejectsBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"verbs-latency", "--device", "string-and-cans"}, "use one of tcp, udp, shm, "},
		{[]string{"verbs-latency", "--device", "tcp,tcp"}, "given twice"},
		{[]string{"verbs-latency", "--against", "shm"}, "not among the devices"},
		{[]string{"verbs-latency", "--rounds", "0"}, "at least once"},
		{[]string{"verbs-latency", "--time", "-1s"}, "100ms"},
		{[]string{"verbs-latency", "--sizes", "0"}, "empty messages"},
		{[]string{"verbs-latency", "--address", "here"}, "not an IP address"},
		{[]string{"verbs-latency", "--listen", "x:1", "--dial", "x:1"}, "exclude each other"},
		{[]string{"verbs-bw", "--rate", "fast"}, "--rate"},
		{[]string{"verbs-bw", "--loss", "1"}, "share of packets"},
		{[]string{"verbs-memory", "--sizes", "8"}, "unknown flag: --sizes"},
	} {
		got := muster(t, t.TempDir(), append([]string{"bench"}, c.args...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("muster bench %q must be refused with %q; got %+v", c.args, c.want, got)
		}
	}
}

// verbsResults reads what a verbs benchmark prints as JSON.
func verbsResults(t *testing.T, out string) []bench.Result {
	t.Helper()
	var list []bench.Result
	for line := range strings.Lines(out) {
		var r bench.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if r.Value <= 0 || r.Min > r.Value || r.P99 < r.Value || r.Way == "" {
			t.Errorf("a figure is %+v", r)
		}
		list = append(list, r)
	}
	return list
}

func TestVerbsBenchAlternatesDevices(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "bench", "verbs-latency", "--device", "tcp,rc,rc-tls,rd,rd-aead,hybrid,shm", "--rounds", "2", "--time", "2ms", "--sizes", "64,2K",
		"--json", "--plot", "latency.svg")
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	times, ratios := 0, 0
	for _, r := range verbsResults(t, got.out) {
		switch {
		case r.Bench == "verbs-latency" && r.Unit == "us" && r.Against == "":
			times++
		case r.Against == "tcp" && r.Device != "tcp" && r.Unit == "ratio":
			ratios++
		default:
			t.Errorf("a figure is %+v", r)
		}
	}
	if times != 14 || ratios != 12 {
		t.Errorf("there are %d times and %d ratios, want 14 and 12:\n%s", times, ratios, got.out)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "latency.svg"))
	if err != nil || strings.Count(string(svg), "<polyline") != 7 {
		t.Errorf("the picture is %v %s", err, svg)
	}
}

func TestVerbsBenchSkipsMissingLibfabric(t *testing.T) {
	if ofi.Built {
		t.Skip("this build has libfabric")
	}
	got := muster(t, t.TempDir(), "bench", "verbs-latency", "--device", "tcp,ofi:net", "--rounds", "1", "--time", "1ms", "--sizes", "8")
	if got.status != 0 || !strings.Contains(got.out, "# ofi:net at 8 bytes") || !strings.Contains(got.out, "built without it") {
		t.Errorf("%+v", got)
	}
}

func TestVerbsBenchRejectsRunInJob(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := muster(t, t.TempDir(), "run", "-n", "2", self, "bench", "verbs-latency")
	if got.status == 0 || !strings.Contains(got.err, "starts its two processes itself") {
		t.Errorf("as ranks of a job it gives %+v", got)
	}
}

func TestVerbsBenchListenAndDial(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	meet, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other := exec.CommandContext(t.Context(), self, "bench", "verbs-bw", "--dial", meet)
	other.Dir, other.Env, other.Stderr = dir, append(os.Environ(), asMuster+"=1"), os.Stderr
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	got := muster(t, dir, "bench", "verbs-bw", "--listen", meet, "--device", "rc", "--rounds", "1", "--time", "2ms", "--sizes", "1K", "--json")
	if err := other.Wait(); err != nil {
		t.Errorf("the one that dials ends with %v", err)
	}
	if list := verbsResults(t, got.out); got.status != 0 || len(list) != 1 || list[0].Device != "rc" || list[0].Metric != "bandwidth" {
		t.Errorf("%+v", got)
	}
}

func TestVerbsBenchRateLimit(t *testing.T) {
	if err := lab.Usable(); err != nil {
		t.Skip(err)
	}
	got := muster(t, t.TempDir(), "bench", "verbs-bw", "--device", "tcp", "--rounds", "1", "--time", "300ms", "--sizes", "64K", "--window", "4", "--rate", "100mbit", "--json")
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	list := verbsResults(t, got.out)
	if len(list) != 2 || list[1].Metric != "link" || list[1].Value > 110 {
		t.Errorf("on a cable of 100 Mbit/s it is %+v", list)
	}
}
