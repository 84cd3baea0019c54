//go:build !muster_portable

package mpi_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var killRanks = flag.Int("kill.ranks", 4, "ranks that are left at the end of TestKillMatrix")

// TestKillMatrix kills a rank with SIGKILL in each kind of call, one after the other in one
// job, and in Finalize.
func TestKillMatrix(t *testing.T) {
	program := fmt.Sprint(killProgram, "last 0 ", len(killSteps))
	out, status, _ := job(t, launcher(t), len(killSteps)+*killRanks, []string{programVar + "=" + program, "MUSTER_ON_FAILURE=return"})
	for _, step := range killSteps {
		if !strings.Contains(out, step.name+": ") {
			t.Errorf("the ranks have not survived %s", step.name)
		}
	}
	if status != 0 || strings.Count(out, "; the job continues with ") != len(killSteps)+1 {
		t.Errorf("the job ended with status %d, want 0, and a line for each of %d failures", status, len(killSteps)+1)
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("output:\n%s", out)
	}
}
