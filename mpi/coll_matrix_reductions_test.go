package mpi_test

// The calls of the matrix that combine data.

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
)

// operation returns the operation of a call, and the same for two elements, the first of
// which is from the lower ranks.
func (k matrixCall) operation() (func() mpi.Op[odd], func(a, b odd) odd) {
	combine := oddMix
	if k.ordered {
		combine = oddProduct
	}
	return (&mpi.UserOp[odd]{Name: "odd", NonCommutative: k.ordered, Combine: func(inout, in []odd) {
		for i := range inout {
			inout[i] = combine(in[i], inout[i])
		}
	}}).Op, combine
}

// reduction prepares the call. Every rank contributes its elements 0, 1, …, and a rank
// gets those from first, combined over the ranks from 0 to last.
func (k matrixCall) reduction(c *mpi.Comm) *matrixRun {
	me, size := c.Rank(), c.Size()
	op, combine := k.operation()
	gives, gets, first, last := k.count, k.count, 0, size-1
	var lens []int
	switch k.kind {
	case coll.Scan:
		last = me
	case coll.Exscan:
		last = me - 1 // none for rank 0, whose out is not written
	case coll.ReduceScatter:
		b := k.draw(k.lengths(size, k.common()), k.common())
		lens, gives, gets = b.lens, 0, b.lens[me]
		for to, n := range lens {
			if to < me {
				first += n
			}
			gives += n
		}
	}
	inPlace := k.inPlace(me)
	r := buffers(gives, gets)
	if inPlace {
		r = buffers(0, gives)
		r.anyEnd = gives - gets
		k.load(r.out, me, 0)
	} else {
		k.load(r.in, me, 0)
	}
	want := r.given()
	if last >= 0 && (k.kind != coll.Reduce || me == k.root) {
		for i := range gets {
			v := oddFrom(int(k.seed), 0, 0, first+i)
			for from := 1; from <= last; from++ {
				v = combine(v, oddFrom(int(k.seed), from, 0, first+i))
			}
			want[i] = v
		}
	}
	in := r.in
	if inPlace {
		if in = r.out; k.seed%2 == 0 { // both ways to say so
			in = nil
		}
	}
	k.reductionForms(r, c, in, op, lens)
	return r
}

func (k matrixCall) reductionForms(r *matrixRun, c *mpi.Comm, in []odd, op func() mpi.Op[odd], lens []int) {
	switch {
	case k.kind == coll.Reduce:
		r.blocking = func() error { return mpi.Reduce(c, in, r.out, op, k.root) }
		r.start = func() mpi.Request { return mpi.Ireduce(c, in, r.out, op, k.root) }
		r.prepare = func() *mpi.Persistent { return mpi.ReduceInit(c, in, r.out, op, k.root) }
	case k.kind == coll.Allreduce:
		r.blocking = func() error { return mpi.Allreduce(c, in, r.out, op) }
		r.start = func() mpi.Request { return mpi.Iallreduce(c, in, r.out, op) }
		r.prepare = func() *mpi.Persistent { return mpi.AllreduceInit(c, in, r.out, op) }
	case k.kind == coll.Scan:
		r.blocking = func() error { return mpi.Scan(c, in, r.out, op) }
		r.start = func() mpi.Request { return mpi.Iscan(c, in, r.out, op) }
		r.prepare = func() *mpi.Persistent { return mpi.ScanInit(c, in, r.out, op) }
	case k.kind == coll.Exscan:
		r.blocking = func() error { return mpi.Exscan(c, in, r.out, op) }
		r.start = func() mpi.Request { return mpi.Iexscan(c, in, r.out, op) }
		r.prepare = func() *mpi.Persistent { return mpi.ExscanInit(c, in, r.out, op) }
	case k.irregular:
		r.blocking = func() error { return mpi.ReduceScatter(c, in, r.out, lens, op) }
		r.start = func() mpi.Request { return mpi.IreduceScatter(c, in, r.out, lens, op) }
		r.prepare = func() *mpi.Persistent { return mpi.ReduceScatterInit(c, in, r.out, lens, op) }
	default:
		r.blocking = func() error { return mpi.ReduceScatterBlock(c, in, r.out, op) }
		r.start = func() mpi.Request { return mpi.IreduceScatterBlock(c, in, r.out, op) }
		r.prepare = func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(c, in, r.out, op) }
	}
}
