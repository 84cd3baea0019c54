package mpi

// Collectives on inter-communicators (MPI-4.1 section 6.2.3): the arguments of one group
// describe the data that it sends, those of the other the data that it receives. Each
// function here replaces the one that checks the same call on an intra-communicator; after
// that all calls take the same path (coll_call.go). Blocks are those of the remote group,
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

// interCall begins a call.
func interCall[T Elem](c *Comm, name string, kind coll.Kind) (collCall, error) {
	k := collCall{name: name, key: planKey{kind: kind, elem: sizeOf[T]()}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	return k, c.usable(name)
}

// interRooted begins a call that has a root: the caller is the root, or in the remote
// group, or in the root's group with nothing to do.
func interRooted[T Elem](c *Comm, name string, kind coll.Kind, root int) (k collCall, isRoot, isOther bool, err error) {
	if k, err = interCall[T](c, name, kind); err != nil {
		return k, false, false, err
	}
	switch g := c.inter; {
	case root == Root:
		k.key.root, isRoot = g.both.rank, true
	case root == ProcNull:
		k.key.root = nobodysRoot
	case root >= 0 && root < c.size:
		k.key.root, isOther = g.start(!g.second)+root, true
	default:
		err = c.refuse(ErrRoot, name, "there is no rank %d in the other group of %s, which has ranks 0 to %d; "+
			"the root itself passes mpi.Root and the others of its group mpi.ProcNull", root, c.Name(), c.size-1)
	}
	return k, isRoot, isOther, err
}

func interBcastCall[T Elem](c *Comm, name string, buf []T, root int) (collCall, error) {
	k, isRoot, isOther, err := interRooted[T](c, name, coll.Bcast, root)
	if err == nil && (isRoot || isOther) {
		k.out = rawBytes(buf)
		k.key.bytes = len(k.out)
	}
	return k, err
}

// each returns the length in bytes of the blocks of a slice with a block for each of n
// ranks.
func (k *collCall) each(c *Comm, what string, length, n int) (int, error) {
	if length%n != 0 {
		return 0, c.refuse(ErrCount, k.name, "%s has %d elements, which cannot be shared evenly among %d ranks", what, length, n)
	}
	return length / n * k.key.elem, nil
}

func interGatherCall[T Elem](c *Comm, name string, in, out []T, root int) (collCall, error) {
	k, isRoot, isOther, err := interRooted[T](c, name, coll.Gather, root)
	switch {
	case err != nil:
	case isRoot:
		k.out = rawBytes(out)
		k.key.recv, err = k.each(c, "out", len(out), c.size)
	case isOther:
		k.in = rawBytes(in)
		k.key.bytes = len(k.in)
	}
	return k, err
}

func interGathervCall[T Elem](c *Comm, name string, in, out []T, counts, displs []int, root int) (collCall, error) {
	k, isRoot, isOther, err := interRooted[T](c, name, coll.Gather, root)
	k.key.irregular = true
	switch {
	case err != nil:
	case isRoot:
		k.out, k.recvCounts, k.recvDispls = rawBytes(out), counts, displs
		err = c.checkBlocks(name, "out", len(out), counts, displs)
	case isOther:
		k.in = rawBytes(in)
		k.key.bytes = len(k.in)
	}
	return k, err
}

func interScatterCall[T Elem](c *Comm, name string, in, out []T, root int) (collCall, error) {
	k, isRoot, isOther, err := interRooted[T](c, name, coll.Scatter, root)
	switch {
	case err != nil:
	case isRoot:
		k.in = rawBytes(in)
		k.key.bytes, err = k.each(c, "in", len(in), c.size)
	case isOther:
		k.out = rawBytes(out)
		k.key.recv = len(k.out)
	}
	return k, err
}

func interScattervCall[T Elem](c *Comm, name string, in []T, counts, displs []int, out []T, root int) (collCall, error) {
	k, isRoot, isOther, err := interRooted[T](c, name, coll.Scatter, root)
	k.key.irregular = true
	switch {
	case err != nil:
	case isRoot:
		k.in, k.sendCounts, k.sendDispls = rawBytes(in), counts, displs
		err = c.checkBlocks(name, "in", len(in), counts, displs)
	case isOther:
		k.out = rawBytes(out)
		k.key.recv = len(k.out)
	}
	return k, err
}

func interAllgatherCall[T Elem](c *Comm, name string, in, out []T) (collCall, error) {
	k, err := interCall[T](c, name, coll.Allgather)
	if err != nil {
		return k, err
	}
	k.in, k.out = rawBytes(in), rawBytes(out)
	k.key.bytes = len(k.in)
	k.key.recv, err = k.each(c, "out", len(out), c.size)
	return k, err
}

func interAllgathervCall[T Elem](c *Comm, name string, in, out []T, counts, displs []int) (collCall, error) {
	k, err := interCall[T](c, name, coll.Allgather)
	if err != nil {
		return k, err
	}
	k.key.irregular = true
	k.in, k.out, k.recvCounts, k.recvDispls = rawBytes(in), rawBytes(out), counts, displs
	k.key.bytes = len(k.in)
	return k, c.checkBlocks(name, "out", len(out), counts, displs)
}

func interAlltoallCall[T Elem](c *Comm, name string, in, out []T) (collCall, error) {
	k, err := interCall[T](c, name, coll.Alltoall)
	if err != nil {
		return k, err
	}
	k.in, k.out = rawBytes(in), rawBytes(out)
	if k.key.bytes, err = k.each(c, "in", len(in), c.size); err != nil {
		return k, err
	}
	k.key.recv, err = k.each(c, "out", len(out), c.size)
	return k, err
}

func interAlltoallvCall[T Elem](c *Comm, name string, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) (collCall, error) {
	k, err := interCall[T](c, name, coll.Alltoall)
	if err != nil {
		return k, err
	}
	k.key.irregular = true
	k.in, k.sendCounts, k.sendDispls = rawBytes(in), sendCounts, sendDispls
	k.out, k.recvCounts, k.recvDispls = rawBytes(out), recvCounts, recvDispls
	if err := c.checkBlocks(name, "in", len(in), sendCounts, sendDispls); err != nil {
		return k, err
	}
	return k, c.checkBlocks(name, "out", len(out), recvCounts, recvDispls)
}

// reduces adds the operation to a call that combines elements.
func reduces[T Elem](c *Comm, k *collCall, op *Op[T]) error {
	k.key.ordered, k.key.typ, k.key.elem = op.NonCommutative, typeWord((*T)(nil)), op.elem()
	if err := op.whole(c, k.name, k.key.bytes/sizeOf[T]()); err != nil {
		return err
	}
	return checkOp(c, k, op)
}

func interReduceCall[T Elem](c *Comm, name string, in, out []T, op *Op[T], root int) (collCall, error) {
	k, isRoot, isOther, err := interRooted[T](c, name, coll.Reduce, root)
	if err != nil {
		return k, err
	}
	switch {
	case isRoot:
		k.out = rawBytes(out)
		k.key.bytes = len(k.out)
	case isOther:
		k.in = rawBytes(in)
		k.key.bytes = len(k.in)
	}
	return k, reduces(c, &k, op)
}

func interAllreduceCall[T Elem](c *Comm, name string, in, out []T, op *Op[T]) (collCall, error) {
	k, err := interCall[T](c, name, coll.Allreduce)
	if err != nil {
		return k, err
	}
	if len(in) != len(out) {
		return k, c.refuse(ErrCount, name, "in has %d elements, out %d", len(in), len(out))
	}
	k.in, k.out = rawBytes(in), rawBytes(out)
	k.key.bytes = len(k.in)
	return k, reduces(c, &k, op)
}

// interReduceScatterCall serves both forms; counts is nil if all blocks are equal. The
// blocks are those of the local group (MPI-4.1 section 6.10).
func interReduceScatterCall[T Elem](c *Comm, name string, in, out []T, counts []int, op *Op[T]) (collCall, error) {
	k, err := interCall[T](c, name, coll.ReduceScatter)
	if err != nil {
		return k, err
	}
	n := c.Size()
	mine, all := len(in)/n, len(in)/n*n
	if counts != nil {
		if err := c.checkParts(name, "in", "rank", n, len(in), counts, nil); err != nil {
			return k, err
		}
		mine, all = counts[c.rank], 0
		for _, m := range counts {
			all += m
		}
	}
	if all != len(in) {
		return k, c.refuse(ErrCount, name, "in has %d elements; the %d ranks of this group share %d", len(in), n, all)
	}
	if len(out) != mine {
		return k, c.refuse(ErrCount, name, "out has %d elements; this rank's part of the result has %d", len(out), mine)
	}
	if k.recvCounts, err = op.units(c, name, counts); err != nil {
		return k, err
	}
	k.in, k.out = rawBytes(in), rawBytes(out)
	k.key.irregular = counts != nil
	k.key.bytes, k.key.recv = len(k.in), mine*k.key.elem
	return k, reduces(c, &k, op)
}

// interGraph makes the schedule of a call. The lock is held.
func (c *Comm) interGraph(k *collCall) (*sched.Graph, error) {
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
		choice, err := g.both.chooseAlgorithm(phase)
		return choice.Algorithm, choice.Params, err
	})
	return b.Graph()
}
