//go:build unix

package advise

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// finding is an element of the output of muster advise --json.
type finding struct {
	Problem string
	Sites   []string
	Gain    float64

	Prediction *struct {
		Now   float64 `json:"now_s"`
		Then  float64 `json:"predicted_s"`
		Error float64 `json:"replay_error"`
	}
}

var planted = map[string]string{
	"imbalance": "load imbalance",
	"serial":    "message to each rank, one by one",
	"gather":    "message to each rank, one by one",
	"burst":     "many short messages",
	"wait":      "wait without computation",
	"blocking":  "wait without computation",
	"late":      "receive posted late",
	"placement": "placement of ranks",
	"exchange":  "short messages between all ranks, one by one",
	"scalars":   "many short collectives",
	"barrier":   "barrier before a collective",
	"thirds":    "ranks without work",
}

// files are what the test runs.
type files struct{ muster, program, pi, rsh string }

// build builds muster and the programs. The remote command starts agents on this machine, with
// the name of the host if the kernel permits that.
func build(t *testing.T) files {
	dir := t.TempDir()
	f := files{filepath.Join(dir, "muster"), filepath.Join(dir, "program"), filepath.Join(dir, "pi"), filepath.Join(dir, "rsh")}
	script := `shift; exec "$@"`
	if namesHosts() {
		script = `exec unshare -u sh -c 'hostname "$0" && exec "$@"' "$@"`
	}
	if err := os.WriteFile(f.rsh, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, pkg := range map[string]string{f.muster: "../../cmd/muster", f.program: "./program", f.pi: "../../examples/03-pi"} {
		if out, err := exec.Command("go", "build", "-o", file, pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return f
}

func namesHosts() bool { return exec.Command("unshare", "-u", "hostname", "a").Run() == nil }

// marked returns the lines with the comment "here", by function.
func marked(t *testing.T) map[string]string {
	text, err := os.ReadFile("program/main.go")
	if err != nil {
		t.Fatal(err)
	}
	lines, name := map[string]string{}, ""
	for i, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "func "); ok {
			name, _, _ = strings.Cut(rest, "(")
		}
		if strings.HasSuffix(line, "// here") {
			lines[name] = fmt.Sprintf("program/main.go:%d", i+1)
		}
	}
	return lines
}

// on returns the flags that run a job on hosts of this machine.
func (f files) on(hosts string) []string {
	return []string{"--hosts", hosts, "--rsh", f.rsh + " {host}"}
}

// advise runs a program and returns the advice.
func (f files) advise(t *testing.T, args ...string) (all []finding) {
	name := strings.Join(args, " ")
	cmd := exec.Command(f.muster, append([]string{"advise", "--json", "--"}, args...)...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, complaints.String())
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return all
}

// loadAverage returns the number of threads that wanted a core in the last minute, 0 if unknown.
func loadAverage() (load float64) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &load)
	}
	return load
}

func TestPlantedProblemsAreFound(t *testing.T) {
	f := build(t)
	lines := marked(t)
	onTwoHosts := slices.Concat([]string{"-n", "4"}, f.on("a:2,b:2"), []string{f.program})
	for name, problem := range planted {
		t.Run(name, func(t *testing.T) {
			if name == "placement" && !namesHosts() {
				t.Skip("needs hosts with names of their own")
			}
			var all []finding
			i := -1
			for range 3 { // on a busy machine ranks are late for other reasons
				all = f.advise(t, slices.Concat(onTwoHosts, []string{name})...)
				if i = slices.IndexFunc(all, func(f finding) bool { return f.Problem == problem }); i == 0 || i == 1 {
					break
				}
			}
			if i < 0 || i > 1 {
				t.Fatalf("%q is not among the first two findings: %+v", problem, all)
			}
			if where := lines[name]; where != "" && !strings.HasPrefix(strings.Join(all[i].Sites, ""), where+" ") {
				t.Errorf("the call site is %v, want %s", all[i].Sites, where)
			}
			if p := all[i].Prediction; p == nil {
				t.Error("there is no prediction")
			} else if t.Logf("%.3f s now, %.3f s predicted, error of the replay %.1f %%", p.Now, p.Then, 100*p.Error); p.Then >= p.Now || p.Error > 0.05 {
				t.Errorf("the prediction is no gain, or the replay without a change is wrong")
			}
		})
	}
	app := []string{"-n", "2", f.muster, "app"}
	with := func(args []string, more ...string) []string { return slices.Concat(args, more) }
	for name, args := range map[string][]string{
		"balance": with(onTwoHosts, "balance"), "overlap": with(onTwoHosts, "overlap"), "work": with(onTwoHosts, "work"),
		"cg": with(app, "cg", "--class", "S"), "ft": with(app, "ft", "--class", "S"), "is": with(app, "is", "--class", "S"), "ep": with(app, "ep", "--class", "S"),
		"pi": {"-n", "2", f.pi},
	} {
		t.Run(name, func(t *testing.T) {
			if load := loadAverage(); load > 4 {
				t.Skipf("the load of this machine is %.0f: ranks are late because they have no core", load)
			}
			// On a busy machine a rank may be late because it has no core.
			var all []finding
			for range 3 {
				all = slices.DeleteFunc(f.advise(t, args...), func(f finding) bool { return f.Gain <= 0.03 })
				if len(all) == 0 {
					return
				}
			}
			t.Errorf("findings where there is nothing to change: %+v", all)
		})
	}
}

// TestPlacementByTraffic places a badly placed halo exchange by its trace.
func TestPlacementByTraffic(t *testing.T) {
	if !namesHosts() {
		t.Skip("needs hosts with names of their own")
	}
	f := build(t)
	traced := filepath.Join(t.TempDir(), "halo.json.gz")
	run := func(flags ...string) (bytes int) {
		args := slices.Concat([]string{"run", "-q", "--label=never", "-n", "16"}, f.on("a:4,b:4,c:4,d:4"), flags, []string{f.program, "halo"})
		out, err := exec.Command(f.muster, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if bytes, err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
			t.Fatalf("%v: %s", args, out)
		}
		return bytes
	}
	before := run("--trace", traced)
	after := run("--map-by", "traffic="+traced)
	t.Logf("bytes between hosts: %d before, %d after", before, after)
	if float64(after) > 0.6*float64(before) { // a quarter of the grid on each host: 8 pairs of 24
		t.Errorf("%d bytes between hosts before, %d after", before, after)
	}
}
