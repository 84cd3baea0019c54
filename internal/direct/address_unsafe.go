package direct

import "unsafe"

// Elements returns the address of the first element of a slice of memory that is not of the
// Go heap.
func Elements[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// Address returns the address of a value that is not on the Go heap.
func Address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Length returns the length of a slice, the second word of it, which the front may read.
func Length[T any](s *[]T) *int {
	return (*int)(unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(uintptr(0))))
}

// Slot returns a pointer to memory that is not of the Go heap as a word, which the front may
// change.
func Slot[T any](p **T) *uintptr { return (*uintptr)(unsafe.Pointer(p)) }

// Count returns the first counter of an array of counters.
func Count[T any](p *T) *uint64 { return (*uint64)(unsafe.Pointer(p)) }
