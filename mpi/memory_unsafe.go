package mpi

import "unsafe"

// elemsOf returns memory as a slice of n elements. The memory is page-aligned, which
// suffices for every type.
func elemsOf[T any](mem []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)
}
