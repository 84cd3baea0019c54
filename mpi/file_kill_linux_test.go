//go:build !muster_portable

package mpi_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

var killFiles = flag.Int("kill.files", 4, "ranks that TestKillInFiles kills, at most eight in a job")

// TestKillInFiles kills ranks in collective writes.
func TestKillInFiles(t *testing.T) {
	muster, seed := launcher(t), seeded.Seed()
	t.Logf("repeat with SEED=%d", seed)
	for done := 0; done < *killFiles; done += 8 {
		n := min(8, *killFiles-done)
		out, status, _ := job(t, muster, n+4, []string{programVar + "=" + fmt.Sprint(killFilesProgram, seed+uint64(done), " ", n), "MUSTER_ON_FAILURE=return"})
		if status != 0 || !strings.Contains(out, fmt.Sprintf("%d kills, 4 ranks left", n)) {
			t.Errorf("SEED=%d: status %d, want 0 and %d kills:\n%s", seed+uint64(done), status, n, out)
		}
	}
}
