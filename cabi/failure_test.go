//go:build cabi

package cabi_test

import (
	"strings"
	"testing"
)

// MPIX_Comm_iagree agrees while the program does something else, and agreements come in the
// order in which they were started.
func TestIagree(t *testing.T) {
	t.Parallel()
	prog := compile(t, "testdata/ends/iagree.c")
	got := run(t, []string{"MUSTER_ON_FAILURE=return"}, muster(), "run", "--mpich", "--timeout", jobLimit, "-n", "3", prog)
	if got.status != 0 || strings.Count(got.out, "No Errors") != 3 {
		t.Errorf("all ranks must agree; the job ended with %d and printed\n%s", got.status, got.out)
	}
}

// A C program survives the death of a rank with MPICH's names for the calls of the MPI
// Forum's proposal.
func TestSurvive(t *testing.T) {
	t.Parallel()
	prog := compile(t, "testdata/ends/survive.c")
	got := run(t, []string{"MUSTER_ON_FAILURE=return"}, muster(), "run", "--mpich", "--timeout", jobLimit, "-n", "4", prog)
	if got.status != 0 || !strings.Contains(got.out, "No Errors") || !strings.Contains(got.out, "rank 2") {
		t.Errorf("three ranks must go on without rank 2; the job ended with %d and printed\n%s", got.status, got.out)
	}
}
