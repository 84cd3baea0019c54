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
	"columns":   "layout packed at each call",
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

// advise runs a program and returns the advice, and which share of the cores other programs had.
func (f files) advise(t *testing.T, args ...string) (all []finding, others float64) {
	name := strings.Join(args, " ")
	cmd := exec.Command(f.muster, append([]string{"advise", "--json", "--"}, args...)...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	busy, total := busyTicks()
	out, err := cmd.Output()
	busyNow, totalNow := busyTicks()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, complaints.String())
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	if totalNow > total {
		own := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * ticksPerSecond
		others = (busyNow - busy - own) / (totalNow - total)
	}
	return all, others
}

// ticksPerSecond is the unit of /proc/stat.
const ticksPerSecond = 100

// busyTicks returns the ticks that all cores have spent at work, and all ticks; 0 if unknown.
func busyTicks() (busy, all float64) {
	text, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(first) {
		if v, err := strconv.ParseFloat(field, 64); err == nil && i < 9 { // user time includes guest time
			all += v
			if i != 4 && i != 5 { // idle, iowait
				busy += v
			}
		}
	}
	return busy, all
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
				all, _ = f.advise(t, slices.Concat(onTwoHosts, []string{name})...)
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
}

// TestCleanPrograms: nothing is found where there is nothing to change. Beside other programs a
// rank is late because it has no core, so such runs do not count.
func TestCleanPrograms(t *testing.T) {
	f := build(t)
	onTwoHosts := slices.Concat([]string{"-n", "4"}, f.on("a:2,b:2"), []string{f.program})
	app := []string{"-n", "2", f.muster, "app"}
	with := func(args []string, more ...string) []string { return slices.Concat(args, more) }
	const tries, fewest, mostOthers = 8, 3, 0.1
	for name, args := range map[string][]string{
		"balance": with(onTwoHosts, "balance"), "overlap": with(onTwoHosts, "overlap"), "work": with(onTwoHosts, "work"),
		"cg": with(app, "cg", "--class", "W"), "ft": with(app, "ft", "--class", "W"), "is": with(app, "is", "--class", "W"), "ep": with(app, "ep", "--class", "S"),
		"pi": {"-n", "2", f.pi},
	} {
		t.Run(name, func(t *testing.T) {
			var faults [][]finding
			for range tries {
				all, others := f.advise(t, args...)
				all = slices.DeleteFunc(all, func(f finding) bool { return f.Gain <= 0.03 })
				if len(all) == 0 {
					return
				}
				if others < mostOthers {
					if faults = append(faults, all); len(faults) == fewest {
						t.Fatalf("findings where there is nothing to change: %+v", faults)
					}
				}
			}
			t.Skipf("skipped: needs a machine without other programs; in %d of %d runs they had more than %.0f %% of the cores", tries-len(faults), tries, 100*mostOthers)
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
