//go:build !muster_portable

package mpi_test

import (
	"strings"
	"testing"
)

// TestAgreeAsleep checks that ranks that sleep in an agreement are woken by a rank that learns
// of failures later than they do.
func TestAgreeAsleep(t *testing.T) {
	out, status, took := jobWith(t, launcher(t), []string{"--timeout", "20s"}, 5, []string{programVar + "=" + asleepProgram, "MUSTER_ON_FAILURE=return"})
	if status != 0 || strings.Count(out, " has agreed\n") != 3 {
		t.Errorf("the job ended with status %d after %v, want 0 and 3 ranks that have agreed:\n%s", status, took, out)
	}
}
