package dtype

// The conversion of slices of elements to bytes for vector instructions.

import (
	"reflect"
	"unsafe"
)

const (
	vectorSize = 32 // bytes

	// Up to this many elements, of any type, a loop is faster.
	fewElements = 32

	// The scheduler cannot preempt a loop in assembler. It can run after at least this
	// many bytes and at most twice as many: about every 10 µs.
	bytesAtOnce = 256 << 10
)

// vectorized combines the elements that both slices have and returns true. It returns
// false, without effect, if there are few elements or no instructions for them.
func vectorized[T Number](op Op, dst, src []T) bool {
	var zero T
	n := min(len(dst), len(src)) * int(unsafe.Sizeof(zero))
	if !haveVectors || n < vectorSize {
		return false
	}
	kind := kindOf[T]()
	d, s := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	for n >= 2*bytesAtOnce {
		if !reduceVectors(op, kind, (*byte)(d), (*byte)(s), bytesAtOnce) {
			return false // not supported for this kind; nothing is done yet
		}
		d, s, n = unsafe.Add(d, bytesAtOnce), unsafe.Add(s, bytesAtOnce), n-bytesAtOnce
	}
	return reduceVectors(op, kind, (*byte)(d), (*byte)(s), n)
}

// kindOf returns the kind of a number, also of a named type.
func kindOf[T Number]() Kind {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Int8:
		return Int8
	case reflect.Int16:
		return Int16
	case reflect.Int32:
		return Int32
	case reflect.Int64:
		return Int64
	case reflect.Uint8:
		return Uint8
	case reflect.Uint16:
		return Uint16
	case reflect.Uint32:
		return Uint32
	case reflect.Uint64:
		return Uint64
	case reflect.Float32:
		return Float32
	case reflect.Float64:
		return Float64
	case reflect.Complex64:
		return Complex64
	case reflect.Complex128:
		return Complex128
	}
	// The size of int, uint and uintptr depends on the platform.
	var zero T
	signed := reflect.TypeFor[T]().Kind() == reflect.Int
	switch {
	case signed && unsafe.Sizeof(zero) == 8:
		return Int64
	case signed:
		return Int32
	case unsafe.Sizeof(zero) == 8:
		return Uint64
	}
	return Uint32
}
