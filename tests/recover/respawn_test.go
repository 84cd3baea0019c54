//go:build linux && !race && !muster_portable

package recover

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/internal/seeded"
)

// TestRespawn kills a rank, or in every second job a host, at a random step of the heat solver and
// of CG. The launcher starts processes in place of the failed ranks, in the second case on other
// hosts, and the application ends with as many ranks as it began with.
func TestRespawn(t *testing.T) {
	l := lab.New(t, lab.Config{Hosts: hosts})
	muster, self, slots := prepare(t, l)
	begin := *first
	if begin == 0 {
		begin = seeded.Seed()
	}
	for i := range *seeds {
		for app, steps := range map[string]int{"heat": 20, "cg": 15} {
			seed := begin + uint64(i)
			t.Run(fmt.Sprintf("%s/seed %d", app, seed), func(t *testing.T) {
				random := seeded.New(seed)
				step, process := 1+random.IntN(steps), random.IntN(hosts*perHost)
				env := []string{"RECOVER_APP=" + app, fmt.Sprint("RECOVER_STEP=", step), fmt.Sprint("RECOVER_PROCESS=", process)}
				what := fmt.Sprintf("host of rank %d killed in step %d", process, step)
				if i%2 == 0 {
					what = fmt.Sprintf("rank %d killed in step %d", process, step)
					env = append(env, "RECOVER_ALONE=1")
				}
				args := []string{"run", "--hosts", strings.Join(slots, ","), "--rsh", l.Rsh(), "--timeout", limit.String(),
					"--respawn", "4", "-n", fmt.Sprint(hosts * perHost), self}
				took := runJob(t, what, args, muster, env, fmt.Sprintf("attempt 2, %d ranks", hosts*perHost), "SUCCESSFUL")
				t.Logf("%s: %v", what, took.Round(time.Millisecond))
			})
		}
	}
}
