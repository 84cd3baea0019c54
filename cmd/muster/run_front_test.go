//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/needs"
)

func TestUseFront(t *testing.T) {
	for _, c := range []struct {
		name       string
		folder     string // of the library, relative to that of the executable
		env, extra []string
		want       string // LD_LIBRARY_PATH after the folder
	}{
		{name: "beside the executable", folder: "."},
		{name: "make cabi", folder: "cabi", env: []string{"A=b"}},
		{name: "installed", folder: "../lib/muster"},
		{name: "a path of the user follows", folder: "cabi", env: []string{"LD_LIBRARY_PATH=/x:/y"}, want: ":/x:/y"},
		{name: "--env has precedence", folder: "cabi", env: []string{"LD_LIBRARY_PATH=/x"}, extra: []string{"LD_LIBRARY_PATH=/z"}, want: ":/z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bin := filepath.Join(t.TempDir(), "bin")
			folder := filepath.Join(bin, c.folder)
			for _, dir := range []string{bin, folder} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			executable := filepath.Join(bin, "muster")
			for _, file := range []string{executable, filepath.Join(folder, mpichLibrary), filepath.Join(folder, needs.CoreLibrary)} {
				if err := os.WriteFile(file, nil, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			link := filepath.Join(t.TempDir(), "muster")
			if err := os.Symlink(executable, link); err != nil {
				t.Fatal(err)
			}
			for _, started := range []string{executable, link} {
				var out strings.Builder
				cfg := launch.Config{Env: c.env, ExtraEnv: c.extra, Output: launch.Output{Stderr: &out}}
				if err := (&frontFlags{mpich: true}).set(started, &cfg); err != nil {
					t.Fatal(err)
				}
				if got, want := lastValue(cfg.ExtraEnv, "LD_LIBRARY_PATH="), folder+c.want; got != want {
					t.Errorf("LD_LIBRARY_PATH must be %s, got %s", want, got)
				}
				if want := "muster: the ranks load " + filepath.Join(folder, mpichLibrary) + "\n"; out.String() != want {
					t.Errorf("one line must name the library: want %q, got %q", want, out.String())
				}
			}
			var out strings.Builder
			if err := (&frontFlags{mpich: true}).set(executable, &launch.Config{Output: launch.Output{Stderr: &out, Quiet: true}}); err != nil || out.String() != "" {
				t.Errorf("-q must print nothing: %q, %v", out.String(), err)
			}
		})
	}
}

// One library without the other is of no use: the first loads the second.
func TestFrontNotFound(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, mpichLibrary), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if folder, err := findFronts(filepath.Join(bin, "muster")); err == nil || !strings.Contains(err.Error(), bin) {
		t.Errorf("a folder without %s must not do: %q, %v", needs.CoreLibrary, folder, err)
	}
	got := muster(t, bin, "run", "--mpich", "-n", "1", "true")
	if got.status != 2 || !strings.Contains(got.err, "make cabi") {
		t.Errorf("without the library run must fail and name the remedy: %+v", got)
	}
}
