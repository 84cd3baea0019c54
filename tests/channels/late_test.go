//go:build channels && linux

package channels

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// Collectives that serve arrived ranks first, on hosts with two rails of which one
// goes down and comes back during a collective. Every byte must be correct.
func TestLateRanksRailDown(t *testing.T) {
	j := build(t, lab.Config{Hosts: 3, Rails: 2})
	host := j.hosts.Hosts()[1]
	for _, form := range []string{"pap_direct", "pap_shm_direct"} {
		t.Run(form, func(t *testing.T) {
			env := "MUSTER_COLLECTIVE="
			for _, kind := range []string{"alltoall", "allgather", "allreduce", "bcast"} {
				env += kind + "=" + form + ","
			}
			cmd := j.command(t, 2, []string{strings.TrimSuffix(env, ",")}, "late", "-messages", "400", "-longest", "150000")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			cut, cuts := false, 0
			for {
				select {
				case err := <-ended:
					if cut {
						if err := j.hosts.Mend(host, 1); err != nil {
							t.Fatal(err)
						}
					}
					if err != nil {
						t.Fatalf("%v\n%s", err, out.String())
					}
					if n := strings.Count(out.String(), "has made 400 calls"); n != 6 {
						t.Errorf("%d of 6 ranks have made all calls:\n%s", n, out.String())
					}
					if cuts == 0 {
						t.Error("the job was over before a cable was cut")
					}
					return
				case <-time.After(400 * time.Millisecond):
					change := j.hosts.Cut
					if cut {
						change = j.hosts.Mend
					} else {
						cuts++
					}
					if err := change(host, 1); err != nil {
						t.Fatal(err)
					}
					cut = !cut
				}
			}
		})
	}
}
