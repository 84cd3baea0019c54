//go:build !windows

package launch

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program of Open MPI would be as many jobs as there are ranks.
func TestOpenMPIProgramIsRefused(t *testing.T) {
	mpicc, err := exec.LookPath("mpicc.openmpi")
	if err != nil {
		t.Skip("mpicc.openmpi is not installed (Debian package libopenmpi-dev)")
	}
	dir := t.TempDir()
	source, prog := filepath.Join(dir, "hello.c"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte(mpichHello), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, mpicc, "-o", prog, source).CombinedOutput(); err != nil {
		t.Skipf("mpicc.openmpi does not work here: %v\n%s", err, out)
	}
	_, err = Run(ctx, Config{Ranks: 4, Prog: prog, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard})
	for _, want := range []string{"built with Open MPI (libmpi.so.", "4 jobs of one rank", "mpirun", "MPICH"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error must contain %q: %v", want, err)
		}
	}
}

func TestLibrariesOfMPI(t *testing.T) {
	for lib, want := range map[string]bool{
		"libmpi.so.40": true, "libmpi.so.20": true, "libopen-rte.so.40": true,
		"libmpi.so.12": false, "libmpich.so.12": false, "libm.so.6": false,
	} {
		if isOpenMPI(lib) != want {
			t.Errorf("%s: %v", lib, !want)
		}
	}
}
