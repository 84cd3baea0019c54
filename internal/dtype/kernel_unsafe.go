package dtype

import "unsafe"

// KernelOf returns the kernel of a reduction on slices. T must not contain pointers.
// The kernel does not allocate if its operands are aligned for T.
func KernelOf[T any](reduce func(inout, in []T)) Kernel {
	var zero T
	size, align := int(unsafe.Sizeof(zero)), unsafe.Alignof(zero)
	return func(inout, in []byte) {
		n := min(len(inout), len(in))
		if size == 0 || n < size {
			return
		}
		n /= size
		p, q := unsafe.Pointer(unsafe.SliceData(inout)), unsafe.Pointer(unsafe.SliceData(in))
		if uintptr(p)%align != 0 || uintptr(q)%align != 0 {
			reduceUnaligned(reduce, inout[:n*size], in[:n*size])
			return
		}
		reduce(unsafe.Slice((*T)(p), n), unsafe.Slice((*T)(q), n))
	}
}

// reduceUnaligned reduces aligned copies: elements of packed structs and foreign
// memory may be unaligned, but a Go *T must be aligned.
func reduceUnaligned[T any](reduce func(inout, in []T), inout, in []byte) {
	const chunk = 64
	var a, b [chunk]T
	left, right := asBytes(a[:]), asBytes(b[:])
	size := len(left) / chunk
	for len(inout) > 0 {
		n := copy(left, inout)
		copy(right, in)
		reduce(a[:n/size], b[:n/size])
		copy(inout, left[:n])
		inout, in = inout[n:], in[n:]
	}
}

func asBytes[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}
