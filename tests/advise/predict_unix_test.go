//go:build unix

package advise

import (
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestPredictionsComeTrue makes the suggested change in each program, and compares the gain with the
// predicted one.
func TestPredictionsComeTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it runs each program six times")
	}
	if load := loadAverage(); load > 4 {
		t.Skipf("the load of this machine is %.0f: times mean nothing", load)
	}
	f := build(t)
	file := filepath.Join(t.TempDir(), "trace.json")
	traced := func(args ...string) {
		if out, err := exec.Command(f.muster, slices.Concat([]string{"run", "-q", "-n", "4", "--trace", file}, f.on("a:2,b:2"), args)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	read := func(to any, args ...string) {
		out, err := exec.Command(f.muster, args...).Output()
		if err == nil {
			err = json.Unmarshal(out, to)
		}
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	var wrong []string
	var errors []float64
	for _, name := range sortedNames(planted) {
		if name == "placement" && !namesHosts() {
			continue
		}
		var predicted, measured []float64
		for range 3 {
			traced(f.program, name)
			var all []finding
			read(&all, "advise", "--json", file)
			i := slices.IndexFunc(all, func(f finding) bool { return f.Problem == planted[name] && f.Prediction != nil })
			if i < 0 {
				continue
			}
			p := all[i].Prediction
			if name == "placement" {
				traced("--map-by", "traffic="+file, f.program, name)
			} else {
				traced(f.program, name, "changed")
			}
			var report struct {
				Begin int64 `json:"begin_ns"`
				End   int64 `json:"end_ns"`
			}
			read(&report, "trace", "--json", file)
			predicted = append(predicted, 1-p.Then/p.Now)
			measured = append(measured, 1-float64(report.End-min(report.Begin, 0))/1e9/p.Now)
		}
		if len(predicted) == 0 {
			wrong = append(wrong, name)
			continue
		}
		slices.Sort(predicted)
		slices.Sort(measured)
		p, m := predicted[len(predicted)/2], measured[len(measured)/2]
		t.Logf("%-9s predicted gain %3.0f %%, measured %3.0f %%", name, 100*p, 100*m)
		if errors = append(errors, math.Abs(p-m)/math.Max(math.Abs(m), 0.01)); m <= 0 || p <= 0 {
			wrong = append(wrong, name)
		}
	}
	slices.Sort(errors)
	if len(errors) > 0 {
		t.Logf("median error of the gains: %.0f %%", 100*errors[len(errors)/2])
	}
	if len(wrong) > 2 { // on a machine with few cores; one on a quiet one
		t.Errorf("no gain, or none predicted, for %v", wrong)
	}
}
