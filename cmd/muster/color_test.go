//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/doctor"
)

func TestColorsAreForTerminals(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	device, err := os.OpenFile("/dev/null", os.O_WRONLY, 0) // a device of characters, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := paint(device, colorRed, "x"); got != colorRed+"x"+colorOff {
		t.Errorf("on a terminal: %q", got)
	}
	if got := paint(file, colorRed, "x") + paint(new(strings.Builder), colorRed, "x"); got != "xx" {
		t.Errorf("in files: %q", got)
	}
	for _, v := range [][2]string{{"NO_COLOR", "1"}, {"TERM", "dumb"}} {
		t.Run(v[0], func(t *testing.T) {
			t.Setenv(v[0], v[1])
			if got := paint(device, colorRed, "x"); got != "x" {
				t.Errorf("with %s=%s: %q", v[0], v[1], got)
			}
		})
	}
}

func TestDoctorColorsLevels(t *testing.T) {
	report := doctor.Report{Results: []doctor.Result{{Findings: []doctor.Finding{{Level: doctor.Problem, Detail: "d", Advice: "a"}}}}}
	var plain, painted strings.Builder
	if err := report.WriteText(&plain, doctor.Style{}); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteText(&painted, doctor.Style{Paint: paintLevel}); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(plain.String(), "problem ", colorRed+"problem"+colorOff+" ", 1)
	if painted.String() != want || want == plain.String() {
		t.Errorf("got %q, want %q", painted.String(), want)
	}
}
