package mpi

// Reduction operations (MPI-4.1 section 6.9).

import (
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/rma"
)

// Op is a reduction operation. Calls take functions that return one: [Sum] and the other
// predefined operations by name, whose type follows from the buffers, and operations of the
// program as [UserOp.Op], or as any other func() Op[T].
type Op[T any] struct {
	predefined combiner[T]
	user       *UserOp[T] // if predefined is nil
}

// UserOp is an operation of the program: mpi.Reduce(c, in, out, product.Op, root). Combine
// sets inout[i] to in[i] ∘ inout[i] for all i, as MPI's user functions do: in comes from the
// lower ranks, which matters only if NonCommutative is set. Combine must be associative and
// must not call this package (MPI-4.1 section 6.9.5). If it panics or calls the package, the
// reduction returns an error of class ErrOp on all ranks whose result depends on it, and so
// do all later collective calls on the communicator, on all ranks.
type UserOp[T any] struct {
	Name           string
	Combine        func(inout, in []T)
	NonCommutative bool
	// Unit is the number of elements of T that Combine needs together, such as the
	// bytes of a record in a UserOp[byte]; 0 means 1. All lengths are multiples of it.
	Unit int
}

// Op returns the operation.
func (u *UserOp[T]) Op() Op[T] { return Op[T]{user: u} }

// Elementwise returns the operation that replaces two elements by combine(a, b), where a
// comes from the lower rank. combine must be associative and commutative.
func Elementwise[T any](combine func(a, b T) T) func() Op[T] {
	u := &UserOp[T]{Name: "Elementwise", Combine: func(inout, in []T) {
		for i, v := range in {
			inout[i] = combine(v, inout[i])
		}
	}}
	return u.Op
}

type combiner[T any] interface {
	combine(inout, in []T)
	// code identifies the operation in requests to other ranks.
	code() rma.Op
}

// operation returns the operation of a call; without one, the zero Op.
func operation[T any](op func() Op[T]) Op[T] {
	if op == nil {
		return Op[T]{}
	}
	return op()
}

// Apply sets inout[i] to in[i] ∘ inout[i] for all i (MPI_Reduce_local).
func (o Op[T]) Apply(inout, in []T) {
	if o.predefined != nil {
		o.predefined.combine(inout, in)
		return
	}
	o.user.Combine(inout, in)
}

// Name returns the name of the operation in errors and reports.
func (o Op[T]) Name() string {
	switch {
	case o.user != nil:
		return o.user.Name
	case o.predefined == nil:
		return ""
	}
	return opNames[o.predefined.code()]
}

var opNames = map[rma.Op]string{
	rma.Op(dtype.OpSum): "Sum", rma.Op(dtype.OpProd): "Prod", rma.Op(dtype.OpMin): "Min", rma.Op(dtype.OpMax): "Max",
	rma.Op(dtype.OpLogicalAnd): "LogicalAnd", rma.Op(dtype.OpLogicalOr): "LogicalOr", rma.Op(dtype.OpLogicalXor): "LogicalXor",
	rma.Op(dtype.OpBitAnd): "BitAnd", rma.Op(dtype.OpBitOr): "BitOr", rma.Op(dtype.OpBitXor): "BitXor",
	rma.Op(dtype.OpMinLoc): "MinLoc", rma.Op(dtype.OpMaxLoc): "MaxLoc", rma.Replace: "Replace", rma.NoOp: "NoOp",
}

// defined reports whether there is a function.
func (o *Op[T]) defined() bool { return o.predefined != nil || o.user != nil && o.user.Combine != nil }

// ordered reports whether the operation does not commute.
func (o *Op[T]) ordered() bool {
	if o.user != nil {
		return o.user.NonCommutative
	}
	return o.predefined.code() >= rma.Replace
}

// unit returns the number of elements that the operation needs together.
func (o *Op[T]) unit() int {
	if o.user == nil {
		return 1
	}
	return max(o.user.Unit, 1)
}

// elem returns the size in bytes of what Combine needs together.
func (o *Op[T]) elem() int { return sizeOf[T]() * o.unit() }

// whole returns an error if a number of elements is not a multiple of the unit.
func (o *Op[T]) whole(c *Comm, name string, n int) error {
	if n%o.unit() != 0 {
		return c.refuse(ErrCount, name, "%d elements are not a multiple of %d, the unit of the operation %q", n, o.unit(), o.Name())
	}
	return nil
}

// units returns counts of elements as counts of units.
func (o *Op[T]) units(c *Comm, name string, counts []int) ([]int, error) {
	if o.unit() == 1 || counts == nil {
		return counts, nil
	}
	out := make([]int, len(counts))
	for i, n := range counts {
		if err := o.whole(c, name, n); err != nil {
			return nil, err
		}
		out[i] = n / o.unit()
	}
	return out, nil
}

// Number is the constraint of operations that add and multiply: all numeric
// types.
type Number interface {
	Real | ~complex64 | ~complex128
}

// Real is the constraint of operations that compare: all numeric types that are
// ordered.
type Real interface {
	Integer | ~float32 | ~float64
}

// Integer is the constraint of logical and bitwise operations: all integer types.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Sum is the operation that adds. Integers wrap around.
func Sum[T Number]() Op[T] { return Op[T]{predefined: sum[T]{}} }

// Prod is the operation that multiplies. Integers wrap around.
func Prod[T Number]() Op[T] { return Op[T]{predefined: prod[T]{}} }

// Min is the operation that selects the smaller value.
func Min[T Real]() Op[T] { return Op[T]{predefined: minimum[T]{}} }

// Max is the operation that selects the larger value.
func Max[T Real]() Op[T] { return Op[T]{predefined: maximum[T]{}} }

// LogicalAnd is the operation whose result is 1 if both values are nonzero, else 0.
func LogicalAnd[T Integer]() Op[T] { return Op[T]{predefined: logicalAnd[T]{}} }

// LogicalOr is the operation whose result is 1 if a value is nonzero, else 0.
func LogicalOr[T Integer]() Op[T] { return Op[T]{predefined: logicalOr[T]{}} }

// LogicalXor is the operation whose result is 1 if exactly one value is nonzero,
// else 0.
func LogicalXor[T Integer]() Op[T] { return Op[T]{predefined: logicalXor[T]{}} }

// BitAnd is the bitwise AND operation.
func BitAnd[T Integer]() Op[T] { return Op[T]{predefined: bitAnd[T]{}} }

// BitOr is the bitwise OR operation.
func BitOr[T Integer]() Op[T] { return Op[T]{predefined: bitOr[T]{}} }

// BitXor is the bitwise exclusive OR operation.
func BitXor[T Integer]() Op[T] { return Op[T]{predefined: bitXor[T]{}} }

// Loc is an element of [MinLoc] and [MaxLoc]: a value and its location.
type Loc[V Real] struct {
	Value V
	// Index identifies the value, such as the rank that contributed it or its
	// position in a global array.
	Index int64
}

// pairs returns the same memory as elements of package dtype, which have the
// layout of Loc.
func pairs[V Real](s []Loc[V]) []dtype.Pair[V, int64] {
	return elements[dtype.Pair[V, int64]](rawBytes(s))
}

// MinLoc is the operation that selects the smaller value and its index; of equal
// values, the lower index.
func MinLoc[V Real]() Op[Loc[V]] { return Op[Loc[V]]{predefined: minLoc[V]{}} }

// MaxLoc is the operation that selects the larger value and its index; of equal
// values, the lower index.
func MaxLoc[V Real]() Op[Loc[V]] { return Op[Loc[V]]{predefined: maxLoc[V]{}} }

// The predefined operations, as types.
type (
	sum[T Number]         struct{}
	prod[T Number]        struct{}
	minimum[T Real]       struct{}
	maximum[T Real]       struct{}
	logicalAnd[T Integer] struct{}
	logicalOr[T Integer]  struct{}
	logicalXor[T Integer] struct{}
	bitAnd[T Integer]     struct{}
	bitOr[T Integer]      struct{}
	bitXor[T Integer]     struct{}
	minLoc[V Real]        struct{}
	maxLoc[V Real]        struct{}
)

func (sum[T]) combine(inout, in []T)         { dtype.Sum(inout, in) }
func (prod[T]) combine(inout, in []T)        { dtype.Prod(inout, in) }
func (minimum[T]) combine(inout, in []T)     { dtype.Min(inout, in) }
func (maximum[T]) combine(inout, in []T)     { dtype.Max(inout, in) }
func (logicalAnd[T]) combine(inout, in []T)  { dtype.LogicalAnd(inout, in) }
func (logicalOr[T]) combine(inout, in []T)   { dtype.LogicalOr(inout, in) }
func (logicalXor[T]) combine(inout, in []T)  { dtype.LogicalXor(inout, in) }
func (bitAnd[T]) combine(inout, in []T)      { dtype.BitAnd(inout, in) }
func (bitOr[T]) combine(inout, in []T)       { dtype.BitOr(inout, in) }
func (bitXor[T]) combine(inout, in []T)      { dtype.BitXor(inout, in) }
func (minLoc[V]) combine(inout, in []Loc[V]) { dtype.MinLoc(pairs(inout), pairs(in)) }
func (maxLoc[V]) combine(inout, in []Loc[V]) { dtype.MaxLoc(pairs(inout), pairs(in)) }

func (sum[T]) code() rma.Op        { return rma.Op(dtype.OpSum) }
func (prod[T]) code() rma.Op       { return rma.Op(dtype.OpProd) }
func (minimum[T]) code() rma.Op    { return rma.Op(dtype.OpMin) }
func (maximum[T]) code() rma.Op    { return rma.Op(dtype.OpMax) }
func (logicalAnd[T]) code() rma.Op { return rma.Op(dtype.OpLogicalAnd) }
func (logicalOr[T]) code() rma.Op  { return rma.Op(dtype.OpLogicalOr) }
func (logicalXor[T]) code() rma.Op { return rma.Op(dtype.OpLogicalXor) }
func (bitAnd[T]) code() rma.Op     { return rma.Op(dtype.OpBitAnd) }
func (bitOr[T]) code() rma.Op      { return rma.Op(dtype.OpBitOr) }
func (bitXor[T]) code() rma.Op     { return rma.Op(dtype.OpBitXor) }
func (minLoc[V]) code() rma.Op     { return rma.Op(dtype.OpMinLoc) }
func (maxLoc[V]) code() rma.Op     { return rma.Op(dtype.OpMaxLoc) }
