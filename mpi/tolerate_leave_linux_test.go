//go:build !muster_portable

package mpi_test

import (
	"testing"
	"time"
)

// TestLeaveAfterFailure checks that Finalize does not wait until messages to a failed rank
// are acknowledged, also on a channel that gets no ICMP error.
func TestLeaveAfterFailure(t *testing.T) {
	for _, channel := range []string{"ud", "hybrid"} {
		out, status, took := job(t, launcher(t), 3, []string{programVar + "=" + leaveProgram, "MUSTER_ON_FAILURE=return",
			"MUSTER_CHANNEL=" + channel, "MUSTER_NO_SHARED_MEMORY=1", "MUSTER_NETWORK=iwarp", "MUSTER_INTERFACE=lo"})
		if status != 0 || took > 9*time.Second {
			t.Errorf("%s: the job ended with status %d after %v:\n%s", channel, status, took, out)
		}
	}
}
