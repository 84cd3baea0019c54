//go:build cabi

package release

// make install into a DESTDIR, and programs that are compiled and run with what is there.

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var bin = flag.String("release.bin", "../../bin", "BIN of make install")

// inside runs a command with PATH and other variables as the module file sets them.
func inside(t *testing.T, prefix, dir, name string, args ...string) string {
	t.Helper()
	lib := filepath.Join(prefix, "lib", "muster")
	t.Setenv("PATH", filepath.Join(lib, "bin")+":"+filepath.Join(prefix, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("PKG_CONFIG_PATH", filepath.Join(lib, "pkgconfig"))
	cmd := exec.Command(name, args...) // finds the name in the PATH above
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestInstall(t *testing.T) {
	folder, err := filepath.Abs(*bin)
	if err != nil {
		t.Fatal(err)
	}
	dest, work := t.TempDir(), t.TempDir()
	if out, err := exec.Command("make", "-C", "../..", "install", "BIN="+folder, "DESTDIR="+dest, "PREFIX=/opt/mpi").CombinedOutput(); err != nil {
		t.Fatalf("make install: %v\n%s", err, out)
	}
	prefix := filepath.Join(dest, "opt", "mpi")
	for name, text := range map[string]string{
		"greet.c": `#include <mpi.h>
#include <stdio.h>
int main(void) {
	int rank, sum;
	MPI_Init(0, 0);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("sum %d\n", sum);
	return MPI_Finalize();
}
`,
		"greet.f90": `program greet
  use mpi
  integer :: rank, total, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a,i0)', 'sum ', total
  call MPI_Finalize(ierr)
end program
`,
	} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flags := strings.Fields(inside(t, prefix, work, "pkg-config", "--cflags", "--libs", "mpi"))
	for _, build := range [][]string{
		{"muster-mpicc", "-o", "c", "greet.c"},
		{"mpicc", "-o", "link", "greet.c"},
		{"mpicxx", "-x", "c++", "-o", "cxx", "greet.c"},
		{"mpicc_abi", "-o", "abi", "greet.c"},
		{"mpifort", "-o", "fortran", "greet.f90"},
		slices.Concat([]string{"cc", "-o", "pc", "greet.c"}, flags),
	} {
		program := build[slices.Index(build, "-o")+1]
		t.Run(program, func(t *testing.T) {
			if needs := map[string]string{"fortran": "mpifort.mpich", "cxx": "c++"}[program]; needs != "" {
				if _, err := exec.LookPath(needs); err != nil {
					t.Skip(needs, "is not installed")
				}
			}
			inside(t, prefix, work, build[0], build[1:]...)
			if out := inside(t, prefix, work, "mpiexec", "-n", "3", "./"+program); !strings.HasSuffix(out, "sum 3\n") || !strings.Contains(out, prefix) {
				t.Errorf("it must load the library of %s and print the sum 3:\n%s", prefix, out)
			}
		})
	}
	if out := inside(t, prefix, work, "mpicc", "-show"); !strings.Contains(out, "-I"+prefix) || !strings.Contains(out, "-lmpich") {
		t.Errorf("mpicc -show must print the command: %s", out)
	}
	t.Run("manual", func(t *testing.T) {
		for _, page := range []string{"muster-run.1.gz", "muster-cc.1.gz", "muster-mpicc.1.gz", "muster-mpifort.1.gz"} {
			if _, err := os.Stat(filepath.Join(prefix, "share", "man", "man1", page)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("module", func(t *testing.T) { checkModule(t, prefix) })
}

// checkModule loads the module file as Environment Modules does.
func checkModule(t *testing.T, prefix string) {
	const modulecmd = "/usr/lib/x86_64-linux-gnu/modulecmd.tcl"
	if _, err := os.Stat(modulecmd); err != nil {
		t.Skip("Environment Modules are not installed (Debian package environment-modules)")
	}
	t.Setenv("MODULEPATH", filepath.Join(prefix, "share", "modulefiles"))
	out := inside(t, prefix, ".", "tclsh", modulecmd, "sh", "load", "muster")
	for _, want := range []string{
		"PATH=" + prefix + "/lib/muster/bin:" + prefix + "/bin:", "LD_LIBRARY_PATH=" + prefix + "/lib/muster",
		"PKG_CONFIG_PATH=" + prefix + "/lib/muster/pkgconfig", "MPI_HOME=" + prefix + "/lib/muster",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("module load must set %s:\n%s", want, out)
		}
	}
}
