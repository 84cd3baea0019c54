package nodecoll

// Collectives that move data. Blocks have equal length. A nil in means in place, as
// MPI-4.1 section 6.2.1 defines it for each call.

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/longcopy"
)

// Barrier returns when every rank has called it: an exchange without data. Each rank reads
// the line of each other one, which on the cores of one node is faster than several steps
// with fewer reads.
func (t *Team) Barrier(op string) error {
	return t.synchronize(op, coll.MakeCall(coll.Barrier, coll.Blocking, coll.NoRoot, 0))
}

// Finalize is a Barrier that does not match other ones.
func (t *Team) Finalize(op string) error {
	return t.synchronize(op, coll.MakeCall(coll.Finalize, coll.Blocking, coll.NoRoot, 0))
}

func (t *Team) synchronize(op string, c coll.Call) error {
	if err := t.begin(op, c); err != nil {
		return err
	}
	n := t.next(0)
	if err := t.room(); err != nil {
		return err
	}
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
	t.recordExchange(n)
	return nil
}

// Bcast distributes root's data: the root writes, all others copy out at the same time
// (T2 4.3.1).
func (t *Team) Bcast(op string, data []byte, root int) error {
	if err := t.begin(op, coll.MakeCall(coll.Bcast, coll.Blocking, root, len(data))); err != nil {
		return err
	}
	step := t.piece(coll.Bcast, 1)
	for at := 0; at < len(data); at += step {
		part := data[at:min(at+step, len(data))]
		n := t.next(len(part))
		if t.rank == root {
			if err := t.room(); err != nil {
				return err
			}
			copy(t.mine.buffer(n, len(part)), part)
			if err := t.put(n); err != nil {
				return err
			}
		} else {
			if err := t.await(root, n); err != nil {
				return err
			}
			copy(part, t.seg.sections[root].buffer(n, len(part)))
		}
		if err := t.finishRound(); err != nil {
			return err
		}
	}
	return nil
}

// Gather collects a block of each rank in root's out: all write at the same time, the root
// copies out (T2 4.3.1).
func (t *Team) Gather(op string, in, out []byte, block, root int) error {
	if err := t.begin(op, coll.MakeCall(coll.Gather, coll.Blocking, root, block)); err != nil {
		return err
	}
	step := t.piece(coll.Gather, 1)
	for at := 0; at < block; at += step {
		k := min(step, block-at)
		n := t.next(k)
		if t.rank != root {
			if err := t.give(n, in[at:at+k]); err != nil {
				return err
			}
		} else {
			for q := range t.size {
				if q == root {
					continue
				}
				if err := t.take(q, n, out[q*block+at:][:k]); err != nil {
					return err
				}
			}
		}
		if err := t.finishRound(); err != nil {
			return err
		}
	}
	if t.rank == root && in != nil {
		longcopy.Copy(out[root*block:][:block], in)
	}
	return nil
}

// Allgather collects a block of each rank in every rank's out.
func (t *Team) Allgather(op string, in, out []byte, block int) error {
	if err := t.begin(op, coll.MakeCall(coll.Allgather, coll.Blocking, coll.NoRoot, block)); err != nil {
		return err
	}
	own := out[t.rank*block:][:block]
	if in != nil {
		longcopy.Copy(own, in)
	}
	step := t.piece(coll.Allgather, 1)
	for at := 0; at < block; at += step {
		k := min(step, block-at)
		n := t.next(k)
		if err := t.give(n, own[at:at+k]); err != nil {
			return err
		}
		for d := 1; d < t.size; d++ { // spread the ranks over the sections
			q := (t.rank + d) % t.size
			if err := t.take(q, n, out[q*block+at:][:k]); err != nil {
				return err
			}
		}
		t.recordExchange(n)
	}
	return nil
}

// give writes a part into this rank's section and publishes it.
func (t *Team) give(round uint64, part []byte) error {
	if err := t.room(); err != nil {
		return err
	}
	copy(t.mine.buffer(round, len(part)), part)
	return t.put(round)
}

// take copies a part out of a rank's section.
func (t *Team) take(q int, round uint64, part []byte) error {
	if err := t.await(q, round); err != nil {
		return err
	}
	copy(part, t.seg.sections[q].buffer(round, len(part)))
	return nil
}

// Scatter sends each rank its block of root's in. A nil out at the root means in place: its
// own block stays where it is.
func (t *Team) Scatter(op string, in, out []byte, block, root int) error {
	if err := t.begin(op, coll.MakeCall(coll.Scatter, coll.Blocking, root, block)); err != nil {
		return err
	}
	step := t.piece(coll.Scatter, 1)
	for at := 0; at < block; at += step {
		k := min(step, block-at)
		n := t.next(k * t.size)
		if t.rank == root {
			if err := t.deal(n, in, block, at, k); err != nil {
				return err
			}
		} else {
			if err := t.draw(root, n, out[at:at+k]); err != nil {
				return err
			}
		}
		if err := t.finishRound(); err != nil {
			return err
		}
	}
	if t.rank == root && out != nil {
		longcopy.Copy(out[:block], in[root*block:])
	}
	return nil
}

// Alltoall sends the q-th block of in to rank q, and receives rank q's block into the q-th
// block of out.
func (t *Team) Alltoall(op string, in, out []byte, block int) error {
	if err := t.begin(op, coll.MakeCall(coll.Alltoall, coll.Blocking, coll.NoRoot, block)); err != nil {
		return err
	}
	if in == nil {
		in = out // a round overwrites only what it has already sent
	} else {
		longcopy.Copy(out[t.rank*block:][:block], in[t.rank*block:])
	}
	step := t.piece(coll.Alltoall, 1)
	for at := 0; at < block; at += step {
		k := min(step, block-at)
		n := t.next(k * t.size)
		if err := t.deal(n, in, block, at, k); err != nil {
			return err
		}
		for d := 1; d < t.size; d++ {
			q := (t.rank + d) % t.size
			if err := t.draw(q, n, out[q*block+at:][:k]); err != nil {
				return err
			}
		}
		t.recordExchange(n)
	}
	return nil
}

// deal publishes k bytes of each block for the other ranks, side by side.
func (t *Team) deal(round uint64, in []byte, block, at, k int) error {
	if err := t.room(); err != nil {
		return err
	}
	to := t.mine.buffer(round, k*t.size)
	for q := range t.size {
		if q != t.rank {
			copy(to[q*k:(q+1)*k], in[q*block+at:])
		}
	}
	return t.put(round)
}

// draw copies out this rank's part of what another rank has dealt.
func (t *Team) draw(q int, round uint64, part []byte) error {
	if err := t.await(q, round); err != nil {
		return err
	}
	k := len(part)
	copy(part, t.seg.sections[q].buffer(round, k*t.size)[t.rank*k:])
	return nil
}
