package core

// Datatypes (MPI-4.1 chapter 5): what all have in common, and the predefined ones.

import (
	"sync"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/dtype"
)

// datatype is a datatype. It does not change after it was made, but for its name,
// attributes and whether it is committed. Requests and other datatypes refer to it, so it
// outlives MPI_Type_free as long as they need it.
type datatype struct {
	handle    handle // meaningless after the last MPI_Type_free
	layout    *dtype.Layout
	elements  *signature
	recipe    recipe
	flat      int        // the size, if elements are contiguous from the origin, else 0
	kind      dtype.Kind // of a predefined type with reductions
	reduce    bool       // kind is set
	basic     bool       // predefined: it cannot be freed
	committed atomic.Bool
	attrs     attrs

	// Guarded by basicTypes.mu.
	name string
	refs int // handles that the program has to free
}

// recipe is how a datatype was made, for MPI_Type_get_contents. In functions with _c all
// counts and displacements are in counts.
type recipe struct {
	combiner combiner
	large    bool
	ints     []int
	addrs    []int
	counts   []int
	types    []*datatype
}

// combiner is a constructor: MPI_COMBINER_.
type combiner int

const (
	combinerNamed         combiner = 1
	combinerDup           combiner = 2
	combinerContiguous    combiner = 3
	combinerVector        combiner = 4
	combinerHvector       combiner = 6
	combinerIndexed       combiner = 7
	combinerHindexed      combiner = 9
	combinerIndexedBlock  combiner = 10
	combinerStruct        combiner = 12
	combinerSubarray      combiner = 13
	combinerDarray        combiner = 14
	combinerF90Real       combiner = 15
	combinerF90Complex    combiner = 16
	combinerF90Integer    combiner = 17
	combinerResized       combiner = 18
	combinerHindexedBlock combiner = 19
)

// newDatatype returns a datatype that is not committed.
func newDatatype(layout *dtype.Layout, elements *signature, r recipe) *datatype {
	t := &datatype{layout: layout, elements: elements, recipe: r, refs: 1}
	if layout.IsContiguous() && layout.TrueLowerBound() == 0 {
		t.flat = int(layout.Size())
	}
	return t
}

// basicTypes are the predefined datatypes, by the lowest byte of their handle.
type basicTypes struct {
	types   [256]*datatype
	scratch scratch // for messages that are not contiguous

	mu  sync.Mutex
	f90 map[f90Key]*datatype // of MPI_Type_create_f90_: the same arguments give the same type
}

// predefinedType is a line of the table of predefined datatypes.
type predefinedType struct {
	handle      handle
	name        string
	size, align int64
	kind        dtype.Kind
	reduce      bool
}

// datatypeMask selects the part of the handle of a predefined datatype that is the same for
// all of them.
const datatypeMask = ^handle(0xffff)

// openTypes makes the predefined datatypes.
func (p *Process) openTypes() {
	p.base.f90 = map[f90Key]*datatype{}
	for _, t := range predefinedTypes {
		p.base.types[t.handle&0xff] = newBasicType(&t)
	}
	for double, single := range twins {
		p.base.types[double&0xff].elements = p.base.types[single&0xff].elements.times(2)
	}
	for _, pair := range pairTypes {
		value, index := p.base.types[pair.value&0xff], p.base.types[typeInt&0xff]
		layout, err := dtype.Struct([]int64{1, 1}, []int64{0, max(value.layout.Size(), index.layout.Alignment())},
			[]*dtype.Layout{value.layout, index.layout})
		if err != nil {
			panic(err) // the table is wrong
		}
		t := newDatatype(layout, sequence([]part{{1, value.elements}, {1, index.elements}}), recipe{combiner: combinerNamed})
		t.kind, t.reduce, t.basic, t.name = pair.kind, pair.reduce, true, pair.name
		t.committed.Store(true)
		t.handle = p.types.add(t)
	}
}

func newBasicType(row *predefinedType) *datatype {
	layout, err := dtype.Basic(row.size, row.align)
	if err != nil {
		panic(err) // the table is wrong
	}
	switch row.handle {
	case typeLB:
		layout = dtype.LowerMarker()
	case typeUB:
		layout = dtype.UpperMarker()
	}
	t := newDatatype(layout, nil, recipe{combiner: combinerNamed})
	t.handle, t.kind, t.reduce, t.basic, t.name = row.handle, row.kind, row.reduce, true, row.name
	t.elements = leaf(t)
	t.committed.Store(true)
	return t
}

// datatype returns the datatype of a handle.
func (p *Process) datatype(h handle) (*datatype, error) {
	if h&datatypeMask == predefined|kindDatatype {
		if t := p.base.types[h&0xff]; t != nil && t.handle == h {
			return t, nil
		}
	} else if t := p.types.get(h); t != nil {
		return t, nil
	}
	if h == datatypeNull {
		return nil, errorf(errType, "the datatype is MPI_DATATYPE_NULL")
	}
	return nil, errorf(errType, "%#x is not a datatype", uint32(h))
}

// reference returns a handle of a datatype that the program has to free besides those it
// has. Predefined datatypes are not freed.
func (p *Process) reference(t *datatype) handle {
	p.base.mu.Lock()
	defer p.base.mu.Unlock()
	if t.basic {
		return t.handle
	}
	if t.refs++; t.refs == 1 { // the program has freed it; its handle may be another's now
		t.handle = p.types.add(t)
	}
	return t.handle
}
