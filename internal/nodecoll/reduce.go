package nodecoll

// Collectives that reduce. combine(inout, in) sets inout[i] to in[i] ∘ inout[i];
// in comes from the lower ranks. Results are made from the highest rank down, by
// everyone alike: x₀ ∘ (x₁ ∘ (… ∘ xₙ₋₁)). So operations need not commute, and all
// ranks get the same bits. The operands are read where their ranks wrote them.
// in and out may be the same slice.

import "github.com/muster-mpi/muster/internal/coll"

// Reduce combines the data of all ranks in root's out. The root does all the work;
// the others only copy in, and are ahead by up to four rounds.
func Reduce[T any](t *Team, op string, in, out []T, combine func(inout, in []T), root int) error {
	bytes := len(in) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, coll.Reduce, bytes, sizeOf[T]()); err != nil {
		return err
	}
	step := t.piece(coll.Reduce, bytes, sizeOf[T]()) / sizeOf[T]()
	for at := 0; at < len(in); at += step {
		part := in[at:min(at+step, len(in))]
		n := t.next()
		switch {
		case t.rank != root:
			if err := t.give(n, bytesOf(part)); err != nil {
				return err
			}
		default:
			to := out[at:][:len(part)]
			if same(part, to) && root != t.size-1 {
				// The first copy into out would overwrite the own operand.
				if err := t.room(n); err != nil {
					return err
				}
				part = elements[T](t.mine.place(n, len(bytesOf(part))))
				copy(part, to)
			}
			if err := fold(t, n, t.size-1, root, part, to, combine); err != nil {
				return err
			}
		}
		if err := t.through(n); err != nil {
			return err
		}
	}
	return t.end()
}

// fold combines what ranks 0 to last have given in a round into to. The operand of
// rank me is at hand.
func fold[T any](t *Team, round uint64, last, me int, own, to []T, combine func(inout, in []T)) error {
	bytes := len(to) * sizeOf[T]()
	for q := last; q >= 0; q-- {
		from := own
		if q != me {
			if err := t.await(q, round); err != nil {
				return err
			}
			from = elements[T](t.seg.sections[q].place(round, bytes))
		}
		switch {
		case q == last:
			copy(to, from)
		case t.call.differs == nil: // what is there may be no operands
			combine(to, from)
		}
	}
	return nil
}

// Allreduce combines the data of all ranks in everybody's out.
func Allreduce[T any](t *Team, op string, in, out []T, combine func(inout, in []T)) error {
	bytes := len(in) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, coll.Allreduce, bytes, sizeOf[T]()); err != nil {
		return err
	}
	step := t.piece(coll.Allreduce, bytes, sizeOf[T]()) / sizeOf[T]()
	small := t.direct(bytes)
	for at := 0; at < len(in); at += step {
		part := in[at:min(at+step, len(in))]
		to := out[at:][:len(part)]
		var err error
		if small {
			err = allreduceDirect(t, part, to, combine)
		} else {
			err = allreduceShares(t, part, to, combine)
		}
		if err != nil {
			return err
		}
	}
	return t.end()
}

// allreduceDirect: everybody combines everything. With two ranks and a small
// operand that is one line each way.
func allreduceDirect[T any](t *Team, in, out []T, combine func(inout, in []T)) error {
	n := t.next()
	if err := t.give(n, bytesOf(in)); err != nil {
		return err
	}
	own := elements[T](t.mine.place(n, len(bytesOf(in))))
	if err := fold(t, n, t.size-1, t.rank, own, out, combine); err != nil {
		return err
	}
	t.exchanged(n)
	return nil
}

// allreduceShares: each rank combines its share of the elements of all ranks into
// its own section, and everybody copies the shares out.
func allreduceShares[T any](t *Team, in, out []T, combine func(inout, in []T)) error {
	bytes := len(bytesOf(in))
	n := t.next()
	if err := t.give(n, bytesOf(in)); err != nil {
		return err
	}
	lo, hi := t.share(t.rank, len(in))
	result := t.next()
	if err := t.room(result); err != nil {
		return err
	}
	mine := elements[T](t.mine.place(result, bytes))[lo:hi]
	for q := t.size - 1; q >= 0; q-- {
		if q != t.rank {
			if err := t.await(q, n); err != nil {
				return err
			}
		}
		from := elements[T](t.seg.sections[q].place(n, bytes))[lo:hi]
		switch {
		case q == t.size-1:
			copy(mine, from)
		case t.call.differs == nil:
			combine(mine, from)
		}
	}
	t.exchanged(n)
	if err := t.put(result); err != nil {
		return err
	}
	for d := range t.size {
		q := (t.rank + d) % t.size
		if q != t.rank {
			if err := t.await(q, result); err != nil {
				return err
			}
		}
		lo, hi := t.share(q, len(out))
		copy(out[lo:hi], elements[T](t.seg.sections[q].place(result, bytes))[lo:hi])
	}
	t.exchanged(result)
	return nil
}

// share is the part of n elements that a rank combines.
func (t *Team) share(rank, n int) (lo, hi int) { return n * rank / t.size, n * (rank + 1) / t.size }

// ReduceScatter combines block by block; each rank gets its own block in out. in
// has a block of len(out) elements for each rank.
func ReduceScatter[T any](t *Team, op string, in, out []T, combine func(inout, in []T)) error {
	bytes := len(out) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, coll.ReduceScatter, bytes, sizeOf[T]()); err != nil {
		return err
	}
	step := t.piece(coll.ReduceScatter, bytes, sizeOf[T]()) / sizeOf[T]()
	block := len(out)
	for at := 0; at < block; at += step {
		k := min(step, block-at)
		n := t.next()
		if err := t.room(n); err != nil {
			return err
		}
		whole := k * t.size * sizeOf[T]()
		to := elements[T](t.mine.place(n, whole))
		for q := range t.size {
			copy(to[q*k:(q+1)*k], in[q*block+at:])
		}
		if err := t.put(n); err != nil {
			return err
		}
		for q := t.size - 1; q >= 0; q-- {
			if q != t.rank {
				if err := t.await(q, n); err != nil {
					return err
				}
			}
			from := elements[T](t.seg.sections[q].place(n, whole))[t.rank*k : (t.rank+1)*k]
			switch {
			case q == t.size-1:
				copy(out[at:at+k], from)
			case t.call.differs == nil:
				combine(out[at:at+k], from)
			}
		}
		t.exchanged(n)
	}
	return t.end()
}

// Scan combines the data of ranks 0 to own in out.
func Scan[T any](t *Team, op string, in, out []T, combine func(inout, in []T)) error {
	return prefix(t, op, coll.Scan, t.rank, in, out, combine)
}

// Exscan combines the data of the ranks below the own one in out; that of rank 0
// is not written.
func Exscan[T any](t *Team, op string, in, out []T, combine func(inout, in []T)) error {
	return prefix(t, op, coll.Exscan, t.rank-1, in, out, combine)
}

// prefix combines ranks 0 to last. A rank does not wait for those above it.
func prefix[T any](t *Team, op string, kind coll.Kind, last int, in, out []T, combine func(inout, in []T)) error {
	bytes := len(in) * sizeOf[T]()
	if bytes == 0 {
		return nil
	}
	if err := t.begin(op, kind, bytes, sizeOf[T]()); err != nil {
		return err
	}
	step := t.piece(kind, bytes, sizeOf[T]()) / sizeOf[T]()
	for at := 0; at < len(in); at += step {
		part := in[at:min(at+step, len(in))]
		n := t.next()
		if err := t.give(n, bytesOf(part)); err != nil {
			return err
		}
		if last >= 0 {
			own := elements[T](t.mine.place(n, len(bytesOf(part))))
			if err := fold(t, n, last, t.rank, own, out[at:][:len(part)], combine); err != nil {
				return err
			}
		}
		if err := t.through(n); err != nil {
			return err
		}
	}
	return t.end()
}
