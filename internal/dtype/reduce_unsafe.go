package dtype

// From slices of elements to vectors of bytes, where the processor has them.

import (
	"reflect"
	"unsafe"
)

const (
	vectorSize = 32 // bytes

	// A loop is done with this many, of any type, before the vectors have begun.
	fewElements = 32

	// The scheduler cannot interrupt a loop in assembler. It gets a chance after this
	// many bytes at least and twice as many at most: about every 10 µs.
	bytesAtOnce = 256 << 10
)

// vectorized combines the elements that both have and returns true, or returns false
// and leaves them to a loop: they are few, or there are no instructions for them.
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
			return false // not for this kind, so nothing is done yet
		}
		d, s, n = unsafe.Add(d, bytesAtOnce), unsafe.Add(s, bytesAtOnce), n-bytesAtOnce
	}
	return reduceVectors(op, kind, (*byte)(d), (*byte)(s), n)
}

// kindOf is the kind of a number, also of one whose type has a name of its own.
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
	// int, uint and uintptr are as wide as the processor likes.
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
