package nodecoll

// Collectives that reduce. combine(inout, in) sets inout[i] to in[i] ∘ inout[i]; in comes
// from lower ranks, unless commutes reports that the order does not matter. All ranks
// combine in the same order, from the highest rank down: x₀ ∘ (x₁ ∘ (… ∘ xₙ₋₁)). So all
// get the same bits. The operands are read from the sections where their ranks wrote them.
// in and out may be the same slice. combine gets multiples of unit elements.

import "github.com/muster-mpi/muster/internal/coll"

// Reduce combines the data of all ranks in root's out. The root does all the work; the
// others only copy in, and run ahead.
func Reduce[T any](t *Team, op string, in, out []T, combine func(inout, in []T), unit int, commutes bool, root int) error {
	bytes := len(in) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, coll.MakeCall(coll.Reduce, coll.Blocking, root, bytes)); err != nil {
		return err
	}
	step := t.piece(coll.Reduce, unit*sizeOf[T]()) / sizeOf[T]()
	for at := 0; at < len(in); at += step {
		part := in[at:min(at+step, len(in))]
		n := t.next(len(part) * sizeOf[T]())
		var err error
		if t.rank == root {
			err = reduceAt(t, n, part, out[at:][:len(part)], combine, commutes)
		} else {
			err = t.give(n, bytesOf(part))
		}
		if err == nil {
			err = t.finishRound()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reduceAt is the root's part of a round.
func reduceAt[T any](t *Team, round uint64, own, to []T, combine func(inout, in []T), commutes bool) error {
	switch {
	case commutes:
		return gatherInto(t, round, own, to, combine)
	case t.rank != t.size-1 && same(own, to):
		// The first copy into out would overwrite the own operand.
		if err := t.room(); err != nil {
			return err
		}
		own = elements[T](t.mine.buffer(round, len(bytesOf(to))))
		copy(own, to)
	}
	return fold(t, round, t.size-1, own, to, combine)
}

// gatherInto combines the other ranks' operands into this rank's own.
func gatherInto[T any](t *Team, round uint64, own, to []T, combine func(inout, in []T)) error {
	if !same(own, to) {
		copy(to, own)
	}
	for q := t.size - 1; q >= 0; q-- {
		if q == t.rank {
			continue
		}
		from, err := operand[T](t, q, round, len(to))
		if err != nil {
			return err
		}
		combine(to, from)
	}
	return nil
}

// operand waits for a rank's operand of a round and returns it.
func operand[T any](t *Team, q int, round uint64, n int) ([]T, error) {
	if err := t.await(q, round); err != nil {
		return nil, err
	}
	return elements[T](t.seg.sections[q].buffer(round, n*sizeOf[T]())), nil
}

// fold combines the operands of ranks 0 to last in a round into to, in order. own is this
// rank's operand, in memory that does not change with to, unless this rank is the last.
func fold[T any](t *Team, round uint64, last int, own, to []T, combine func(inout, in []T)) error {
	for q := last; q >= 0; q-- {
		from := own
		if q != t.rank {
			var err error
			if from, err = operand[T](t, q, round, len(to)); err != nil {
				return err
			}
		}
		switch {
		case q < last:
			combine(to, from)
		case !same(from, to):
			copy(to, from)
		}
	}
	return nil
}

// Allreduce combines the data of all ranks in every rank's out.
func Allreduce[T any](t *Team, op string, in, out []T, combine func(inout, in []T), unit int, commutes bool) error {
	bytes := len(in) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, coll.MakeCall(coll.Allreduce, coll.Blocking, coll.NoRoot, bytes)); err != nil {
		return err
	}
	step := t.piece(coll.Allreduce, unit*sizeOf[T]()) / sizeOf[T]()
	small := t.direct(bytes)
	for at := 0; at < len(in); at += step {
		part := in[at:min(at+step, len(in))]
		to := out[at:][:len(part)]
		var err error
		if small {
			err = allreduceDirect(t, part, to, combine, commutes)
		} else {
			err = allreduceShares(t, part, to, combine, unit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allreduceDirect makes every rank combine everything. With two ranks and a small operand
// that is one line each way.
func allreduceDirect[T any](t *Team, in, out []T, combine func(inout, in []T), commutes bool) error {
	n := t.next(len(bytesOf(in)))
	err := t.give(n, bytesOf(in))
	switch {
	case err != nil:
	case t.size == 2 && commutes:
		// With two operands either order yields the same bits.
		err = gatherInto(t, n, in, out, combine)
	case t.rank == t.size-1:
		err = fold(t, n, t.size-1, in, out, combine)
	default:
		own := elements[T](t.mine.buffer(n, len(bytesOf(in))))
		err = fold(t, n, t.size-1, own, out, combine)
	}
	if err == nil {
		t.recordExchange(n)
	}
	return err
}

// allreduceShares makes each rank combine its share of the elements of all ranks in its
// own section; then every rank copies the shares out. A rank publishes what is not its own
// share.
func allreduceShares[T any](t *Team, in, out []T, combine func(inout, in []T), unit int) error {
	bytes := len(bytesOf(in))
	n := t.next(bytes)
	if err := t.room(); err != nil {
		return err
	}
	lo, hi := t.share(t.rank, len(in), unit)
	given := elements[T](t.mine.buffer(n, bytes))
	copy(given[:lo], in[:lo])
	copy(given[hi:], in[hi:])
	if err := t.put(n); err != nil {
		return err
	}
	for q := range t.size {
		if q == t.rank {
			continue
		}
		if err := t.await(q, n); err != nil {
			return err
		}
	}
	t.recordExchange(n) // now there is room for the result
	result := t.next(bytes)
	if err := t.room(); err != nil {
		return err
	}
	mine := elements[T](t.mine.buffer(result, bytes))[lo:hi]
	for q := t.size - 1; q >= 0; q-- {
		from := in
		if q != t.rank {
			var err error
			if from, err = operand[T](t, q, n, len(in)); err != nil {
				return err
			}
		}
		if q == t.size-1 {
			copy(mine, from[lo:hi])
		} else {
			combine(mine, from[lo:hi])
		}
	}
	if err := t.put(result); err != nil {
		return err
	}
	copy(out[lo:hi], mine)
	for d := 1; d < t.size; d++ {
		q := (t.rank + d) % t.size
		from, err := operand[T](t, q, result, len(out))
		if err != nil {
			return err
		}
		lo, hi := t.share(q, len(out), unit)
		copy(out[lo:hi], from[lo:hi])
	}
	t.recordExchange(result)
	return nil
}

// share returns the part of n elements that a rank combines: whole units.
func (t *Team) share(rank, n, unit int) (lo, hi int) {
	n /= unit
	return n * rank / t.size * unit, n * (rank + 1) / t.size * unit
}

// ReduceScatter combines block by block; each rank gets its own block in out. in has a
// block of len(out) elements for each rank.
func ReduceScatter[T any](t *Team, op string, in, out []T, combine func(inout, in []T), unit int) error {
	bytes := len(out) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, coll.MakeCall(coll.ReduceScatter, coll.Blocking, coll.NoRoot, bytes)); err != nil {
		return err
	}
	step := t.piece(coll.ReduceScatter, unit*sizeOf[T]()) / sizeOf[T]()
	block := len(out)
	for at := 0; at < block; at += step {
		k := min(step, block-at)
		if err := reduceScatterRound(t, in, out, at, k, combine); err != nil {
			return err
		}
	}
	return nil
}

// reduceScatterRound is one round: k elements of each block, from at on.
func reduceScatterRound[T any](t *Team, in, out []T, at, k int, combine func(inout, in []T)) error {
	n := t.next(k * t.size * sizeOf[T]())
	if err := t.room(); err != nil {
		return err
	}
	block := len(out)
	given := elements[T](t.mine.buffer(n, k*t.size*sizeOf[T]()))
	for q := range t.size {
		copy(given[q*k:(q+1)*k], in[q*block+at:])
	}
	if err := t.put(n); err != nil {
		return err
	}
	for q := t.size - 1; q >= 0; q-- {
		from := given
		if q != t.rank {
			var err error
			if from, err = operand[T](t, q, n, k*t.size); err != nil {
				return err
			}
		}
		from = from[t.rank*k : (t.rank+1)*k]
		if q == t.size-1 {
			copy(out[at:at+k], from)
		} else {
			combine(out[at:at+k], from)
		}
	}
	t.recordExchange(n)
	return nil
}

// Scan combines the data of ranks 0 to this one in out.
func Scan[T any](t *Team, op string, in, out []T, combine func(inout, in []T), unit int) error {
	return prefix(t, op, coll.Scan, t.rank, in, out, combine, unit)
}

// Exscan combines the data of the ranks below this one in out; that of rank 0 is not
// written.
func Exscan[T any](t *Team, op string, in, out []T, combine func(inout, in []T), unit int) error {
	return prefix(t, op, coll.Exscan, t.rank-1, in, out, combine, unit)
}

// prefix combines ranks 0 to last. A rank does not wait for those above it.
func prefix[T any](t *Team, op string, kind coll.Kind, last int, in, out []T, combine func(inout, in []T), unit int) error {
	bytes := len(in) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, coll.MakeCall(kind, coll.Blocking, coll.NoRoot, bytes)); err != nil {
		return err
	}
	step := t.piece(kind, unit*sizeOf[T]()) / sizeOf[T]()
	for at := 0; at < len(in); at += step {
		part := in[at:min(at+step, len(in))]
		n := t.next(len(bytesOf(part)))
		if err := t.give(n, bytesOf(part)); err != nil {
			return err
		}
		if err := fold(t, n, last, part, out[at:][:len(part)], combine); err != nil {
			return err
		}
		if err := t.finishRound(); err != nil {
			return err
		}
	}
	return nil
}
