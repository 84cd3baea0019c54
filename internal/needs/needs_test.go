package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFamilies(t *testing.T) {
	for lib, want := range map[string]Family{
		"libmpich.so.12": MPICH, "libmpi.so.12": MPICH, "libmpi.so.12.1.8": MPICH, "libmpichfort.so.12": MPICH, "libmpifort.so.12": MPICH,
		"libmpi.so.40": OpenMPI, "libmpi_mpifh.so.40": OpenMPI, "libmpi_cxx.so.40": OpenMPI, "libmpi_usempif08.so.40": OpenMPI,
		"libmpi_abi.so.1": Standard, "libmpi_abi.so.0": None, "libmpi.so.20": None, "libmpir.so.23": None, "libm.so.6": None, "libmpi.so": None,
	} {
		if got := familyOf(lib); got != want {
			t.Errorf("%s is of %v, want %v", lib, got, want)
		}
	}
}

// Programs are found out by their libraries and those of these; two families are refused.
func TestPrograms(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	dir := t.TempDir()
	build := func(args ...string) {
		t.Helper()
		cmd := exec.Command(cc, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cc %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for name, text := range map[string]string{"f.c": "int f(void) { return 0; }", "main.c": "int f(void);\nint main(void) { return f(); }", "script": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, lib := range []string{"libmpich.so.12", "libmpi.so.40", "libmpi_abi.so.1", "libplain.so.1"} {
		build("-shared", "-fPIC", "-Wl,-soname,"+lib, "-o", lib, "f.c")
	}
	build("-shared", "-fPIC", "-Wl,-soname,libabove.so.1", "-o", "libabove.so.1", "f.c", "-Wl,--no-as-needed", "libmpi.so.40")
	for name, libs := range map[string][]string{
		"mpich": {"libmpich.so.12"}, "openmpi": {"libmpi.so.40"}, "mpi5": {"libmpi_abi.so.1"}, "plain": {"libplain.so.1"},
		"below": {"libabove.so.1"}, "mixed": {"libmpich.so.12", "libabove.so.1"},
	} {
		build(append([]string{"-o", name, "main.c", "-Wl,--no-as-needed", "-Wl,-rpath-link," + dir}, libs...)...)
	}
	build("-static", "-o", "static", "main.c", "f.c")
	for name, want := range map[string]Family{
		"mpich": MPICH, "openmpi": OpenMPI, "mpi5": Standard, "below": OpenMPI, "plain": Unknown, "script": Unknown, "static": None, "absent": Unknown,
	} {
		if got, err := Of(filepath.Join(dir, name), []string{dir}); err != nil || got != want {
			t.Errorf("%s needs %v, want %v (%v)", name, got, want, err)
		}
	}
	_, err = Of(filepath.Join(dir, "mixed"), []string{dir})
	for _, want := range []string{"libmpich.so.12 (needed by mixed)", "libmpi.so.40 (needed by libabove.so.1)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a program of two families must be refused with %q: %v", want, err)
		}
	}
}
