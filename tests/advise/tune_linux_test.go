package advise

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// tunedApps are the applications that TestTunedApps tunes, with a class that runs for seconds.
var tunedApps = map[string]string{"radix": "W", "ft": "W", "lu": "W", "mg": "W", "nbody": "W", "bt": "W", "heat": "S", "train": "W"}

// TestTunedApps finds settings for applications from their traces, and then measures again whether
// they are faster with them. It takes some hours, on a quiet machine:
//
//	muster lab --name advise up --hosts 4 --rate 1gbit
//	go test ./tests/advise -run TunedApps -v -timeout 8h -args -lab advise
func TestTunedApps(t *testing.T) {
	if *lab == "" {
		t.Skip("needs a lab (-lab), a quiet machine and some hours")
	}
	f, dir := build(t), t.TempDir()
	var slower, faster, done int
	for name, class := range tunedApps {
		t.Run(name, func(t *testing.T) {
			app := []string{"--lab=" + *lab, "-n", "4", f.muster, "app", name, "--class", class}
			traced, found := filepath.Join(dir, name+".json.gz"), filepath.Join(dir, name+".settings")
			f.output(t, slices.Concat([]string{"run", "-q", "--trace", traced}, app)...)
			f.output(t, slices.Concat([]string{"tune", "--from", traced, "-o", found, "--"}, app)...)
			text, err := os.ReadFile(found)
			if err != nil {
				t.Fatal(err)
			}
			var s struct {
				MapBy    string `json:"map_by"`
				Settings map[string]string
			}
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			done++
			if len(s.Settings) == 0 && s.MapBy == "" {
				t.Logf("%s: no settings, so nothing changes", name)
				return
			}
			var ratios []float64
			for range *labPairs {
				without := f.seconds(t, app)
				ratios = append(ratios, f.seconds(t, slices.Concat([]string{"--settings", found}, app))/without)
			}
			middle := median(ratios)
			t.Logf("%s: %.3f × the time (%.3f to %.3f) with %v %s", name, middle, ratios[0], ratios[len(ratios)-1], s.Settings, s.MapBy)
			if middle > 1.02 {
				slower++
			}
			if middle <= 0.95 {
				faster++
			}
		})
	}
	if done < len(tunedApps) {
		return // a part was selected, or has failed
	}
	if t.Logf("%d slower than 1.02 ×, %d at least 5 %% faster", slower, faster); slower > 0 || faster < 3 {
		t.Error("want none slower than 1.02 ×, and three at least 5 % faster")
	}
}

// TestTraceOverhead compares the times of applications with a trace and without, on a quiet machine.
// What is written when the job ends does not count:
//
//	go test ./tests/advise -run TraceOverhead -v -timeout 1h -args -lab advise
func TestTraceOverhead(t *testing.T) {
	if *lab == "" {
		t.Skip("needs a lab (-lab) and a quiet machine")
	}
	f, traced := build(t), filepath.Join(t.TempDir(), "trace.json")
	for name, class := range map[string]string{"cg": "W", "ft": "W", "is": "A", "lu": "W", "mg": "A", "nbody": "W"} {
		t.Run(name, func(t *testing.T) {
			app := []string{"--lab=" + *lab, "-n", "4", f.muster, "app", name, "--class", class}
			var ratios []float64
			for i := range *labPairs {
				with := func() float64 { return f.seconds(t, slices.Concat([]string{"--trace", traced}, app)) }
				without := func() float64 { return f.seconds(t, app) }
				if i%2 == 0 {
					ratios = append(ratios, with()/without())
				} else {
					ratios = append(ratios, 1/(without()/with()))
				}
			}
			middle := median(ratios)
			t.Logf("%s: %.3f × the time with a trace (%.3f to %.3f)", name, middle, ratios[0], ratios[len(ratios)-1])
			if middle > 1.02 {
				t.Error("want at most 1.02 ×")
			}
		})
	}
}

// output returns what a command of muster prints.
func (f files) output(t *testing.T, args ...string) []byte {
	out, err := exec.Command(f.muster, args...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// seconds runs an application and returns the time that it measures itself.
func (f files) seconds(t *testing.T, args []string) float64 {
	out := f.output(t, slices.Concat([]string{"run", "-q", "--label=never"}, args, []string{"--json"})...)
	var result struct{ Seconds float64 }
	if err := json.Unmarshal(out, &result); err != nil || result.Seconds <= 0 {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return result.Seconds
}
