package launch

// Spare processes: the last ranks of the job, which package mpi keeps apart from the world of
// the program until they replace a failed rank. For the launcher they are ranks like others.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/muster-mpi/muster/internal/pmi"
)

// completeSpares sets the variables by which ranks know of spares. The variable of a job in
// which this launcher runs itself does not count.
func (c *Config) completeSpares() error {
	c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { return nameOf(kv) == pmi.EnvSpares })
	switch {
	case c.Spares < 0 || c.Spares > maxRanks:
		return fmt.Errorf("launch: %d spares: use 0 to %d", c.Spares, maxRanks)
	case c.Spares == 0:
		return nil
	case len(c.Programs) > 1:
		return errors.New("launch: a job of several programs cannot have spares: a spare would have to be started for each of them")
	case len(c.Programs) == 1:
		c.Programs = slices.Clone(c.Programs)
		c.Programs[0].Ranks += c.Spares
	}
	c.ExtraEnv = append(slices.Clip(c.ExtraEnv), pmi.EnvSpares+"="+strconv.Itoa(c.Spares), pmi.OnFailure+"="+pmi.OnFailureReturn)
	return nil
}

// assignSpares assigns n ranks to hosts as assignRanks does, and then spares to slots that
// are left. If n is 0, ranks and spares use all slots. A spare goes to the host that has the
// fewest spares, of these to the one with the fewest ranks, and of these to the last: a host
// that has no ranks gets the first one, and the hosts share them as evenly as their slots
// permit, so that a lost host takes few of them along.
func assignSpares(hosts []Host, n, spares int, by MapBy) ([]Host, layout, error) {
	if spares == 0 {
		return assignRanks(hosts, n, by)
	}
	total, haveSlots := 0, false
	for _, h := range hosts {
		total += max(1, h.Slots)
		haveSlots = haveSlots || h.Slots > 0
	}
	if n == 0 {
		n = total - spares
	}
	if haveSlots && n+spares > total || n < 1 {
		return nil, layout{}, fmt.Errorf("launch: %d ranks and %d spares do not fit the %d slots of %s: increase the slot counts",
			n, spares, total, hostList(hosts))
	}
	used, l, err := assignRanks(hosts, n, by)
	if err != nil {
		return nil, layout{}, err
	}
	for len(l.ranks) < len(hosts) { // those in use are the first ones
		l.ranks = append(l.ranks, nil)
	}
	got := make([]int, len(hosts))
	for rank := n; rank < n+spares; rank++ {
		best := -1
		for i := range slices.Backward(hosts) {
			full := haveSlots && len(l.ranks[i]) >= max(1, hosts[i].Slots)
			if !full && (best < 0 || got[i] < got[best] || got[i] == got[best] && len(l.ranks[i]) < len(l.ranks[best])) {
				best = i
			}
		}
		got[best]++
		l.ranks[best] = append(l.ranks[best], rank)
		l.host = append(l.host, best)
	}
	return withoutIdle(hosts, len(used), l)
}

// withoutIdle removes the hosts that have neither ranks nor spares. The first ones have ranks.
func withoutIdle(hosts []Host, busy int, l layout) ([]Host, layout, error) {
	used, kept := hosts[:busy:busy], l.ranks[:busy:busy]
	for i := busy; i < len(hosts); i++ {
		if len(l.ranks[i]) == 0 {
			continue
		}
		for _, rank := range l.ranks[i] {
			l.host[rank] = len(used)
		}
		used, kept = append(used, hosts[i]), append(kept, l.ranks[i])
	}
	l.ranks = kept
	return used, l, nil
}
