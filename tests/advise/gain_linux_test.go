package advise

import (
	"encoding/json"
	"flag"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

var (
	lab      = flag.String("lab", "", "name of a lab with four hosts, for the tests that measure; empty: they are skipped")
	labPairs = flag.Int("pairs", 7, "pairs of runs that these tests compare")
)

// span is a part of the output of muster trace --json.
type span struct {
	Begin int64 `json:"begin_ns"`
	End   int64 `json:"end_ns"`
}

// runTraced runs a program with a trace and returns the time of its calls in seconds.
func (f files) runTraced(t *testing.T, file string, args ...string) float64 {
	if out, err := exec.Command(f.muster, append([]string{"run", "-q", "--trace", file}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	out, err := exec.Command(f.muster, "trace", "--json", file).Output()
	var s span
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil || s.End <= s.Begin {
		t.Fatalf("%v: %v: %+v", args, err, s)
	}
	return float64(s.End-min(s.Begin, 0)) / 1e9
}

// median sorts its argument.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// TestPredictedGain compares the gain that advise predicts for the planted problems with the gain
// of the repaired programs, on a quiet machine:
//
//	muster lab --name advise up --hosts 4 --rate 1gbit
//	go test ./tests/advise -run PredictedGain -v -args -lab advise
func TestPredictedGain(t *testing.T) {
	if *lab == "" {
		t.Skip("needs a lab (-lab) and a quiet machine")
	}
	f, dir := build(t), t.TempDir()
	var errors []float64
	signs := 0
	for name, problem := range planted {
		t.Run(name, func(t *testing.T) {
			ranks, planted := "4", filepath.Join(dir, name+".json")
			if name == "placement" {
				ranks = "8"
			}
			args := []string{"--lab=" + *lab, "-n", ranks}
			before := slices.Concat(args, []string{f.program, name})
			after := slices.Concat(args, []string{f.program, name, "repaired"})
			if name == "placement" {
				after = slices.Concat([]string{"--map-by", "traffic=" + planted}, args, []string{f.program, name})
			}
			var predicted, measured []float64
			for i := range *labPairs {
				file := planted
				if i > 0 {
					file = filepath.Join(dir, "again.json")
				}
				now := f.runTraced(t, file, before...)
				then := f.runTraced(t, filepath.Join(dir, "after.json"), after...)
				measured = append(measured, 1-then/now)
				if gain, ok := f.predictedGain(t, file, problem); ok {
					predicted = append(predicted, gain)
				}
			}
			if len(predicted) == 0 {
				t.Fatalf("no prediction for %q", problem)
			}
			p, m := median(predicted), median(measured)
			t.Logf("%s: predicted %.1f %%, measured %.1f %% (%.1f to %.1f), error %.0f %%", name, 100*p, 100*m, 100*measured[0], 100*measured[len(measured)-1], 100*math.Abs(p-m)/math.Abs(m))
			errors = append(errors, math.Abs(p-m)/math.Abs(m))
			if p*m > 0 {
				signs++
			}
		})
	}
	if len(errors) < len(planted) {
		return // a part was selected, or has failed
	}
	middle := median(errors)
	t.Logf("median error %.0f %%, sign right in %d of %d", 100*middle, signs, len(planted))
	if middle > 0.25 || signs < len(planted)-1 {
		t.Error("predictions are wrong; want a median error of at most 25 %, and the right sign but in one")
	}
}

// predictedGain returns the share of the time of a trace that a finding is predicted to save.
func (f files) predictedGain(t *testing.T, file, problem string) (gain float64, ok bool) {
	out, err := exec.Command(f.muster, "advise", "--json", file).Output()
	var all []finding
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(f finding) bool { return f.Problem == problem && f.Prediction != nil })
	if i < 0 {
		return 0, false
	}
	return 1 - all[i].Prediction.Then/all[i].Prediction.Now, true
}
