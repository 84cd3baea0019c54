//go:build !muster_portable

package mpi_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

var recoverSeeds = flag.Int("recover.seeds", 2, "jobs of TestRecoverProcesses")

// TestRecoverProcesses kills processes at random times: in calls, in agreements, and while
// they wait as spares.
func TestRecoverProcesses(t *testing.T) {
	muster := launcher(t)
	random := seeded.Random(t)
	for range *recoverSeeds {
		const n, spares = 4, 2
		var kills []string
		for _, p := range random.Perm(n + spares)[:1+random.IntN(n)] {
			kills = append(kills, fmt.Sprintf("%d:%dus", p, random.IntN(300_000)))
		}
		env := []string{programVar + "=" + recoverProgram, "KILLS=" + strings.Join(kills, " ")}
		out, status, took := jobWith(t, muster, []string{"--spares", fmt.Sprint(spares)}, n, env)
		if status != 0 || !strings.Contains(out, ": done with ") {
			t.Errorf("killed %s: status %d, want 0 and the line of a rank 0 that is done:\n%s", kills, status, out)
		}
		t.Logf("killed %s: %v\n%s", kills, took, out)
	}
}

// TestSparesNeedRecover checks the error of a program that does not call Recover.
func TestSparesNeedRecover(t *testing.T) {
	out, status, _ := jobWith(t, launcher(t), []string{"--spares", "1"}, 2, []string{programVar + "=reduce twice"})
	if status != 1 || !strings.Contains(out, "the program does not call mpi.Recover") {
		t.Errorf("the status is %d, want 1 and a reason:\n%s", status, out)
	}
}
