package mpi

// Collectives on inter-communicators (MPI-4.1 section 6.2.3): the arguments of one group
// describe the data that it sends, those of the other the data that it receives. Only the
// checks of arguments (coll_args.go) and the schedule differ. Blocks are those of the remote group,
// so c.size, which is its size, counts them; only ReduceScatter has a block for each rank
// of the local group. A nil in is empty: there are no in-place calls (MPI-4.1 section
// 6.2.3).

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/rankset"
	"github.com/muster-mpi/muster/internal/sched"
)

// collRanks returns the world rank of each rank of a schedule; nil: they are equal.
func (c *Comm) collRanks() *rankset.List {
	if c.inter != nil {
		return c.inter.both.ranks
	}
	return c.ranks
}

// nobodysRoot is the root for the other ranks of the root's group.
const nobodysRoot = -1

// betweenGroups completes a call on an inter-communicator.
func (a *collArgs[T]) betweenGroups(k *collCall) (err error) {
	c := a.c
	if err := c.definedBetween(k); err != nil {
		return err
	}
	gives, gets := true, true
	if a.kind.Rooted() {
		isRoot, isOther, err := a.role(k)
		switch {
		case err != nil:
			return err
		case a.kind.Input() == coll.Nothing:
			gets = isRoot || isOther
		case a.kind.FromRoot():
			gives, gets = isRoot, isOther
		default:
			gives, gets = isOther, isRoot
		}
	}
	if in := a.kind.Input(); gives && in != coll.Nothing {
		k.in = rawBytes(a.in)
		if k.key.bytes = len(k.in); in == coll.AllBlocks && !a.kind.Combines() {
			k.sendCounts, k.sendDispls = a.sendCounts, a.sendDispls
			if k.key.bytes, err = k.each(c, "in", len(a.in), a.sendCounts, a.sendDispls); err != nil {
				return err
			}
		}
	}
	if gets {
		k.out = rawBytes(a.out)
		switch a.kind.Output() {
		case coll.Vector:
			if a.kind.Input() == coll.Vector && gives && len(a.in) != len(a.out) {
				return c.refuse(ErrCount, k.name, "in has %d elements, out %d", len(a.in), len(a.out))
			}
			k.key.bytes = len(k.out)
		case coll.OwnBlock:
			k.key.recv = len(k.out)
		default:
			k.recvCounts, k.recvDispls = a.recvCounts, a.recvDispls
			if k.key.recv, err = k.each(c, "out", len(a.out), a.recvCounts, a.recvDispls); err != nil {
				return err
			}
		}
	}
	switch {
	case !a.kind.Combines():
		return nil
	case a.kind.Input() == coll.AllBlocks:
		if err := a.partsOfGroup(k); err != nil {
			return err
		}
	}
	return a.op.whole(c, k.name, k.key.bytes/sizeOf[T]())
}

// definedBetween returns an error if a call is not defined between two groups.
func (c *Comm) definedBetween(k *collCall) error {
	if k.key.kind.BetweenGroups() {
		return nil
	}
	return c.intra(k.name)
}

// role returns what a rank does in a call that has a root: it is the root, or in the remote
// group, or in the root's group with nothing to do.
func (a *collArgs[T]) role(k *collCall) (isRoot, isOther bool, err error) {
	c := a.c
	switch g := c.inter; {
	case a.root == Root:
		k.key.root = g.both.rank
		return true, false, nil
	case a.root == ProcNull:
		k.key.root = nobodysRoot
		return false, false, nil
	case a.root >= 0 && a.root < c.size:
		k.key.root = g.start(!g.second) + a.root
		return false, true, nil
	}
	return false, false, c.refuse(ErrRoot, k.name, "there is no rank %d in the other group of %s, which has ranks 0 to %d; "+
		"the root itself passes mpi.Root and the others of its group mpi.ProcNull", a.root, c.Name(), c.size-1)
}

// each checks the blocks of a slice with a block for each rank of the other group, and
// returns their length in bytes if they are equal.
func (k *collCall) each(c *Comm, what string, length int, counts, displs []int) (int, error) {
	if k.key.irregular {
		return 0, c.checkBlocks(k.name, what, length, counts, displs)
	}
	if length%c.size != 0 {
		return 0, c.refuse(ErrCount, k.name, "%s has %d elements, which cannot be shared evenly among %d ranks", what, length, c.size)
	}
	return length / c.size * k.key.elem, nil
}

// partsOfGroup checks the parts of a result, which are those of the local group (MPI-4.1
// section 6.10).
func (a *collArgs[T]) partsOfGroup(k *collCall) (err error) {
	c, counts := a.c, a.sendCounts
	n := c.Size()
	mine, all := len(a.in)/n, len(a.in)/n*n
	if k.key.irregular {
		if err := c.checkParts(k.name, "in", "rank", n, len(a.in), counts, nil); err != nil {
			return err
		}
		mine, all = counts[c.rank], 0
		for _, m := range counts {
			all += m
		}
	}
	if all != len(a.in) {
		return c.refuse(ErrCount, k.name, "in has %d elements; the %d ranks of this group share %d", len(a.in), n, all)
	}
	if len(a.out) != mine {
		return c.refuse(ErrCount, k.name, "out has %d elements; this rank's part of the result has %d", len(a.out), mine)
	}
	k.recvCounts, err = a.op.units(c, k.name, counts)
	return err
}

// interGraphLocked makes the schedule of a call.
func (c *Comm) interGraphLocked(k *collCall) (*sched.Graph, error) {
	g := c.inter
	if g.both.plans == nil {
		g.both.plans = &collPlans{}
	}
	s := &coll.Inter{Kind: k.key.kind, Rank: g.both.rank, Sizes: g.sizes, Root: k.key.root, Elem: k.key.elem,
		Commutes: !k.key.ordered}
	s.Bytes, s.Send, s.Recv = k.blocks()
	b := &c.plans.build
	b.Reset(s.Rank, g.both.size)
	coll.BuildInter(b, s, func(phase *coll.Shape) (*coll.Algorithm, []int, error) {
		choice, err := g.both.chooseLocked(phase)
		return choice.Algorithm, choice.Params, err
	})
	return b.Graph()
}
