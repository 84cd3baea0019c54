package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program that a script starts, or an interpreter, loads the library of another MPI: the
// launcher ends the job, and says what to do. Other programs run as before.
func TestForeignLibraryIsFound(t *testing.T) {
	for _, c := range []struct {
		library, stay string
		ranks         int
		hosts         string
		fails         bool
	}{
		{"libmpi.so.40.30.4", "20s", 2, "", true},
		{"libmpi.so.40.30.4", "20s", 3, "a:2,b:1", true},
		{"libmpi_mpifh.so.40.30.0", "500ms", 3, "", true},
		{"libmpi.so.40.30.4", "200ms", 1, "", false},
		{"libmpi.so.12.1.8", "200ms", 2, "", false},
		{"libmpir.so.23", "200ms", 2, "", false},
	} {
		library := filepath.Join(t.TempDir(), c.library)
		if err := os.WriteFile(library, []byte("ELF"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Ranks: c.ranks, Prog: "/bin/sh", Args: belowAShell(t), ExtraEnv: []string{"LIBRARY=" + library, "STAY=" + c.stay}}
		var r jobRun
		if c.hosts == "" {
			r = runRole(t, "foreign", cfg)
		} else {
			r = onHosts(t, "foreign", c.hosts, cfg)
		}
		if !c.fails {
			if r.Status != 0 || r.err != "" {
				t.Errorf("%d ranks that map %s must run without a word: %+v", c.ranks, c.library, r)
			}
			continue
		}
		for _, want := range []string{library, "jobs of one rank each", "muster cc", "make cabi"} {
			if !strings.Contains(r.Cause, want) {
				t.Errorf("%+v: the cause must contain %q: %+v", c, want, r)
			}
		}
		if r.Status != 1 || r.took > slow*10*time.Second {
			t.Errorf("%+v: the job must end with status 1 at once: %+v", c, r)
		}
	}
}

// A job of another launcher below a rank is not the launcher's business.
func TestLibraryBelowAnotherLauncher(t *testing.T) {
	dir := t.TempDir()
	library, mpirun := filepath.Join(dir, "libmpi.so.40"), filepath.Join(dir, "mpirun")
	if err := os.WriteFile(library, []byte("ELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mpirun, []byte("#!/bin/sh\n\"$1\"; true\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := runRole(t, "foreign", Config{Ranks: 2, Prog: mpirun, Args: []string{self(t)}, ExtraEnv: []string{"LIBRARY=" + library, "STAY=200ms"}})
	if r.Status != 0 || r.err != "" {
		t.Errorf("a job of mpirun in each rank must run without a word: %+v", r)
	}
}
