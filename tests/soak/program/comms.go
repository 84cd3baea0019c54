package program

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// mostGroups is how many communicators a program has at a time.
const mostGroups = 6

// communicator derives a communicator from a group, or frees one. All ranks of the base
// communicator take part, each in its part of a split one.
func (r *run) communicator(random *rand.Rand, g *group) error {
	if len(r.groups) == mostGroups || len(r.groups) > 1 && random.IntN(4) == 0 {
		i := 1 + random.IntN(len(r.groups)-1)
		old := r.groups[i]
		r.at = "Free of " + old.comm.Name()
		r.groups = slices.Delete(r.groups, i, i+1)
		return old.comm.Free()
	}
	form := random.IntN(4)
	var c *mpi.Comm
	var err error
	members := g.members
	switch form {
	case 0:
		r.at = "Dup of " + g.comm.Name()
		c, err = g.comm.Dup()
	case 1:
		r.at = "Idup of " + g.comm.Name()
		var q mpi.Request
		c, q = g.comm.Idup()
		r.pending = append(r.pending, q)
		_, err = q.Wait()
	default:
		r.at = "Split of " + g.comm.Name()
		n := r.base.Size()
		colors, order := make([]int, n), random.Perm(n)
		parts := 1 + random.IntN(3)
		for i := range colors {
			colors[i] = random.IntN(parts)
		}
		me := r.base.Rank()
		c, err = g.comm.Split(colors[me], order[me])
		members = nil
		for _, m := range g.members {
			if colors[m] == colors[me] {
				members = append(members, m)
			}
		}
		slices.SortFunc(members, func(a, b int) int { return order[a] - order[b] })
	}
	if err != nil {
		return err
	}
	r.groups = append(r.groups, &group{c, members})
	if want := slices.Index(members, r.base.Rank()); c.Rank() != want || c.Size() != len(members) {
		return wrong("rank %d of %d in the new communicator, want %d of %d", c.Rank(), c.Size(), want, len(members))
	}
	// If a rank has failed, some ranks may have the communicator and others not, which
	// cannot revoke it then. They revoke the base communicator.
	r.at, r.on = "Barrier after a new communicator", r.groups[0]
	return r.base.Barrier()
}

// late lets one rank come late to a barrier.
func (r *run) late(random *rand.Rand, g *group) error {
	who, wait := random.IntN(r.base.Size()), time.Duration(random.IntN(5_000))*time.Microsecond
	if who == r.base.Rank() {
		time.Sleep(wait)
	}
	r.at = fmt.Sprintf("Barrier on %s, rank %d is late", g.comm.Name(), who)
	return g.comm.Barrier()
}
