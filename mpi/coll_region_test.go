package mpi

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// TestRegions makes collectives whose node phases are in a segment, on simulated hosts.
// The blocks of consecutive calls differ, so a memory that is used again too early would
// show, and non-blocking calls between them use messages.
func TestRegions(t *testing.T) {
	for _, c := range []struct{ ranks, perHost int }{{8, 4}, {7, 3}} {
		for _, names := range []string{
			"allgather=node-bruck", "allgather=node-bruck:form=2", "allgather=node-groups:groups=2", "allgather=node-ring:form=2",
			"allgather=node-spread", "allgather=pap_shm_direct", "alltoall=pap_shm_direct",
		} {
			t.Run(fmt.Sprintf("%d-of-%d-%s", c.perHost, c.ranks, names), func(t *testing.T) {
				runOnHosts(t, c.ranks, c.perHost, true, &wire{}, func(world *Comm) error {
					d, err := world.DupWithCollective(names)
					if err != nil {
						return err
					}
					defer d.Free()
					return inRegion(d, names[:8] == "alltoall")
				})
			})
		}
	}
}

// inRegion makes calls of several lengths and checks their results and where they ran.
func inRegion(c *Comm, alltoall bool) error {
	const rounds = 24
	long := 0
	for round := range rounds {
		n := []int{1, 5, 512, 3000}[round%4]
		if round == rounds-1 {
			n = coll.SharedLimit/c.Size()/4 + 1 // of int32: too long for the region
			long++
		}
		blocks := 1
		if alltoall {
			blocks = c.Size()
		}
		in, out := make([]int32, n*blocks), make([]int32, n*c.Size())
		for i := range in {
			in[i] = int32(round<<20 + c.Rank()<<14 + i/n)
		}
		var err error
		if alltoall {
			err = Alltoall(c, in, out)
		} else {
			err = Allgather(c, in, out)
		}
		if err != nil {
			return err
		}
		for i, got := range out {
			want := int32(round<<20 + i/n<<14)
			if alltoall {
				want += int32(c.Rank())
			}
			if got != want {
				return fmt.Errorf("round %d: element %d is %x, want %x", round, i, got, want)
			}
		}
	}
	nodes := c.plans.choice.nodes
	want := uint64(rounds - nodeAfter - long)
	if nodes.Count(nodes.NodeOf(c.Rank())) == 1 {
		want = 0
	}
	if r := &c.node.region; r.runs != want {
		return fmt.Errorf("%d calls in the region, want %d (%s)", r.runs, want, r.why)
	}
	return nil
}
