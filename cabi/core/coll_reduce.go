package core

// Collectives that combine data (MPI-4.1 sections 6.9 to 6.12). Predefined operations run on
// elements of a Go type, in the memory of the program. Those of the program run on units of
// bytes: elements of a datatype, at the distance of its extent, with the layout that the
// program expects.

import (
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/mpi"
)

// combination is a collective that combines data.
type combination int

const (
	toRoot combination = iota
	toAll
	scattered
	scatteredEvenly
	upToSelf
	belowSelf
)

// reduction is a call. The counts are those of MPI_Reduce_scatter, in bytes until perform.
type reduction struct {
	x       *collCall
	how     combination
	in, out []byte
	counts  []int
	root    int
}

// perform makes the call with elements of T.
func perform[T any](r *reduction, op func() mpi.Op[T]) error {
	c, x := r.x.c.Comm, r.x
	in, out := elements[T](r.in), elements[T](r.out)
	switch r.how {
	case toRoot:
		return x.run(
			func() error { return mpi.Reduce(c, in, out, op, r.root) },
			func() mpi.Request { return mpi.Ireduce(c, in, out, op, r.root) },
			func() *mpi.Persistent { return mpi.ReduceInit(c, in, out, op, r.root) })
	case toAll:
		return x.run(
			func() error { return mpi.Allreduce(c, in, out, op) },
			func() mpi.Request { return mpi.Iallreduce(c, in, out, op) },
			func() *mpi.Persistent { return mpi.AllreduceInit(c, in, out, op) })
	case scattered:
		size := sizeOf[T]()
		for i := range r.counts {
			r.counts[i] /= size
		}
		return x.run(
			func() error { return mpi.ReduceScatter(c, in, out, r.counts, op) },
			func() mpi.Request { return mpi.IreduceScatter(c, in, out, r.counts, op) },
			func() *mpi.Persistent { return mpi.ReduceScatterInit(c, in, out, r.counts, op) })
	case scatteredEvenly:
		return x.run(
			func() error { return mpi.ReduceScatterBlock(c, in, out, op) },
			func() mpi.Request { return mpi.IreduceScatterBlock(c, in, out, op) },
			func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(c, in, out, op) })
	case upToSelf:
		return x.run(
			func() error { return mpi.Scan(c, in, out, op) },
			func() mpi.Request { return mpi.Iscan(c, in, out, op) },
			func() *mpi.Persistent { return mpi.ScanInit(c, in, out, op) })
	}
	return x.run(
		func() error { return mpi.Exscan(c, in, out, op) },
		func() mpi.Request { return mpi.Iexscan(c, in, out, op) },
		func() *mpi.Persistent { return mpi.ExscanInit(c, in, out, op) })
}

func (p *Process) reduce(a *args, x *collCall) error {
	x.comm(6)
	r := x.role(5)
	if a.err != nil {
		return a.err
	}
	n := 0
	if r.isRoot || r.isOther {
		n = a.count(2)
	}
	return x.reduce(toRoot, r, n, n, nil)
}

func (p *Process) allreduce(a *args, x *collCall) error { return x.likeAllreduce(toAll) }
func (p *Process) scan(a *args, x *collCall) error      { return x.likeAllreduce(upToSelf) }
func (p *Process) exscan(a *args, x *collCall) error    { return x.likeAllreduce(belowSelf) }

// likeAllreduce serves the calls with the parameters of MPI_Allreduce.
func (x *collCall) likeAllreduce(how combination) error {
	x.comm(5)
	n := x.a.count(2)
	if x.a.err == nil && how != toAll && x.c.IsInter() {
		x.a.fail(errorf(errComm, "the call is not defined for inter-communicators"))
	}
	return x.reduce(how, role{isRoot: true, isOther: true}, n, n, nil)
}

func (p *Process) reduceScatter(a *args, x *collCall) error {
	c := x.comm(5)
	if a.err != nil {
		return a.err
	}
	counts := x.counts(2, c.Size())
	if counts == nil {
		a.fail(errorf(errArg, "the counts are NULL"))
		return a.err
	}
	all := 0
	for _, n := range counts {
		all += n
	}
	return x.reduce(scattered, role{isRoot: true, isOther: true}, all, counts[c.Rank()], counts)
}

func (p *Process) reduceScatterBlock(a *args, x *collCall) error {
	c := x.comm(5)
	if a.err != nil {
		return a.err
	}
	n := a.count(2)
	return x.reduce(scatteredEvenly, role{isRoot: true, isOther: true}, n*c.Size(), n, nil)
}

// reduce decodes the buffers, which are the first two parameters, and datatype and operation,
// parameters 3 and 4, and makes the call. A rank gives some elements and gets some.
func (x *collCall) reduce(how combination, who role, given, got int, counts []int) error {
	a := x.a
	if a.err == nil && !who.isRoot && !who.isOther { // the other arguments have no meaning
		return perform(&reduction{x: x, how: how, root: who.root}, mpi.BitOr[byte])
	}
	t := a.datatype(3)
	o, code := a.op(4)
	if a.err != nil {
		return a.err
	}
	if !t.committed.Load() {
		return errorf(errType, "the datatype is not committed")
	}
	var by arithmetic
	if o == nil {
		var err error
		if by, err = x.p.arithmetic(code, t); err != nil {
			return err
		}
	}
	mem := x.arrange(t)
	r := &reduction{x: x, how: how, root: who.root}
	inPlace := a.addr(0) == inPlace && who.isRoot && !x.c.IsInter()
	if !inPlace && who.isOther {
		r.in = mem.operand(reads, a.addr(0), given)
	}
	if who.isRoot {
		switch {
		case inPlace && given > got: // the result is a part of what was given
			r.out = mem.operand(reads, a.addr(1), given)
			mem.storeFirst(a.addr(1), r.out, got)
		case inPlace:
			r.out = mem.operand(reads|writes, a.addr(1), got)
		default:
			r.out = mem.operand(x.resultOf(how), a.addr(1), got)
		}
		if !inPlace && who.isOther && given > 0 && !x.c.IsInter() {
			x.differ(a.addr(0), a.addr(1))
		}
	}
	if a.err != nil {
		return a.err
	}
	for _, n := range counts {
		r.counts = append(r.counts, n*mem.unit)
	}
	if o == nil {
		return by.reduce(r, code)
	}
	return perform(r, x.p.users(o, t, mem.unit, mem.origin, mem.each))
}

// resultOf returns how a call uses the memory of its result. Exscan leaves that of rank 0 as
// it is (MPI-4.1 section 6.11.2).
func (x *collCall) resultOf(how combination) use {
	if how == belowSelf && x.c.Rank() == 0 {
		return 0
	}
	return writes
}

// arrangement is how elements of a datatype lie in the memory that operations work on.
type arrangement struct {
	x      *collCall
	t      *datatype
	direct bool // in the memory of the program
	unit   int  // distance of two elements
	origin int  // where the first byte is, relative to the address of an element
	each   bool // the program's function must get the elements one by one
}

// arrange returns the arrangement of elements of a datatype. If elements have gaps, operations work
// on copies, because package mpi copies and stores whole units. The elements of a datatype
// whose extent is smaller than what it spans overlap; then the copies do not.
func (x *collCall) arrange(t *datatype) *arrangement {
	l := t.layout
	k := &arrangement{x: x, t: t, unit: int(l.Extent()), origin: int(l.LowerBound())}
	if l.IsContiguous() && l.LowerBound() == 0 && l.TrueLowerBound() == 0 || t.basic {
		k.direct = true
		k.unit = max(k.unit, 1)
		return k
	}
	lo, hi := l.TrueLowerBound(), l.TrueLowerBound()+l.TrueExtent()
	if l.Extent() <= 0 || lo < l.LowerBound() || hi > l.LowerBound()+l.Extent() {
		const align = 16
		k.unit, k.origin, k.each = max(int(l.TrueExtent()+align-1)&^(align-1), align), int(lo), true
	}
	return k
}

// operand returns the memory for n elements at an address.
func (k *arrangement) operand(u use, addr uintptr, n int) []byte {
	x := k.x
	if n == 0 {
		return nil
	}
	if k.direct {
		if addr == inPlace || addr == bottom {
			x.a.fail(errorf(errBuffer, "the buffer is NULL or MPI_IN_PLACE"))
			return nil
		}
		return memory[byte](addr, n*k.unit)
	}
	out := make([]byte, n*k.unit)
	if u&reads != 0 {
		k.transfer(&x.pack, addr, out, n, true)
	}
	if u&writes != 0 {
		k.transfer(&x.unpack, addr, out, n, false)
	}
	return out
}

// storeFirst makes the call store the first n elements of an operand when it is complete.
func (k *arrangement) storeFirst(addr uintptr, mem []byte, n int) {
	if !k.direct && n > 0 {
		k.transfer(&k.x.unpack, addr, mem, n, false)
	}
}

// transfer adds a copy of n elements to or from the memory of operations.
func (k *arrangement) transfer(to *[]func(), addr uintptr, mem []byte, n int, in bool) {
	var theirs, own []dtype.View
	count, step := n, 1
	if k.each {
		count, step = 1, n
	}
	for i := range step {
		theirs = append(theirs, k.x.view(k.t, addr+uintptr(i*int(k.t.layout.Extent())), count))
		v, err := k.t.layout.View(mem, int64(i*k.unit-k.origin), int64(count))
		if err != nil {
			k.x.a.fail(err)
			return
		}
		own = append(own, v)
	}
	packed := make([]byte, own[0].Len())
	*to = append(*to, func() {
		for i := range own {
			if in {
				theirs[i].Pack(packed, 0)
				own[i].Unpack(packed, 0)
			} else {
				own[i].Pack(packed, 0)
				theirs[i].Unpack(packed, 0)
			}
		}
	})
}
