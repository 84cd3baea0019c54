package core

// Constructors of datatypes (MPI-4.1 sections 5.1.2 to 5.1.4, 5.1.9 and 19.1.9).

import (
	"slices"

	"github.com/muster-mpi/muster/internal/dtype"
)

func typeConstructors() map[string]handler {
	return map[string]handler{
		"Type_contiguous":            (*Process).typeContiguous,
		"Type_vector":                typeVector(combinerVector, dtype.Vector, false),
		"Type_create_hvector":        typeVector(combinerHvector, dtype.Hvector, true),
		"Type_hvector":               typeVector(combinerHvector, dtype.Hvector, true),
		"Type_indexed":               typeIndexed(combinerIndexed, dtype.Indexed, false),
		"Type_create_hindexed":       typeIndexed(combinerHindexed, dtype.Hindexed, true),
		"Type_hindexed":              typeIndexed(combinerHindexed, dtype.Hindexed, true),
		"Type_create_indexed_block":  typeBlocks(combinerIndexedBlock, dtype.IndexedBlock, false),
		"Type_create_hindexed_block": typeBlocks(combinerHindexedBlock, dtype.HindexedBlock, true),
		"Type_create_struct":         (*Process).typeStruct,
		"Type_struct":                (*Process).typeStruct,
		"Type_create_resized":        (*Process).typeResized,
		"Type_create_subarray":       (*Process).typeSubarray,
		"Type_create_darray":         (*Process).typeDarray,
		"Type_dup":                   (*Process).typeDup,
		"Type_commit":                (*Process).typeCommit,
		"Type_free":                  (*Process).typeFree,
		"Type_create_f90_real":       (*Process).typeF90Real,
		"Type_create_f90_complex":    (*Process).typeF90Complex,
		"Type_create_f90_integer":    (*Process).typeF90Integer,
	}
}

// recipe returns how a datatype is made with no arguments yet.
func (a *args) recipe(c combiner, types ...*datatype) *recipe {
	return &recipe{combiner: c, large: a.wide, types: types}
}

// count, address and integer append arguments that are int or MPI_Count, MPI_Aint or
// MPI_Count, and always int.
func (r *recipe) count(v ...int) *recipe {
	if r.large {
		r.counts = append(r.counts, v...)
	} else {
		r.ints = append(r.ints, v...)
	}
	return r
}

func (r *recipe) address(v ...int) *recipe {
	if r.large {
		r.counts = append(r.counts, v...)
	} else {
		r.addrs = append(r.addrs, v...)
	}
	return r
}

func (r *recipe) integer(v ...int) *recipe {
	r.ints = append(r.ints, v...)
	return r
}

// addType stores the handle of a new datatype in argument i.
func (a *args) addType(i int, l *dtype.Layout, err error, elements *signature, r *recipe) error {
	if err != nil {
		return errorf(errArg, "%v", err)
	}
	t := newDatatype(l, elements, *r)
	t.handle = a.p.types.add(t)
	a.setHandle(i, t.handle)
	return nil
}

// arrays fails if arrays of n elements are NULL.
func (a *args) arrays(n int, positions ...int) {
	if n > 0 {
		a.results(positions...)
	}
}

// lengths returns the n block lengths of an array, and their sum.
func (a *args) lengths(i, n int) (v []int, sum int64) {
	v = a.ints(i, n)
	for k := range v {
		if v[k] < 0 {
			a.fail(errorf(errArg, "block length %d is %d", k, v[k]))
			return nil, 0
		}
		sum += int64(v[k])
	}
	return v, sum
}

func int64s(v []int) []int64 {
	out := make([]int64, len(v))
	for i := range v {
		out[i] = int64(v[i])
	}
	return out
}

func (p *Process) typeContiguous(a *args) error {
	n, base := a.count(0), a.datatype(1)
	if a.err != nil {
		return a.err
	}
	l, err := dtype.Contiguous(int64(n), base.layout)
	return a.addType(2, l, err, base.elements.times(int64(n)), a.recipe(combinerContiguous, base).count(n))
}

// distances returns n displacements or strides, counted in elements or, with bytes, in bytes.
func (a *args) distances(bytes bool, i, n int) []int {
	if bytes {
		return a.longs(i, n)
	}
	return a.ints(i, n)
}

// distance records them.
func (r *recipe) distance(bytes bool, v ...int) *recipe {
	if bytes {
		return r.address(v...)
	}
	return r.count(v...)
}

func typeVector(c combiner, layout func(n, length, stride int64, base *dtype.Layout) (*dtype.Layout, error), bytes bool) handler {
	return func(_ *Process, a *args) error {
		n, length, stride, base := a.count(0), a.count(1), a.int(2), a.datatype(3)
		if a.err != nil {
			return a.err
		}
		l, err := layout(int64(n), int64(length), int64(stride), base.layout)
		return a.addType(4, l, err, base.elements.times(int64(n)*int64(length)), a.recipe(c, base).count(n, length).distance(bytes, stride))
	}
}

func typeIndexed(c combiner, layout func(lengths, displs []int64, base *dtype.Layout) (*dtype.Layout, error), bytes bool) handler {
	return func(_ *Process, a *args) error {
		n, base := a.count(0), a.datatype(3)
		a.results(4)
		if a.arrays(n, 1, 2); a.err != nil {
			return a.err
		}
		lengths, sum := a.lengths(1, n)
		if a.err != nil {
			return a.err
		}
		displs := a.distances(bytes, 2, n)
		l, err := layout(int64s(lengths), int64s(displs), base.layout)
		return a.addType(4, l, err, base.elements.times(sum), a.recipe(c, base).count(n).count(lengths...).distance(bytes, displs...))
	}
}

func typeBlocks(c combiner, layout func(length int64, displs []int64, base *dtype.Layout) (*dtype.Layout, error), bytes bool) handler {
	return func(_ *Process, a *args) error {
		n, length, base := a.count(0), a.count(1), a.datatype(3)
		a.results(4)
		if a.arrays(n, 2); a.err != nil {
			return a.err
		}
		displs := a.distances(bytes, 2, n)
		l, err := layout(int64(length), int64s(displs), base.layout)
		return a.addType(4, l, err, base.elements.times(int64(n)*int64(length)), a.recipe(c, base).count(n, length).distance(bytes, displs...))
	}
}

func (p *Process) typeStruct(a *args) error {
	n := a.count(0)
	a.results(4)
	if a.arrays(n, 1, 2, 3); a.err != nil {
		return a.err
	}
	lengths, _ := a.lengths(1, n)
	if a.err != nil {
		return a.err
	}
	displs := a.longs(2, n)
	types, layouts, parts := make([]*datatype, n), make([]*dtype.Layout, n), make([]part, n)
	for i, h := range a.handles(3, n).all() {
		t, err := p.datatype(h)
		if err != nil {
			return err
		}
		types[i], layouts[i], parts[i] = t, t.layout, part{int64(lengths[i]), t.elements}
	}
	l, err := dtype.Struct(int64s(lengths), int64s(displs), layouts)
	return a.addType(4, l, err, sequence(parts), a.recipe(combinerStruct, types...).count(n).count(lengths...).address(displs...))
}

func (p *Process) typeResized(a *args) error {
	base, lower, extent := a.datatype(0), a.int(1), a.int(2)
	l, err := dtype.Resized(base.layout, int64(lower), int64(extent))
	return a.addType(3, l, err, base.elements, a.recipe(combinerResized, base).address(lower, extent))
}

// orderC and orderFortran say which dimension of an array is contiguous: the last or the
// first.
const (
	orderC       = 56
	orderFortran = 57
)

func (p *Process) typeSubarray(a *args) error {
	n, order, base := a.int(0), a.int(4), a.datatype(5)
	if n < 1 {
		a.fail(errorf(errArg, "the array has %d dimensions", n))
	}
	if order != orderC && order != orderFortran {
		a.fail(errorf(errArg, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order))
	}
	if a.results(1, 2, 3, 6); a.err != nil {
		return a.err
	}
	sizes, subsizes, starts := a.ints(1, n), a.ints(2, n), a.ints(3, n)
	r := a.recipe(combinerSubarray, base).integer(n).count(sizes...).count(subsizes...).count(starts...).integer(order)
	if order == orderFortran {
		slices.Reverse(sizes)
		slices.Reverse(subsizes)
		slices.Reverse(starts)
	}
	l, err := dtype.Subarray(int64s(sizes), int64s(subsizes), int64s(starts), base.layout)
	if err != nil {
		return errorf(errArg, "%v", err)
	}
	return a.addType(6, l, nil, base.elements.times(product(subsizes)), r)
}

func product(v []int) int64 {
	n := int64(1)
	for _, x := range v {
		n *= int64(x)
	}
	return n
}

// Distributions of a dimension: MPI_DISTRIBUTE_.
const (
	distributeBlock  = 121
	distributeCyclic = 122
	distributeNone   = 123
	distributeDflt   = -49767
)

func (p *Process) typeDarray(a *args) error {
	size, rank, n, order, base := a.int(0), a.int(1), a.int(2), a.int(7), a.datatype(8)
	if n < 1 || size < 1 || rank < 0 || rank >= size {
		a.fail(errorf(errArg, "the array has %d dimensions, and this is process %d of %d", n, rank, size))
	}
	if order != orderC && order != orderFortran {
		a.fail(errorf(errArg, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order))
	}
	if a.results(3, 4, 5, 6, 9); a.err != nil {
		return a.err
	}
	sizes, distribs, dargs, procs := a.ints(3, n), a.numbers(numberDistribution, 4, n), a.numbers(numberDarg, 5, n), a.shorts(6, n)
	if slices.Min(procs) < 1 || product(procs) != int64(size) {
		return errorf(errArg, "the grid %v does not have %d processes", procs, size)
	}
	dims := make([]dtype.Distribution, n)
	for i, rest := n-1, rank; i >= 0; i-- { // the order of processes is always that of C
		block, err := blockSize(sizes[i], distribs[i], dargs[i], procs[i])
		if err != nil {
			return err
		}
		dims[i] = dtype.Distribution{Size: int64(sizes[i]), Block: int64(block), Procs: int64(procs[i]), Coord: int64(rest % procs[i])}
		rest /= procs[i]
	}
	r := a.recipe(combinerDarray, base).integer(size, rank, n).count(sizes...).integer(distribs...).integer(dargs...).integer(procs...).integer(order)
	if order == orderFortran {
		slices.Reverse(dims)
	}
	l, err := dtype.Darray(dims, base.layout)
	if err != nil {
		return errorf(errArg, "%v", err)
	}
	number := int64(0)
	if base.layout.Size() > 0 {
		number = l.Size() / base.layout.Size()
	}
	return a.addType(9, l, nil, base.elements.times(number), r)
}

// blockSize returns the size of the blocks of a dimension of a distributed array.
func blockSize(size, distribution, darg, procs int) (int, error) {
	switch {
	case distribution == distributeNone && procs == 1:
		return size, nil
	case distribution == distributeNone:
		return 0, errorf(errArg, "a dimension that is not distributed has %d processes", procs)
	case distribution == distributeCyclic && darg == distributeDflt:
		return 1, nil
	case distribution == distributeBlock && darg == distributeDflt:
		return (size + procs - 1) / procs, nil
	case distribution != distributeCyclic && distribution != distributeBlock:
		return 0, errorf(errArg, "%d is not a distribution", distribution)
	case darg < 1:
		return 0, errorf(errArg, "the argument of a distribution is %d", darg)
	case distribution == distributeBlock && darg*procs < size:
		return 0, errorf(errArg, "%d blocks of %d do not hold %d elements", procs, darg, size)
	}
	return darg, nil
}

func (p *Process) typeDup(a *args) error {
	base := a.datatype(0)
	t := newDatatype(base.layout, base.elements, *a.recipe(combinerDup, base))
	t.recipe.large = false
	t.committed.Store(base.committed.Load())
	t.handle = p.types.add(t)
	if err := p.copyAttrs(base, t); err != nil {
		p.types.remove(t.handle)
		return err
	}
	a.setHandle(1, t.handle)
	return nil
}

func (p *Process) typeCommit(a *args) error {
	t, err := p.datatype(a.handleAt(0).get())
	if err != nil {
		return err
	}
	t.committed.Store(true)
	return nil
}

func (p *Process) typeFree(a *args) error {
	h := a.handleAt(0)
	t, err := p.datatype(h.get())
	if err != nil {
		return err
	}
	if t.basic {
		return errorf(errType, "%s is predefined and cannot be freed", t.name)
	}
	p.base.mu.Lock()
	last := t.refs == 1
	p.base.mu.Unlock()
	if last {
		if err := p.deleteAttrs(t); err != nil {
			return err
		}
	}
	p.base.mu.Lock()
	defer p.base.mu.Unlock()
	if t.refs--; t.refs == 0 {
		p.types.remove(h.get())
	}
	h.set(datatypeNull)
	return nil
}

// f90Key is the arguments of MPI_Type_create_f90_. A Fortran program may call them often, so
// they must return the same datatype each time.
type f90Key struct {
	combiner          combiner
	precision, range_ int
}

// f90Sizes are the decimal precision and exponent range of the real types of Fortran, and
// the decimal range of its integer types, by size.
var (
	f90Reals    = []struct{ size, precision, exponent int }{{4, 6, 37}, {8, 15, 307}, {16, 33, 4931}}
	f90Integers = []struct{ size, digits int }{{1, 2}, {2, 4}, {4, 9}, {8, 18}}
)

func (p *Process) typeF90Real(a *args) error {
	return p.f90Real(a, f90Key{combinerF90Real, a.int(0), a.int(1)}, classReal, 1)
}

func (p *Process) typeF90Complex(a *args) error {
	return p.f90Real(a, f90Key{combinerF90Complex, a.int(0), a.int(1)}, classComplex, 2)
}

func (p *Process) f90Real(a *args, key f90Key, class typeClass, factor int) error {
	if a.results(2); a.err != nil {
		return a.err
	}
	if key.precision == undefined && key.range_ == undefined {
		return errorf(errArg, "neither the precision nor the range is given")
	}
	for _, f := range f90Reals {
		if key.precision <= f.precision && key.range_ <= f.exponent { // MPI_UNDEFINED is negative
			return p.setF90(a, 2, key, sizedTypes[class][f.size*factor], key.precision, key.range_)
		}
	}
	return errorf(errArg, "no type has %d digits and exponents to %d", key.precision, key.range_)
}

func (p *Process) typeF90Integer(a *args) error {
	key := f90Key{combinerF90Integer, 0, a.int(0)}
	for _, f := range f90Integers {
		if key.range_ <= f.digits {
			return p.setF90(a, 1, key, sizedTypes[classInteger][f.size], key.range_)
		}
	}
	return errorf(errArg, "no integer type has %d digits", key.range_)
}

// setF90 stores the datatype of a key, which it makes of a predefined one.
func (p *Process) setF90(a *args, i int, key f90Key, base handle, ints ...int) error {
	like, err := p.datatype(base)
	if err != nil {
		return err
	}
	p.base.mu.Lock()
	defer p.base.mu.Unlock()
	t := p.base.f90[key]
	if t == nil {
		t = newDatatype(like.layout, like.elements, recipe{combiner: key.combiner, ints: ints})
		t.kind, t.reduce, t.basic = like.kind, like.reduce, true
		t.committed.Store(true)
		t.handle = p.types.add(t)
		p.base.f90[key] = t
	}
	a.setHandle(i, t.handle)
	return nil
}
