package mpi

// Reduce and Allreduce (MPI-4.1 sections 6.9.1, 6.9.6). In place means that out holds
// the rank's contribution: in is nil, or is out.

import "github.com/muster-mpi/muster/internal/coll"

// Reduce combines the in of all ranks into root's out, element by element, in rank order.
// out is used at the root only. There, in may be the same slice or nil: then out holds
// root's contribution.
func Reduce[T Elem](c *Comm, in, out []T, op Op[T], root int) error {
	k, err := reduceCall(c, "Reduce", in, out, &op, root)
	if err != nil {
		return err
	}
	return reduction(c, &k, op)
}

// Ireduce starts a [Reduce].
func Ireduce[T Elem](c *Comm, in, out []T, op Op[T], root int) Request {
	k, err := reduceCall(c, "Ireduce", in, out, &op, root)
	return startedReduction(c, &k, op, err)
}

// ReduceInit prepares a [Reduce].
func ReduceInit[T Elem](c *Comm, in, out []T, op Op[T], root int) *Persistent {
	k, err := reduceCall(c, "ReduceInit", in, out, &op, root)
	return preparedReduction(c, &k, op, err)
}

func reduceCall[T Elem](c *Comm, name string, in, out []T, op *Op[T], root int) (collCall, error) {
	if c.inter != nil {
		return interReduceCall(c, name, in, out, op, root)
	}
	if err := c.checkRoot(name, root); err != nil {
		return collCall{name: name}, err
	}
	k, err := combined(c, name, coll.Reduce, in, out, op, c.rank == root)
	k.key.root = root
	return k, err
}

// Allreduce combines the in of all ranks into out on every rank, element by element, in
// rank order. in may be the same slice or nil: then out holds the contribution.
func Allreduce[T Elem](c *Comm, in, out []T, op Op[T]) error {
	if done, err := quickAllreduce(c, in, out, &op); done {
		return err
	}
	k, err := combined(c, "Allreduce", coll.Allreduce, in, out, &op, true)
	if err != nil {
		return err
	}
	return reduction(c, &k, op)
}

// allreduce is Allreduce on behalf of the call name.
func allreduce[T Elem](c *Comm, name string, in, out []T, op Op[T]) error {
	k, err := combined(c, name, coll.Allreduce, in, out, &op, true)
	if err != nil {
		return err
	}
	k.inner = true
	return reduction(c, &k, op)
}

// Iallreduce starts an [Allreduce].
func Iallreduce[T Elem](c *Comm, in, out []T, op Op[T]) Request {
	k, err := combined(c, "Iallreduce", coll.Allreduce, in, out, &op, true)
	return startedReduction(c, &k, op, err)
}

// AllreduceInit prepares an [Allreduce].
func AllreduceInit[T Elem](c *Comm, in, out []T, op Op[T]) *Persistent {
	k, err := combined(c, "AllreduceInit", coll.Allreduce, in, out, &op, true)
	return preparedReduction(c, &k, op, err)
}

// combined returns the call of a reduction whose in and out have the same length. result
// reports whether this rank receives one.
func combined[T Elem](c *Comm, name string, kind coll.Kind, in, out []T, op *Op[T], result bool) (collCall, error) {
	if c.inter != nil && kind == coll.Allreduce {
		return interAllreduceCall(c, name, in, out, op)
	}
	k := collCall{name: name, key: planKey{kind: kind, ordered: op.NonCommutative, elem: op.elem(), typ: typeWord((*T)(nil))}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.intra(name); err != nil {
		return k, err
	}
	if err := checkOp(c, &k, op); err != nil {
		return k, err
	}
	n := len(in)
	if result {
		if in == nil {
			n = len(out)
		}
		if len(out) != n {
			return k, c.refuse(ErrCount, name, "in has %d elements, out %d", n, len(out))
		}
		k.out = rawBytes(out)
		k.key.inPlace = n > 0 && (in == nil || same(in, out))
	}
	if err := op.whole(c, name, n); err != nil {
		return k, err
	}
	k.key.bytes = n * sizeOf[T]()
	if !k.key.inPlace {
		k.in = rawBytes(in)
	}
	return k, nil
}
