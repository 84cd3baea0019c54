//go:build !windows

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/advise"
)

// TestTuneKeepsWhatIsFaster plays a program whose time depends on the settings.
func TestTuneKeepsWhatIsFaster(t *testing.T) {
	noise := 0
	r := tuneRuns{trace: "/t.json", rounds: defaultRounds, log: io.Discard, elapsed: func(f *settingsFile) (float64, error) {
		noise++
		time := 10 + 0.1*float64(noise%3)
		switch f.Settings["MUSTER_SPECULATE"] {
		case "always":
			time *= 0.9
		case "never":
			time *= 1.2
		}
		if strings.Contains(f.Settings["MUSTER_COLLECTIVE"], "bcast=chain") {
			time *= 0.8
		}
		if strings.Contains(f.Settings["MUSTER_COLLECTIVE"], "bcast=binomial") {
			time *= 0.85
		}
		if f.MapBy == "traffic=/t.json" {
			time *= 0.7
		}
		return time, nil
	}}
	f, err := r.find([]advise.Entry{{Name: advise.MapBy, Value: "traffic=TRACE"}, {Name: "MUSTER_SPECULATE", Value: "never"}, {Name: "MUSTER_CREDIT", Value: "1000000"},
		{Name: "MUSTER_COLLECTIVE", Value: "bcast=binomial"}, {Name: "MUSTER_COLLECTIVE", Value: "bcast=chain"}, {Name: "MUSTER_SPECULATE", Value: "always"}})
	if err != nil || f.MapBy != "traffic=/t.json" || fmt.Sprint(f.environ()) != "[MUSTER_COLLECTIVE=bcast=chain MUSTER_SPECULATE=always]" || len(f.Measured) != 4 {
		t.Errorf("%+v, %v", f, err)
	}
	if all := f.Measured[len(f.Measured)-1]; all.Entry != "all" || all.Median < 0.49 || all.Median > 0.52 {
		t.Errorf("together: %+v", all)
	}
	// Two entries that are faster alone, and not together.
	r.elapsed = func(f *settingsFile) (float64, error) {
		switch f.Settings["MUSTER_SPECULATE"] + f.MapBy {
		case "":
			noise++
			if noise > 50 { // when all are compared, the runs without are fast too
				return 0.5, nil
			}
			return 1, nil
		}
		return 0.8, nil
	}
	noise = 46
	if f, err := r.find([]advise.Entry{{Name: "MUSTER_SPECULATE", Value: "never"}}); err != nil || len(f.Settings) > 0 || f.Measured != nil {
		t.Errorf("what is not confirmed must not be written: %+v, %v", f, err)
	}
}

func TestSettingsFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "s.json")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	show := []string{"--label=never", "-n", "1", "sh", "-c", "echo $MUSTER_SPECULATE $MUSTER_PROGRESS"}
	write(`{"settings": {"MUSTER_SPECULATE": "never", "MUSTER_PROGRESS": "async"}}`)
	if got := muster(t, dir, append([]string{"run", "--settings", name}, show...)...); got.out != "never async\n" {
		t.Errorf("%+v", got)
	}
	if got := muster(t, dir, append([]string{"run", "--settings", name, "--env", "MUSTER_SPECULATE=always"}, show...)...); got.out != "always async\n" {
		t.Errorf("--env has precedence: %+v", got)
	}
	t.Setenv("MUSTER_PROGRESS", "polling")
	if got := muster(t, dir, append([]string{"run", "--settings", name}, show...)...); got.out != "never polling\n" {
		t.Errorf("the environment has precedence: %+v", got)
	}
	for text, want := range map[string]string{
		`{"settings": {"MUSTER_SPECULAT": "never"}}`:                    "did you mean MUSTER_SPECULATE?",
		`{"settings": {"MUSTER_SPECULATE": "perhaps"}}`:                 "want auto, always or never",
		`{"settings": {"PATH": "/"}}`:                                   "PATH is not a setting",
		`{"setting": {}}`:                                               "unknown field",
		`{"map_by": "traffic=nothing.json", "settings": {}}`:            filepath.Join(dir, "nothing.json"),
		`{"settings": {"MUSTER_COLLECTIVE": "allreduce=no-such-name"}}`: "MUSTER_COLLECTIVE",
	} {
		write(text)
		if got := muster(t, dir, append([]string{"run", "--settings", name}, show...)...); got.status != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%s must be rejected with %q: %+v", text, want, got)
		}
	}
	if got := muster(t, dir, "tune", "--from", name); got.status == 0 || !strings.Contains(got.err, "--from needs the program") {
		t.Errorf("%+v", got)
	}
}
