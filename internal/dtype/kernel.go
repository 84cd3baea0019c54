package dtype

// Kernel combines elements given as bytes: inout[i] becomes in[i] op inout[i]. in is
// the left operand, which matters only for operations that do not commute. Both slices
// hold whole elements.
type Kernel func(inout, in []byte)

// Op is a predefined reduction. All of them commute.
type Op uint8

const (
	OpSum Op = iota
	OpProd
	OpMin
	OpMax
	OpLogicalAnd
	OpLogicalOr
	OpLogicalXor
	OpBitAnd
	OpBitOr
	OpBitXor
	OpMinLoc
	OpMaxLoc
	opCount
)

var opNames = [opCount]string{
	"sum", "prod", "min", "max", "logical and", "logical or", "logical xor",
	"bit and", "bit or", "bit xor", "minloc", "maxloc",
}

func (o Op) String() string {
	if o < opCount {
		return opNames[o]
	}
	return "op?"
}

// Kind is an element type of the predefined reductions.
type Kind uint8

const (
	Int8 Kind = iota
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	// Pairs of a value and an index: MPI_SHORT_INT, MPI_2INT, MPI_LONG_INT,
	// MPI_FLOAT_INT and MPI_DOUBLE_INT on 64-bit systems.
	PairInt16Int32
	PairInt32Int32
	PairInt64Int32
	PairFloat32Int32
	PairFloat64Int32
	// The same with a 64-bit index, for Go's int.
	PairInt64Int64
	PairFloat32Int64
	PairFloat64Int64
	kindCount
)

var kindNames = [kindCount]string{
	"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
	"float32", "float64", "complex64", "complex128",
	"pair of int16 and int32", "pair of int32 and int32", "pair of int64 and int32",
	"pair of float32 and int32", "pair of float64 and int32",
	"pair of int64 and int64", "pair of float32 and int64", "pair of float64 and int64",
}

func (k Kind) String() string {
	if k < kindCount {
		return kindNames[k]
	}
	return "kind?"
}

// PredefinedKernel returns the kernel of a predefined reduction, or an error if MPI
// does not define it for the kind (MPI-4.1 section 6.9.2).
func PredefinedKernel(op Op, kind Kind) (Kernel, error) {
	var k Kernel
	switch kind {
	case Int8:
		k = integerKernel[int8](op)
	case Int16:
		k = integerKernel[int16](op)
	case Int32:
		k = integerKernel[int32](op)
	case Int64:
		k = integerKernel[int64](op)
	case Uint8:
		k = integerKernel[uint8](op)
	case Uint16:
		k = integerKernel[uint16](op)
	case Uint32:
		k = integerKernel[uint32](op)
	case Uint64:
		k = integerKernel[uint64](op)
	case Float32:
		k = realKernel[float32](op)
	case Float64:
		k = realKernel[float64](op)
	case Complex64:
		k = numberKernel[complex64](op)
	case Complex128:
		k = numberKernel[complex128](op)
	case PairInt16Int32:
		k = pairKernel[int16, int32](op)
	case PairInt32Int32:
		k = pairKernel[int32, int32](op)
	case PairInt64Int32:
		k = pairKernel[int64, int32](op)
	case PairFloat32Int32:
		k = pairKernel[float32, int32](op)
	case PairFloat64Int32:
		k = pairKernel[float64, int32](op)
	case PairInt64Int64:
		k = pairKernel[int64, int64](op)
	case PairFloat32Int64:
		k = pairKernel[float32, int64](op)
	case PairFloat64Int64:
		k = pairKernel[float64, int64](op)
	}
	if k == nil {
		return nil, argumentError("the reduction %q is not defined for elements of type %s", op, kind)
	}
	return k, nil
}

func numberKernel[T Number](op Op) Kernel {
	switch op {
	case OpSum:
		return KernelOf(Sum[T])
	case OpProd:
		return KernelOf(Prod[T])
	}
	return nil
}

func realKernel[T Real](op Op) Kernel {
	switch op {
	case OpMin:
		return KernelOf(Min[T])
	case OpMax:
		return KernelOf(Max[T])
	}
	return numberKernel[T](op)
}

func integerKernel[T Integer](op Op) Kernel {
	switch op {
	case OpLogicalAnd:
		return KernelOf(LogicalAnd[T])
	case OpLogicalOr:
		return KernelOf(LogicalOr[T])
	case OpLogicalXor:
		return KernelOf(LogicalXor[T])
	case OpBitAnd:
		return KernelOf(BitAnd[T])
	case OpBitOr:
		return KernelOf(BitOr[T])
	case OpBitXor:
		return KernelOf(BitXor[T])
	}
	return realKernel[T](op)
}

func pairKernel[V Real, I Integer](op Op) Kernel {
	switch op {
	case OpMinLoc:
		return KernelOf(MinLoc[V, I])
	case OpMaxLoc:
		return KernelOf(MaxLoc[V, I])
	}
	return nil
}
