package core

// What a program can ask of a datatype (MPI-4.1 sections 5.1.5 to 5.1.8, 5.1.13, 7.8 and
// 19.1.9).

import (
	"slices"

	"github.com/muster-mpi/muster/internal/dtype"
)

func typeQueries() map[string]handler {
	lower := func(l *dtype.Layout) int64 { return l.LowerBound() }
	upper := func(l *dtype.Layout) int64 { return l.LowerBound() + l.Extent() }
	return map[string]handler{
		"Get_address":            (*Process).getAddress,
		"Address":                (*Process).getAddress,
		"Type_size":              (*Process).typeSize,
		"Type_size_x":            (*Process).typeSizeX,
		"Type_get_extent":        (*Process).typeExtent,
		"Type_get_extent_x":      (*Process).typeExtent,
		"Type_get_true_extent":   (*Process).typeTrueExtent,
		"Type_get_true_extent_x": (*Process).typeTrueExtent,
		"Type_extent":            typeBound((*dtype.Layout).Extent),
		"Type_lb":                typeBound(lower),
		"Type_ub":                typeBound(upper),
		"Type_get_name":          (*Process).typeGetName,
		"Type_set_name":          (*Process).typeSetName,
		"Type_get_envelope":      (*Process).typeEnvelope,
		"Type_get_contents":      (*Process).typeContents,
		"Type_match_size":        (*Process).typeMatchSize,
	}
}

func (p *Process) getAddress(a *args) error {
	a.setAint(1, int(a.addr(0)))
	return nil
}

func (p *Process) typeSize(a *args) error {
	t := a.datatype(0)
	a.setNumber(1, t.layout.Size())
	return nil
}

func (p *Process) typeSizeX(a *args) error {
	a.wide = true
	return p.typeSize(a)
}

func (p *Process) typeExtent(a *args) error {
	t := a.datatype(0)
	a.setAint(1, int(t.layout.LowerBound()))
	a.setAint(2, int(t.layout.Extent()))
	return nil
}

func (p *Process) typeTrueExtent(a *args) error {
	t := a.datatype(0)
	a.setAint(1, int(t.layout.TrueLowerBound()))
	a.setAint(2, int(t.layout.TrueExtent()))
	return nil
}

// typeBound returns a function of MPI-1 that stores one bound of a datatype.
func typeBound(bound func(*dtype.Layout) int64) handler {
	return func(p *Process, a *args) error {
		t := a.datatype(0)
		if a.results(1); a.err != nil {
			return a.err
		}
		a.setAint(1, int(bound(t.layout)))
		return nil
	}
}

func (p *Process) typeGetName(a *args) error {
	t := a.datatype(0)
	p.base.mu.Lock()
	defer p.base.mu.Unlock()
	a.setInt(2, a.setText(1, t.name, p.abi.limits.objectName))
	return nil
}

func (p *Process) typeSetName(a *args) error {
	t := a.datatype(0)
	name := a.text(1)
	if limit := p.abi.limits.objectName - 1; len(name) > limit {
		return errorf(errArg, "the name has %d bytes; the limit is %d", len(name), limit)
	}
	p.base.mu.Lock()
	defer p.base.mu.Unlock()
	t.name = name
	return nil
}

// typeEnvelope stores how many arguments made a datatype. The function with _c has one
// parameter more, the number of large counts.
func (p *Process) typeEnvelope(a *args) error {
	t := a.datatype(0)
	last := 4
	if a.wide {
		last = 5
	}
	for i := 1; i <= last; i++ {
		a.results(i)
	}
	if a.err != nil {
		return a.err
	}
	r := &t.recipe
	a.setCount(1, len(r.ints))
	a.setCount(2, len(r.addrs))
	if a.wide {
		a.setCount(3, len(r.counts))
	} else if r.large {
		return errLarge()
	}
	a.setCount(last-1, len(r.types))
	a.setInt(last, int(r.combiner))
	return nil
}

func errLarge() error {
	return errorf(errType, "a function with _c made this datatype; ask with the _c form of this function")
}

// typeContents stores the arguments that made a datatype. The function with _c has the
// length and the array of large counts besides.
func (p *Process) typeContents(a *args) error {
	t := a.datatype(0)
	r := &t.recipe
	if r.combiner == combinerNamed {
		return errorf(errType, "%s is predefined and has no contents", t.name)
	}
	if r.large && !a.wide {
		return errLarge()
	}
	lengths := []int{len(r.ints), len(r.addrs), len(r.types)}
	if a.wide {
		lengths = []int{len(r.ints), len(r.addrs), len(r.counts), len(r.types)}
	}
	first := 1 + len(lengths) // of the arrays
	for i, n := range lengths {
		if a.int(1+i) < n {
			return errorf(errArg, "argument %d is %d; the datatype has %d", 2+i, a.int(1+i), n)
		}
		a.arrays(n, first+i)
	}
	if a.err != nil {
		return a.err
	}
	store[int32](a.addr(first), r.numbersFor(p.abi))
	store[int64](a.addr(first+1), r.addrs)
	if a.wide {
		store[int64](a.addr(first+2), r.counts)
	}
	out := a.handles(first+len(lengths)-1, len(r.types))
	for i, of := range r.types {
		out.at(i).set(p.reference(of))
	}
	return nil
}

// numbersFor returns the integers with the numbers that the ABI has for orders and distributions.
func (r *recipe) numbersFor(b *abi) []int {
	ints := slices.Clone(r.ints)
	to := func(kind conversionKind, i int) { ints[i] = int(b.numberFor(kind, int32(ints[i]))) }
	switch r.combiner {
	case combinerSubarray:
		to(numberOrder, len(ints)-1)
	case combinerDarray: // size, rank, n, sizes unless they are large, distributions, their arguments, processes, order
		n := ints[2]
		for i := len(ints) - 1 - 3*n; i < len(ints)-1-2*n; i++ {
			to(numberDistribution, i)
			to(numberDarg, i+n)
		}
		to(numberOrder, len(ints)-1)
	}
	return ints
}

// store stores numbers in an array of the program.
func store[T int32 | int64](addr uintptr, v []int) {
	out := memory[T](addr, len(v))
	for i := range out {
		out[i] = T(v[i])
	}
}

func (p *Process) typeMatchSize(a *args) error {
	class, size := typeClass(a.int(0)), a.int(1)
	if class < classReal || class > classComplex {
		return errorf(errArg, "%d is not a class of types", class)
	}
	h, ok := sizedTypes[class][size]
	if !ok {
		return errorf(errArg, "no type of this class has %d bytes", size)
	}
	a.setHandle(2, h)
	return nil
}
