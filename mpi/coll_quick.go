package mpi

// The fast path into the shared segment of a node, for the calls whose latency matters
// most. A call of a few bytes between two cores takes as long as a cache line needs from
// one to the other and back; describing it for schedules would add a third to that. Other
// calls take the general path, which selects the same team by the same rule
// (coll_node.go).

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/nodecoll"
)

// quickTeam is nodeTeam for a communicator that has a team, with arguments that need no
// further check.
func quickTeam[T Elem](c *Comm, kind coll.Kind, bytes int) *nodecoll.Team {
	n := c.node
	if n == nil || n.team == nil || bytes == 0 || bytes > n.limits[kind] ||
		!mayTravel[T](&c.w.types) || !nodecoll.Fits(c.size, sizeOf[T]()) {
		return nil
	}
	return n.team
}

func quickBcast[T Elem](c *Comm, buf []T, root int) (done bool, err error) {
	t := quickTeam[T](c, coll.Bcast, len(buf)*sizeOf[T]())
	if t == nil || uint(root) >= uint(c.size) {
		return false, nil
	}
	a := c.arrive(coll.Bcast, "Bcast", len(buf)*sizeOf[T]())
	if err = t.Bcast("Bcast", rawBytes(buf), root); err != nil {
		err = c.nodeFailure("Bcast", err)
	}
	a.leave(err)
	return true, err
}

func quickAllgather[T Elem](c *Comm, in, out []T) (done bool, err error) {
	block := len(in) * sizeOf[T]()
	t := quickTeam[T](c, coll.Allgather, block)
	if t == nil || len(out) != len(in)*c.size || same(in, out[c.rank*len(in):]) {
		return false, nil
	}
	a := c.arrive(coll.Allgather, "Allgather", block)
	if err = t.Allgather("Allgather", rawBytes(in), rawBytes(out), block); err != nil {
		err = c.nodeFailure("Allgather", err)
	}
	a.leave(err)
	return true, err
}

func quickAlltoall[T Elem](c *Comm, in, out []T) (done bool, err error) {
	n := len(in) / max(c.size, 1)
	t := quickTeam[T](c, coll.Alltoall, n*sizeOf[T]())
	if t == nil || len(out) != len(in) || len(in) != n*c.size || same(in, out) {
		return false, nil
	}
	a := c.arrive(coll.Alltoall, "Alltoall", n*sizeOf[T]())
	if err = t.Alltoall("Alltoall", rawBytes(in), rawBytes(out), n*sizeOf[T]()); err != nil {
		err = c.nodeFailure("Alltoall", err)
	}
	a.leave(err)
	return true, err
}

func quickAllreduce[T Elem](c *Comm, in, out []T, op *Op[T]) (done bool, err error) {
	t := quickTeam[T](c, coll.Allreduce, len(in)*sizeOf[T]())
	if t == nil || len(out) != len(in) || !op.defined() || op.user != nil && (len(in)%op.unit() != 0 || !nodecoll.Fits(c.size, op.elem())) {
		return false, nil
	}
	a := c.arrive(coll.Allreduce, "Allreduce", len(in)*sizeOf[T]())
	switch {
	case op.predefined != nil:
		err = nodecoll.Allreduce(t, "Allreduce", in, out, op.predefined.combine, 1, !op.ordered())
	default:
		err = usersAllreduce(c, t, in, out, op)
	}
	if err != nil {
		err = c.nodeFailure("Allreduce", err)
	}
	a.leave(err)
	return true, err
}

// quickBarrier leaves barriers of the gate to synchronize (coll_barrier.go): they are not
// within the limits.
func (c *Comm) quickBarrier() (done bool, err error) {
	n := c.node
	if n == nil || n.team == nil || c.w.types.slow || n.limits[coll.Barrier] < 0 {
		return false, nil
	}
	a := c.arrive(coll.Barrier, "Barrier", 0)
	if err = n.team.Barrier("Barrier"); err != nil {
		err = c.nodeFailure("Barrier", err)
	}
	a.leave(err)
	return true, err
}
