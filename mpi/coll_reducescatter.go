package mpi

// Reduce and scatter (MPI-4.1 section 6.10). In place means that out holds all blocks of
// the rank's contribution and receives its block of the result at its beginning: in is
// nil, or is out.

import "github.com/muster-mpi/muster/internal/coll"

// ReduceScatterBlock combines the in of all ranks and stores block r of the result in
// the out of rank r. in may be the same slice as out or nil: then out holds the whole
// contribution and receives the result at its beginning.
func ReduceScatterBlock[T Elem](c *Comm, in, out []T, op Op[T]) error {
	k, err := reduceScatterCall(c, "ReduceScatterBlock", in, out, nil, &op)
	if err != nil {
		return err
	}
	return reduction(c, &k, op)
}

// IreduceScatterBlock starts a [ReduceScatterBlock].
func IreduceScatterBlock[T Elem](c *Comm, in, out []T, op Op[T]) Request {
	k, err := reduceScatterCall(c, "IreduceScatterBlock", in, out, nil, &op)
	return startedReduction(c, &k, op, err)
}

// ReduceScatterBlockInit prepares a [ReduceScatterBlock].
func ReduceScatterBlockInit[T Elem](c *Comm, in, out []T, op Op[T]) *Persistent {
	k, err := reduceScatterCall(c, "ReduceScatterBlockInit", in, out, nil, &op)
	return preparedReduction(c, &k, op, err)
}

// ReduceScatter is [ReduceScatterBlock] with blocks of different lengths: rank r
// receives counts[r] elements, after those of the lower ranks. All ranks pass the same
// counts.
func ReduceScatter[T Elem](c *Comm, in, out []T, counts []int, op Op[T]) error {
	k, err := reduceScattervCall(c, "ReduceScatter", in, out, counts, &op)
	if err != nil {
		return err
	}
	return reduction(c, &k, op)
}

// IreduceScatter starts a [ReduceScatter]. It does not retain counts.
func IreduceScatter[T Elem](c *Comm, in, out []T, counts []int, op Op[T]) Request {
	k, err := reduceScattervCall(c, "IreduceScatter", in, out, counts, &op)
	return startedReduction(c, &k, op, err)
}

// ReduceScatterInit prepares a [ReduceScatter]. It does not retain counts.
func ReduceScatterInit[T Elem](c *Comm, in, out []T, counts []int, op Op[T]) *Persistent {
	k, err := reduceScattervCall(c, "ReduceScatterInit", in, out, counts, &op)
	return preparedReduction(c, &k, op, err)
}

func reduceScattervCall[T Elem](c *Comm, name string, in, out []T, counts []int, op *Op[T]) (collCall, error) {
	if c.inter != nil {
		return interReduceScatterCall(c, name, in, out, counts, op)
	}
	given := in
	if in == nil {
		given = out
	}
	if err := c.usable(name); err != nil {
		return collCall{name: name}, err
	}
	if err := c.checkBlocks(name, "in", len(given), counts, nil); err != nil {
		return collCall{name: name}, err
	}
	return reduceScatterCall(c, name, in, out, counts, op)
}

// reduceScatterCall serves both calls; counts is nil if all blocks are equal.
func reduceScatterCall[T Elem](c *Comm, name string, in, out []T, counts []int, op *Op[T]) (collCall, error) {
	if c.inter != nil {
		return interReduceScatterCall(c, name, in, out, counts, op)
	}
	units, err := op.units(c, name, counts)
	if err != nil {
		return collCall{name: name}, err
	}
	k := collCall{name: name, sendCounts: units, key: planKey{kind: coll.ReduceScatter, ordered: op.NonCommutative,
		irregular: counts != nil, elem: op.elem(), typ: typeWord((*T)(nil))}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.usable(name); err != nil {
		return k, err
	}
	if err := checkOp(c, &k, op); err != nil {
		return k, err
	}
	inPlace := in == nil || same(in, out) && len(in) == len(out)
	given := in
	if inPlace {
		given = out
	}
	mine := len(given) / c.size
	all := mine * c.size
	k.key.bytes = mine * sizeOf[T]()
	if counts != nil {
		mine, all, k.key.bytes = counts[c.rank], 0, 0
		for _, n := range counts {
			all += n
		}
	}
	if len(given) != all {
		return k, c.refuse(ErrCount, name, "the contribution has %d elements; %d ranks share %d", len(given), c.size, all)
	}
	if err := op.whole(c, name, mine); err != nil {
		return k, err
	}
	if !inPlace && len(out) != mine {
		return k, c.refuse(ErrCount, name, "out has %d elements; this rank's part of the result has %d", len(out), mine)
	}
	k.out = rawBytes(out)
	if k.key.inPlace = inPlace && all > 0; !k.key.inPlace {
		k.in = rawBytes(in)
	}
	return k, nil
}
