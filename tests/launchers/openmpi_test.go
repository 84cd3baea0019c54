//go:build launchers

package launchers

import (
	"strings"
	"testing"
	"time"
)

// asOpenMPIWants lets root run jobs with Open MPI, and more ranks than cores.
var asOpenMPIWants = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}

func TestUnderOpenMPI(t *testing.T) {
	mpirun := tool(t, "mpirun.openmpi", "openmpi-bin")
	four := []string{mpirun, "--oversubscribe", "--bind-to", "none", "-n", "4"}
	tryAll(t, asOpenMPIWants, four, []trial{
		{"four ranks find each other", []string{role + "exchange"}, nodeLines(0, 0, 0, 0), nil, bootstrap},
		{"a message goes round", nil, ringOfFour, nil, ring},
		{"the tests of point-to-point pass", nil, []string{"PASS"}, nil, mpi},
	})
	for compiler := range families {
		t.Run(compiler+" on Muster's library", func(t *testing.T) {
			libraries, program := cInterface(t, compiler, "ring")
			env := append(asOpenMPIWants, "LD_LIBRARY_PATH="+libraries)
			prints(t, env, ringOnMuster, mpirun, append(four[1:], "-x", "LD_LIBRARY_PATH", program)...)
		})
	}
	t.Run("a program without PMIx says what to do", func(t *testing.T) {
		out, err := run(t, append(asOpenMPIWants, role+"exchange"), mpirun, append(four[1:], plain.command(t)...)...)
		if err == nil || !strings.Contains(out, "muster run, or build it with -tags pmix") {
			t.Errorf("the refusal must name the tag; got %v and\n%s", err, out)
		}
	})
	t.Run("an abort ends the job with its code", func(t *testing.T) {
		began := time.Now()
		out, err := run(t, append(asOpenMPIWants, role+"abort"), mpirun, append(four[1:], bootstrap.command(t)...)...)
		if err == nil || err.Error() != "exit status 17" || time.Since(began) > 8*time.Second {
			t.Errorf("an abort with code 17 must end the job at once; got %v after %v and\n%s", err, time.Since(began), out)
		}
	})
}
