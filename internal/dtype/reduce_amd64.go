//go:build !race

package dtype

// Reductions with AVX2 vector instructions. Processors without AVX2 use the loops in
// Go, and so does the race detector, which observes only Go code.

// haveVectors reports whether the processor has AVX2.
var haveVectors = hasAVX2()

func hasAVX2() bool

// reduceVectors sets inout to in op inout. Both hold the same number of whole elements,
// at least one vector, with Go's alignment. It returns false, without effect, if it does
// not support the operation and kind.
func reduceVectors(op Op, kind Kind, inout, in *byte, bytes int) bool {
	switch op {
	case OpSum:
		return addVectors(kind, inout, in, bytes)
	case OpProd:
		return multiplyVectors(kind, inout, in, bytes)
	case OpMin:
		return minVectors(kind, inout, in, bytes)
	case OpMax:
		return maxVectors(kind, inout, in, bytes)
	case OpBitAnd:
		bitAnd(inout, in, bytes)
	case OpBitOr:
		bitOr(inout, in, bytes)
	case OpBitXor:
		bitXor(inout, in, bytes)
	case OpLogicalAnd:
		return logicalAndVectors(kind, inout, in, bytes)
	case OpLogicalOr:
		return logicalOrVectors(kind, inout, in, bytes)
	case OpLogicalXor:
		return logicalXorVectors(kind, inout, in, bytes)
	default:
		return false
	}
	return true
}

func addVectors(kind Kind, inout, in *byte, bytes int) bool {
	switch kind {
	case Int8, Uint8:
		add8(inout, in, bytes)
	case Int16, Uint16:
		add16(inout, in, bytes)
	case Int32, Uint32:
		add32(inout, in, bytes)
	case Int64, Uint64:
		add64(inout, in, bytes)
	case Float32, Complex64:
		addFloat32(inout, in, bytes)
	case Float64, Complex128:
		addFloat64(inout, in, bytes)
	default:
		return false
	}
	return true
}

// multiplyVectors leaves complex numbers to the compiler, which may fuse their products
// and sums.
func multiplyVectors(kind Kind, inout, in *byte, bytes int) bool {
	switch kind {
	case Int8, Uint8:
		multiply8(inout, in, bytes)
	case Int16, Uint16:
		multiply16(inout, in, bytes)
	case Int32, Uint32:
		multiply32(inout, in, bytes)
	case Int64, Uint64:
		multiply64(inout, in, bytes)
	case Float32:
		multiplyFloat32(inout, in, bytes)
	case Float64:
		multiplyFloat64(inout, in, bytes)
	default:
		return false
	}
	return true
}

func minVectors(kind Kind, inout, in *byte, bytes int) bool {
	switch kind {
	case Int8:
		minInt8(inout, in, bytes)
	case Int16:
		minInt16(inout, in, bytes)
	case Int32:
		minInt32(inout, in, bytes)
	case Int64:
		minInt64(inout, in, bytes)
	case Uint8:
		minUint8(inout, in, bytes)
	case Uint16:
		minUint16(inout, in, bytes)
	case Uint32:
		minUint32(inout, in, bytes)
	case Uint64:
		minUint64(inout, in, bytes)
	case Float32:
		minFloat32(inout, in, bytes)
	case Float64:
		minFloat64(inout, in, bytes)
	default:
		return false
	}
	return true
}

func maxVectors(kind Kind, inout, in *byte, bytes int) bool {
	switch kind {
	case Int8:
		maxInt8(inout, in, bytes)
	case Int16:
		maxInt16(inout, in, bytes)
	case Int32:
		maxInt32(inout, in, bytes)
	case Int64:
		maxInt64(inout, in, bytes)
	case Uint8:
		maxUint8(inout, in, bytes)
	case Uint16:
		maxUint16(inout, in, bytes)
	case Uint32:
		maxUint32(inout, in, bytes)
	case Uint64:
		maxUint64(inout, in, bytes)
	case Float32:
		maxFloat32(inout, in, bytes)
	case Float64:
		maxFloat64(inout, in, bytes)
	default:
		return false
	}
	return true
}

func logicalAndVectors(kind Kind, inout, in *byte, bytes int) bool {
	switch kind {
	case Int8, Uint8:
		logicalAnd8(inout, in, bytes)
	case Int16, Uint16:
		logicalAnd16(inout, in, bytes)
	case Int32, Uint32:
		logicalAnd32(inout, in, bytes)
	case Int64, Uint64:
		logicalAnd64(inout, in, bytes)
	default:
		return false
	}
	return true
}

func logicalOrVectors(kind Kind, inout, in *byte, bytes int) bool {
	switch kind {
	case Int8, Uint8:
		logicalOr8(inout, in, bytes)
	case Int16, Uint16:
		logicalOr16(inout, in, bytes)
	case Int32, Uint32:
		logicalOr32(inout, in, bytes)
	case Int64, Uint64:
		logicalOr64(inout, in, bytes)
	default:
		return false
	}
	return true
}

func logicalXorVectors(kind Kind, inout, in *byte, bytes int) bool {
	switch kind {
	case Int8, Uint8:
		logicalXor8(inout, in, bytes)
	case Int16, Uint16:
		logicalXor16(inout, in, bytes)
	case Int32, Uint32:
		logicalXor32(inout, in, bytes)
	case Int64, Uint64:
		logicalXor64(inout, in, bytes)
	default:
		return false
	}
	return true
}

//go:noescape
func add8(inout, in *byte, bytes int)

//go:noescape
func add16(inout, in *byte, bytes int)

//go:noescape
func add32(inout, in *byte, bytes int)

//go:noescape
func add64(inout, in *byte, bytes int)

//go:noescape
func addFloat32(inout, in *byte, bytes int)

//go:noescape
func addFloat64(inout, in *byte, bytes int)

//go:noescape
func multiply8(inout, in *byte, bytes int)

//go:noescape
func multiply16(inout, in *byte, bytes int)

//go:noescape
func multiply32(inout, in *byte, bytes int)

//go:noescape
func multiply64(inout, in *byte, bytes int)

//go:noescape
func multiplyFloat32(inout, in *byte, bytes int)

//go:noescape
func multiplyFloat64(inout, in *byte, bytes int)

//go:noescape
func minInt8(inout, in *byte, bytes int)

//go:noescape
func minInt16(inout, in *byte, bytes int)

//go:noescape
func minInt32(inout, in *byte, bytes int)

//go:noescape
func minInt64(inout, in *byte, bytes int)

//go:noescape
func minUint8(inout, in *byte, bytes int)

//go:noescape
func minUint16(inout, in *byte, bytes int)

//go:noescape
func minUint32(inout, in *byte, bytes int)

//go:noescape
func minUint64(inout, in *byte, bytes int)

//go:noescape
func minFloat32(inout, in *byte, bytes int)

//go:noescape
func minFloat64(inout, in *byte, bytes int)

//go:noescape
func maxInt8(inout, in *byte, bytes int)

//go:noescape
func maxInt16(inout, in *byte, bytes int)

//go:noescape
func maxInt32(inout, in *byte, bytes int)

//go:noescape
func maxInt64(inout, in *byte, bytes int)

//go:noescape
func maxUint8(inout, in *byte, bytes int)

//go:noescape
func maxUint16(inout, in *byte, bytes int)

//go:noescape
func maxUint32(inout, in *byte, bytes int)

//go:noescape
func maxUint64(inout, in *byte, bytes int)

//go:noescape
func maxFloat32(inout, in *byte, bytes int)

//go:noescape
func maxFloat64(inout, in *byte, bytes int)

//go:noescape
func bitAnd(inout, in *byte, bytes int)

//go:noescape
func bitOr(inout, in *byte, bytes int)

//go:noescape
func bitXor(inout, in *byte, bytes int)

//go:noescape
func logicalAnd8(inout, in *byte, bytes int)

//go:noescape
func logicalOr8(inout, in *byte, bytes int)

//go:noescape
func logicalXor8(inout, in *byte, bytes int)

//go:noescape
func logicalAnd16(inout, in *byte, bytes int)

//go:noescape
func logicalOr16(inout, in *byte, bytes int)

//go:noescape
func logicalXor16(inout, in *byte, bytes int)

//go:noescape
func logicalAnd32(inout, in *byte, bytes int)

//go:noescape
func logicalOr32(inout, in *byte, bytes int)

//go:noescape
func logicalXor32(inout, in *byte, bytes int)

//go:noescape
func logicalAnd64(inout, in *byte, bytes int)

//go:noescape
func logicalOr64(inout, in *byte, bytes int)

//go:noescape
func logicalXor64(inout, in *byte, bytes int)
