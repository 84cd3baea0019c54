package mpi

import "unsafe"

// elemsOf is the memory of n elements as a slice. The memory starts at a page,
// which suits every type.
func elemsOf[T any](mem []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)
}
