package core

// Inter-communicators (MPI-4.1 section 7.6), and communicators that are made of groups alone
// (MPI-4.1 section 11.3).

import (
	"hash/fnv"

	"github.com/muster-mpi/muster/mpi"
)

func intercommunicators() map[string]handler {
	return map[string]handler{
		"Comm_test_inter":              queryFlag((*args).comm, (*comm).IsInter),
		"Comm_remote_size":             query((*args).inter, (*comm).RemoteSize),
		"Intercomm_create":             (*Process).intercommCreate,
		"Intercomm_merge":              (*Process).intercommMerge,
		"Intercomm_create_from_groups": (*Process).intercommCreateFromGroups,
	}
}

// intercommCreate is MPI_Intercomm_create. Only the leader's bridge, remote leader and tag
// count.
func (p *Process) intercommCreate(a *args) error {
	c, leader := a.intra(0), a.int(1)
	if leader < 0 || leader >= c.Size() {
		return errorf(errRank, "the local leader %d is not a rank of %s", leader, c.Name())
	}
	var bridge *mpi.Comm
	if c.Rank() == leader {
		b := a.comm(2)
		if a.err != nil {
			return nil
		}
		if n := a.int(3); n < 0 || n >= b.Size() && !b.IsInter() || b.IsInter() && n >= b.RemoteSize() {
			return errorf(errRank, "the remote leader %d is not a rank of %s", n, b.Name())
		}
		if a.int(4) < 0 {
			return errorf(errTag, "the tag %d is negative", a.int(4))
		}
		bridge = b.Comm
	}
	n, err := c.IntercommCreate(leader, bridge, a.int(3), a.int(4))
	if err != nil {
		return err
	}
	a.addComm(5, n, c)
	return nil
}

func (p *Process) intercommMerge(a *args) error {
	c, order := a.inter(0), mpi.MergeLow
	if a.int(1) != 0 {
		order = mpi.MergeHigh
	}
	n, err := c.Merge(order)
	if err != nil {
		return err
	}
	a.addComm(2, n, c)
	return nil
}

// tagOf makes the tag of an agreement of a string tag.
func tagOf(s string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // it cannot fail
	return int(h.Sum32() & mpi.MaxTag)
}

// commCreateFromGroup is MPI_Comm_create_from_group: the members agree by messages whose tag
// depends on the string, so that calls at the same time do not interfere.
func (p *Process) commCreateFromGroup(a *args) error {
	g, hints, h := a.group(0), a.hints(2), a.errhandler(3)
	n, err := p.world.Comm().CreateGroup(g, tagOf(a.text(1)))
	if err != nil {
		return err
	}
	if c := a.addComm(4, n, &comm{handler: h, session: p.origins.find(g)}); c != nil {
		c.hints = hints.clone()
	}
	return nil
}

func (p *Process) intercommCreateFromGroups(a *args) error {
	mine, leader, theirs, remote := a.group(0), a.int(1), a.group(2), a.int(3)
	hints, h := a.hints(5), a.errhandler(6)
	if leader < 0 || leader >= mine.Size() || remote < 0 || remote >= theirs.Size() {
		return errorf(errRank, "leader %d or %d is not in its group", leader, remote)
	}
	tag := tagOf(a.text(4))
	world := p.world.Comm()
	local, err := world.CreateGroup(mine, tag)
	if err != nil {
		return err
	}
	at, err := theirs.Translate([]int{remote}, world.Group())
	if err != nil {
		return err
	}
	// The leaders need a communicator in which no message of the program can match theirs.
	leaders, err := mine.Include(leader)
	if err != nil {
		return err
	}
	other, err := theirs.Include(remote)
	if err != nil {
		return err
	}
	var bridge *mpi.Comm
	peer := 0
	if mine.Rank() == leader {
		pair := leaders.Union(other)
		if at[0] < world.Rank() { // both leaders pass the same order
			pair = other.Union(leaders)
		} else {
			peer = 1
		}
		if bridge, err = world.CreateGroup(pair, tag); err != nil {
			return err
		}
	}
	n, err := local.IntercommCreate(leader, bridge, peer, 0)
	if err != nil {
		return err
	}
	if c := a.addComm(7, n, &comm{handler: h, session: p.origins.find(mine)}); c != nil {
		c.hints = hints.clone()
	}
	return nil
}
