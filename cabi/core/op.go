package core

// Operations (MPI-4.1 section 6.9): those of the program, and the application of all of them
// to datatypes.

import (
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/mpi"
)

// op is an operation of the program. It does not change after it was made.
type op struct {
	fn       uintptr
	commutes bool
	wide     bool    // the length is an MPI_Count (MPI_Op_create_c)
	cxx      uint64  // the function of a C++ program, which fn calls
	memory   uintptr // of the handle, to which the Fortran library of Open MPI writes; or 0
}

// opCode is a predefined operation: the number in its handle.
type opCode handle

const (
	opMax opCode = 1 + iota
	opMin
	opSum
	opProd
	opLand
	opBand
	opLor
	opBor
	opLxor
	opBxor
	opMinloc
	opMaxloc
	opReplace
	opNoOp
	opCodes
)

func operations() map[string]handler {
	return map[string]handler{
		"Op_create":      (*Process).opCreate,
		"Op_free":        (*Process).opFree,
		"Op_commutative": (*Process).opCommutative,
		"Reduce_local":   (*Process).reduceLocal,
	}
}

func (p *Process) opCreate(a *args) error {
	if a.addr(0) == 0 {
		return errorf(errArg, "the function is NULL")
	}
	o := &op{fn: a.addr(0), commutes: a.int(1) != 0, wide: a.wide}
	h := p.ops.add(o)
	if o.memory = p.abi.memoryOf(h); o.memory != 0 {
		set(o.memory+openOpFlags, int32(0))
	}
	a.setHandle(2, h)
	return nil
}

// opFree is MPI_Op_free. Calls under way keep the operation.
func (p *Process) opFree(a *args) error {
	at := a.handleAt(0)
	if predefinedOp(at.get()) != 0 {
		return errorf(errOp, "predefined operations cannot be freed")
	}
	if p.ops.remove(at.get()) == nil {
		return errorf(errOp, "%#x is not an operation", uint32(at.get()))
	}
	at.set(opNull)
	return nil
}

func (p *Process) opCommutative(a *args) error {
	o, code := a.op(0)
	if a.err != nil {
		return a.err
	}
	// MPI_REPLACE keeps the operand that comes last.
	a.setFlag(1, o == nil && code != opReplace && code != opNoOp || o != nil && o.commutes)
	return nil
}

// predefinedOp returns the predefined operation of a handle, or 0.
func predefinedOp(h handle) opCode {
	if code := opCode(h ^ (predefined | kindOp)); code > 0 && code < opCodes {
		return code
	}
	return 0
}

// op decodes an operation: one of the program, or a predefined one.
func (a *args) op(i int) (*op, opCode) {
	h := a.handle(i)
	if code := predefinedOp(h); code != 0 {
		return nil, code
	}
	o := a.p.ops.get(h)
	if o == nil {
		a.fail(errorf(errOp, "%#x is not an operation", uint32(h)))
	}
	return o, 0
}

// reduceLocal is MPI_Reduce_local.
func (p *Process) reduceLocal(a *args) error {
	n, t := a.count(2), a.datatype(3)
	o, code := a.op(4)
	if a.err != nil {
		return a.err
	}
	if n > 0 && a.addr(0) == a.addr(1) && a.addr(0) != bottom {
		return errorf(errBuffer, "the two buffers are the same")
	}
	if a.addr(0) == inPlace || a.addr(1) == inPlace {
		return errorf(errBuffer, "MPI_IN_PLACE is not allowed")
	}
	if o != nil {
		if n > 0 {
			p.operate(o, t, a.addr(0), a.addr(1), n)
		}
		return nil
	}
	by, err := p.arithmetic(code, t)
	if err != nil || n == 0 {
		return err
	}
	if a.results(0, 1); a.err != nil {
		return nil
	}
	size := n * int(t.layout.Extent())
	by.local(code, memory[byte](a.addr(1), size), memory[byte](a.addr(0), size))
	return nil
}

// operands are the arguments of a function of the program that are passed by address. They
// are on the heap, which does not move.
type operands struct {
	count int64  // also an int: amd64 and arm64 are little endian
	typ   uint64 // a handle as the program has it: a number or a pointer
}

// operate calls an operation of the program: inout[i] = in[i] ∘ inout[i].
func (p *Process) operate(o *op, t *datatype, in, inout uintptr, n int) {
	v := []operands{{count: int64(n), typ: p.abi.word(t.handle)}}
	if o.memory != 0 && *at[int32](o.memory + openOpFlags)&openOpFortran != 0 {
		v[0].typ = uint64(uint32(p.abi.fortranOf(t.handle)))
	}
	at := addressOf(v)
	p.callback(o.fn, uint64(in), uint64(inout), uint64(at), uint64(at+8), o.cxx)
	_ = v[0].typ // keeps the memory alive
}

// users returns an operation of the program as one on bytes. unit is the distance of two
// elements, and origin that of the first byte of an element from where the datatype begins.
func (p *Process) users(o *op, t *datatype, unit, origin int, each bool) func() mpi.Op[byte] {
	return (&mpi.UserOp[byte]{Name: "of the program", Unit: unit, NonCommutative: !o.commutes, Combine: func(inout, in []byte) {
		to, from := addressOf(inout)-uintptr(origin), addressOf(in)-uintptr(origin)
		n := len(inout) / unit
		if !each {
			p.operate(o, t, from, to, n)
			return
		}
		for i := range n {
			p.operate(o, t, from+uintptr(i*unit), to+uintptr(i*unit), 1)
		}
	}}).Op
}

// arithmetic returns the predefined operations on a datatype, or an error if the given one
// is not among them.
func (p *Process) arithmetic(code opCode, t *datatype) (arithmetic, error) {
	if by := p.kinds.arithmeticOf(t); by != nil && by.has(code) {
		return by, nil
	}
	return nil, errorf(errOp, "the predefined operation is not defined for the datatype %s", t.name)
}

// arithmetic is the predefined operations on elements of one type.
type arithmetic interface {
	has(opCode) bool
	local(code opCode, inout, in []byte)
	reduce(r *reduction, code opCode) error
}

// numbers is arithmetic on a Go type. Operations that are not defined are nil.
type numbers[T any] struct{ ops [opCodes]func() mpi.Op[T] }

func (k *numbers[T]) has(code opCode) bool { return k.ops[code] != nil }
func (k *numbers[T]) local(code opCode, inout, in []byte) {
	k.ops[code]().Apply(elements[T](inout), elements[T](in))
}
func (k *numbers[T]) reduce(r *reduction, code opCode) error { return perform(r, k.ops[code]) }

func integers[T mpi.Integer]() arithmetic {
	return &numbers[T]{[opCodes]func() mpi.Op[T]{
		opMax: mpi.Max[T], opMin: mpi.Min[T], opSum: mpi.Sum[T], opProd: mpi.Prod[T],
		opLand: mpi.LogicalAnd[T], opLor: mpi.LogicalOr[T], opLxor: mpi.LogicalXor[T],
		opBand: mpi.BitAnd[T], opBor: mpi.BitOr[T], opBxor: mpi.BitXor[T],
	}}
}

func floats[T float32 | float64]() arithmetic {
	return &numbers[T]{[opCodes]func() mpi.Op[T]{opMax: mpi.Max[T], opMin: mpi.Min[T], opSum: mpi.Sum[T], opProd: mpi.Prod[T]}}
}

func complexes[T complex64 | complex128]() arithmetic {
	return &numbers[T]{[opCodes]func() mpi.Op[T]{opSum: mpi.Sum[T], opProd: mpi.Prod[T]}}
}

func logicals[T mpi.Integer]() arithmetic {
	return &numbers[T]{[opCodes]func() mpi.Op[T]{opLand: mpi.LogicalAnd[T], opLor: mpi.LogicalOr[T], opLxor: mpi.LogicalXor[T]}}
}

func bits() arithmetic {
	return &numbers[byte]{[opCodes]func() mpi.Op[byte]{opBand: mpi.BitAnd[byte], opBor: mpi.BitOr[byte], opBxor: mpi.BitXor[byte]}}
}

// pairs is arithmetic on values with an index.
func pairs[V dtype.Real, I dtype.Integer]() arithmetic {
	return &numbers[dtype.Pair[V, I]]{[opCodes]func() mpi.Op[dtype.Pair[V, I]]{
		opMinloc: (&mpi.UserOp[dtype.Pair[V, I]]{Name: "MinLoc", Combine: dtype.MinLoc[V, I]}).Op,
		opMaxloc: (&mpi.UserOp[dtype.Pair[V, I]]{Name: "MaxLoc", Combine: dtype.MaxLoc[V, I]}).Op,
	}}
}

// floatPair is a pair of Fortran, whose index has the type of the value.
type floatPair[V float32 | float64] struct{ value, index V }

func floatPairs[V float32 | float64]() arithmetic {
	return &numbers[floatPair[V]]{[opCodes]func() mpi.Op[floatPair[V]]{
		opMinloc: (&mpi.UserOp[floatPair[V]]{Name: "MinLoc", Combine: func(inout, in []floatPair[V]) { choose(inout, in, -1) }}).Op,
		opMaxloc: (&mpi.UserOp[floatPair[V]]{Name: "MaxLoc", Combine: func(inout, in []floatPair[V]) { choose(inout, in, 1) }}).Op,
	}}
}

// choose keeps the pair with the smaller value (-1) or the larger one (1), and of equal ones
// that with the smaller index.
func choose[V float32 | float64](inout, in []floatPair[V], sign V) {
	for i, v := range in {
		if d := (v.value - inout[i].value) * sign; d > 0 || d == 0 && v.index < inout[i].index {
			inout[i] = v
		}
	}
}

// kinds are the predefined operations on the predefined datatypes.
type kinds struct {
	byKind   map[dtype.Kind]arithmetic
	byHandle map[handle]arithmetic
}

func newKinds() kinds {
	logical := logicals[uint8]()
	return kinds{
		byKind: map[dtype.Kind]arithmetic{
			dtype.Int8: integers[int8](), dtype.Int16: integers[int16](), dtype.Int32: integers[int32](), dtype.Int64: integers[int64](),
			dtype.Uint8: integers[uint8](), dtype.Uint16: integers[uint16](), dtype.Uint32: integers[uint32](), dtype.Uint64: integers[uint64](),
			dtype.Float32: floats[float32](), dtype.Float64: floats[float64](),
			dtype.Complex64: complexes[complex64](), dtype.Complex128: complexes[complex128](),
			dtype.PairInt16Int32: pairs[int16, int32](), dtype.PairInt32Int32: pairs[int32, int32](), dtype.PairInt64Int32: pairs[int64, int32](),
			dtype.PairFloat32Int32: pairs[float32, int32](), dtype.PairFloat64Int32: pairs[float64, int32](),
		},
		// Datatypes with other operations than their representation has.
		byHandle: map[handle]arithmetic{
			0x4c00010d: bits(),                // MPI_BYTE
			0x4c00040e: &numbers[int32]{},     // MPI_WCHAR
			0x4c00013f: logical,               // MPI_C_BOOL
			0x4c000133: logical,               // MPI_CXX_BOOL
			0x4c00041d: logicals[uint32](),    // MPI_LOGICAL
			0x4c000821: floatPairs[float32](), // MPI_2REAL
			0x4c001023: floatPairs[float64](), // MPI_2DOUBLE_PRECISION
		},
	}
}

// arithmeticOf returns the operations on a datatype, or nil.
func (k *kinds) arithmeticOf(t *datatype) arithmetic {
	if by, ok := k.byHandle[t.handle]; ok {
		return by
	}
	if !t.reduce {
		return nil
	}
	return k.byKind[t.kind]
}
