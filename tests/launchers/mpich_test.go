//go:build launchers

package launchers

// The reverse: programs in C, built with MPICH, under muster run. And both: such programs on
// Muster's libmpich.so.12 under another launcher.

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// made is that the libraries are built, once and without the limit of other commands.
var made struct {
	once sync.Once
	err  error
}

// families are compilers for the two ABIs, and their Debian packages.
var families = map[string]string{"mpicc.mpich": "libmpich-dev", "mpicc.openmpi": "libopenmpi-dev"}

// ringOnMuster is what testdata/ring.c prints on Muster's library.
var ringOnMuster = append([]string{"on Muster"}, ringOfFour...)

// cInterface returns the folder of Muster's libraries for C programs, which make builds, and a program.
func cInterface(t *testing.T, compiler, name string) (libraries, program string) {
	t.Helper()
	cc := tool(t, compiler, families[compiler])
	made.once.Do(func() {
		if out, err := exec.Command("make", "-C", "../..", "cabi", "BIN="+scratch).CombinedOutput(); err != nil {
			made.err = fmt.Errorf("make cabi: %w\n%s", err, out)
		}
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	program = filepath.Join(scratch, name+"-"+compiler)
	if out, err := run(t, nil, cc, "-O2", "-o", program, "testdata/"+name+".c"); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	return filepath.Join(scratch, "cabi"), program
}

func TestMPICHPrograms(t *testing.T) {
	launcher := muster.command(t)[0]
	cc := tool(t, "mpicc.mpich", "libmpich-dev")
	for name, want := range map[string][]string{
		"hello": {"rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"},
		"ring":  {"the token went through 4 ranks and brings 6"},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), name)
			if out, err := run(t, nil, cc, "-O2", "-o", program, "testdata/"+name+".c"); err != nil {
				t.Fatalf("%s: %v\n%s", cc, err, out)
			}
			prints(t, nil, want, launcher, "run", "-n", "4", "--label=never", program)
		})
	}
	t.Run("abort", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "abort")
		if out, err := run(t, nil, cc, "-O2", "-o", program, "testdata/abort.c"); err != nil {
			t.Fatalf("%s: %v\n%s", cc, err, out)
		}
		out, err := run(t, nil, launcher, "run", "-n", "4", program)
		if err == nil || err.Error() != "exit status 9" || !strings.Contains(out, "rank 2") {
			t.Errorf("MPI_Abort with code 9 on rank 2 must end the job with it; got %v and\n%s", err, out)
		}
	})
}

func TestCProgramsUnderHydra(t *testing.T) {
	mpiexec := tool(t, "mpiexec.hydra", "mpich")
	for compiler := range families {
		libraries, program := cInterface(t, compiler, "ring")
		prints(t, []string{"LD_LIBRARY_PATH=" + libraries}, ringOnMuster, mpiexec, "-n", "4", program)
	}
}
