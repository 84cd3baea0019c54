package mpi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
)

// TestExcludedRank checks that a rank that counts as failed itself gets an error that says so
// from every call, and that the others go on.
func TestExcludedRank(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("needs a job whose ranks can be made to fail")
	}
	for _, onFailure := range []string{"return", "end"} {
		worlds, err := mpi.Local(2, &mpi.Config{OnFailure: onFailure})
		noError(t, err, "Local")
		pending := make(chan error, 1)
		go func() { pending <- second(mpi.Recv(worlds[1].Comm(), []int{0}, 0, 1)) }()
		inspect.FailLocal(worlds, 1, "nobody has heard of it")
		for _, err := range []error{<-pending, worlds[1].Comm().Barrier()} {
			if !errors.Is(err, mpi.ErrProcAborted) || !strings.Contains(err.Error(), "this rank counts as failed") || !strings.Contains(err.Error(), "nobody has heard of it") {
				t.Errorf("OnFailure %s: the error is %v, want one of class ErrProcAborted that names the reason", onFailure, err)
			}
		}
		if onFailure == "return" {
			noError(t, shrunken(worlds[0].Comm(), 1), "the other rank")
			noError(t, worlds[0].Finalize(), "Finalize")
		}
	}
}
