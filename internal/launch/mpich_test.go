//go:build !windows

package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A C program, to check that the server is compatible with MPICH.
const mpichHello = `#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
	int rank, size, sum = 0, one;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 23);
	one = rank + 1;
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d: sum %d\n", rank, size, sum);
	MPI_Finalize();
	return 0;
}
`

func TestMPICHProgram(t *testing.T) {
	mpicc, err := exec.LookPath("mpicc.mpich")
	if err != nil {
		t.Skip("mpicc.mpich is not installed (Debian package libmpich-dev)")
	}
	dir := t.TempDir()
	source, prog := filepath.Join(dir, "hello.c"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte(mpichHello), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, mpicc, "-o", prog, source).CombinedOutput(); err != nil {
		t.Skipf("mpicc.mpich does not work here: %v\n%s", err, out)
	}
	r := runJob(t, Config{Ranks: 4, Prog: prog, Env: os.Environ()})
	for rank := range 4 {
		if want := fmt.Sprintf("[%d] rank %d of 4: sum 10\n", rank, rank); r.Status != 0 || !strings.Contains(r.out, want) {
			t.Errorf("a C program must run as one job of 4 and print %q: %+v", want, r)
		}
	}
	r = runJob(t, Config{Ranks: 2, Prog: prog, Args: []string{"abort"}, Env: os.Environ()})
	if r.Status != 23 || !strings.Contains(r.Cause, "rank 1 ") {
		t.Errorf("MPI_Abort must end the job with its code: %+v", r.Result)
	}
}
