//go:build !muster_portable

package mpi_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

var respawnSeeds = flag.Int("respawn.seeds", 3, "jobs of TestRespawn")

// TestRespawn kills processes at random times: in calls, in agreements, while others start in their
// places, and those as well. The job must end with as many ranks as it began with.
func TestRespawn(t *testing.T) {
	muster := launcher(t)
	random := seeded.Random(t)
	for range *respawnSeeds {
		const n = 4
		var kills []string
		for _, p := range random.Perm(n)[:1+random.IntN(n-1)] {
			kills = append(kills, fmt.Sprintf("%d:%dus", p, random.IntN(300_000)))
		}
		if random.IntN(2) == 0 {
			kills = append(kills, fmt.Sprintf("second:%dus", random.IntN(300_000)))
		}
		env := []string{programVar + "=" + recoverProgram, "KILLS=" + strings.Join(kills, " ")}
		out, status, took := jobWith(t, muster, []string{"--respawn", "20"}, n, env)
		if status != 0 || !strings.Contains(out, fmt.Sprintf(": done with %d ranks", n)) {
			t.Errorf("killed %s: status %d, want 0 and the line of a rank 0 that is done with all ranks:\n%s", kills, status, out)
		}
		t.Logf("killed %s: %v\n%s", kills, took, out)
	}
}

// TestRespawnIsBounded checks that the ranks go on with fewer of them when no more processes may be started.
func TestRespawnIsBounded(t *testing.T) {
	env := []string{programVar + "=" + recoverProgram, "KILLS=1:50ms 2:50ms"}
	out, status, _ := jobWith(t, launcher(t), []string{"--respawn", "1"}, 4, env)
	if status != 0 || !strings.Contains(out, ": done with 3 ranks") && !strings.Contains(out, ": done with 2 ranks") {
		t.Errorf("status %d, want 0 and 2 or 3 ranks at the end:\n%s", status, out)
	}
}
