//go:build !windows

package launch

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleForeign maps a file, as a program does that loads a library.
func roleForeign() int {
	file, err := os.Open(os.Getenv("LIBRARY"))
	if err != nil {
		return complain(err)
	}
	if _, err := syscall.Mmap(int(file.Fd()), 0, 1, syscall.PROT_READ, syscall.MAP_PRIVATE); err != nil {
		return complain(err)
	}
	stay, err := time.ParseDuration(os.Getenv("STAY"))
	if err != nil {
		return complain(err)
	}
	time.Sleep(stay) // a computation without messages
	return 0
}

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
	_, err = Run(ctx, Config{Ranks: 4, Prog: prog, Env: os.Environ(), Output: Output{Stdout: io.Discard, Stderr: io.Discard}})
	for _, want := range []string{"is linked with libmpi.so.", "4 jobs of one rank", "muster cc", "make cabi", "mpirun"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error must contain %q: %v", want, err)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	r := runJob(t, Config{Ranks: 2, Prog: "/usr/bin/env", Args: []string{prog}, Env: os.Environ()})
	if r.Status != 1 || !strings.Contains(r.err, "libmpi.so.") || !strings.Contains(r.err, "2 jobs of one rank") {
		t.Errorf("a program of Open MPI below env must fail: %+v", r)
	}
}

func TestLibrariesOfMPI(t *testing.T) {
	for lib, want := range map[string]bool{
		"libmpi.so.40": true, "libmpi.so.40.30.4": true, "libmpi.so.20": true, "libmpi_cxx.so.40": true, "libmpi_mpifh.so.40": true, "libmpi_cray.so.12": true,
		"libmpi.so.12": false, "libmpi.so.12.1.8": false, "libmpich.so.12": false, "libmpifort.so.12": false, "libmpi_abi.so.0": false,
		"libmpir.so.23": false, "libmpi.so": false, "libm.so.6": false,
	} {
		if isForeignMPI(lib) != want {
			t.Errorf("%s: %v", lib, !want)
		}
	}
}
