package mpi

// Communicators of groups (MPI-4.1 section 7.4.2).

import (
	"errors"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Create returns a communicator of a group of c's ranks. All ranks of c call it,
// with the same group; ranks outside of the group get nil.
func (c *Comm) Create(g *Group) (*Comm, error) {
	h := c.beginCreate("Create", CallCreate)
	d, err := c.create(g)
	return d, h.finish(err)
}

func (c *Comm) create(g *Group) (*Comm, error) {
	if g == nil {
		return nil, c.refuse(ErrGroup, "Create", "the group is nil")
	}
	if err := c.usable("Create"); err != nil {
		return nil, err
	}
	members, err := c.membersOf("Create", g)
	if err != nil {
		return nil, err
	}
	if c.inter != nil { // the group is one of the caller's own (MPI-4.1 section 7.4.2)
		if g.Rank() == Undefined {
			return c.splitInter("Create", Undefined, 0)
		}
		return c.splitInter("Create", 0, g.Rank())
	}
	id, err := c.agree("Create")
	if err != nil {
		return nil, err
	}
	if g.Rank() == Undefined {
		return nil, nil
	}
	return c.sub(id, listOf(members), c.Name()+".group"), nil
}

// CreateGroup is [Comm.Create] that only the ranks of the group call (MPI_Comm_create_group).
// Calls at the same time from several goroutines need different tags, unless their groups
// have no rank in common; these tags do not match those of messages.
func (c *Comm) CreateGroup(g *Group, tag int) (*Comm, error) {
	h := c.beginCreate("CreateGroup", CallCreate)
	d, err := c.createGroup(g, tag)
	return d, h.finish(err)
}

func (c *Comm) createGroup(g *Group, tag int) (*Comm, error) {
	const op = "CreateGroup"
	if g == nil {
		return nil, c.refuse(ErrGroup, op, "the group is nil")
	}
	if err := c.intra(op); err != nil {
		return nil, err
	}
	if tag < 0 || tag > MaxTag {
		return nil, c.refuse(ErrTag, op, "tag %d is not in the range 0 to %d", tag, MaxTag)
	}
	if g.Rank() == Undefined {
		return nil, c.refuse(ErrGroup, op, "rank %d is not in the group; only its members call CreateGroup, all ranks call Create", c.rank)
	}
	members, err := c.membersOf(op, g)
	if err != nil {
		return nil, err
	}
	id, err := c.agreeBy(op, spread(c.ctx, uint32(tag)), func(v []uint32, by func() Op[uint32]) error {
		return c.combineAmong(op, members, g.Rank(), tag, v, by)
	})
	if err != nil {
		return nil, err
	}
	return c.sub(id, listOf(members), c.Name()+".group"), nil
}

// membersOf returns the ranks in c of the ranks of a group.
func (c *Comm) membersOf(op string, g *Group) ([]int, error) {
	members := make([]int, g.Size())
	mine := c.Group()
	for i := range members {
		members[i] = mine.indexOf(g.world(i))
		if members[i] < 0 {
			return nil, c.refuse(ErrGroup, op, "rank %d of the group (rank %d of the world) is not in %s", i, g.world(i), c.Name())
		}
	}
	return members, nil
}

// combineAmong reduces a number over some ranks of c, for all of them: along a binomial
// tree to the first and back.
func (c *Comm) combineAmong(op string, members []int, me, tag int, v []uint32, by func() Op[uint32]) error {
	parent, step := -1, 1
	for ; step < len(members); step *= 2 {
		if me&step != 0 {
			parent = me - step
			break
		}
		if child := me + step; child < len(members) {
			theirs := make([]uint32, len(v))
			if err := c.receiveAside(op, members[child], tag, theirs); err != nil {
				return err
			}
			by().Apply(v, theirs)
		}
	}
	if parent >= 0 {
		if err := c.sendAside(op, members[parent], tag, v); err != nil {
			return err
		}
		if err := c.receiveAside(op, members[parent], tag, v); err != nil {
			return err
		}
	}
	for step /= 2; step > 0; step /= 2 {
		if child := me + step; child < len(members) {
			if err := c.sendAside(op, members[child], tag, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendAside and receiveAside exchange numbers. Their context is that of the data of partitioned
// messages, as that of collectives is of no use once a rank of c has failed, in the group or
// not. The sources, beyond the ranks of c, differ from those of the data.
func (c *Comm) sendAside(op string, dst, tag int, v []uint32) error {
	from := c.asides()
	_, err := c.e.Wait(engine.NoContext, &c.co, op, c.e.Isend(&from, c.world(dst), int32(tag), rawBytes(v), p2p.Standard))
	return c.asideFailure(err, op, dst)
}

func (c *Comm) receiveAside(op string, src, tag int, v []uint32) error {
	to := c.asides()
	_, err := c.e.Wait(engine.NoContext, &c.co, op, c.e.Irecv(&to, c.world(src), int32(c.size+src), int32(tag), rawBytes(v)))
	return c.asideFailure(err, op, src)
}

func (c *Comm) asides() engine.Comm {
	return engine.Comm{Ctx: c.co.Ctx | partitionedContext, Rank: int32(c.size + c.rank), Name: c.name}
}

func (c *Comm) asideFailure(err error, op string, peer int) error {
	if err == nil {
		return nil
	}
	var f *engine.Failure
	if errors.As(err, &f) {
		err = f.Err
	}
	return c.failure(err, op, peer, noTag, 0)
}
