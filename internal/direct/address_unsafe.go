package direct

import "unsafe"

// Address returns the address of a word. The garbage collector does not move it; the caller
// keeps it alive.
func Address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Elements returns the address of the first element of a slice.
func Elements[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// Length returns the address of the length of a slice, the second word of it.
func Length[T any](s *[]T) uintptr { return uintptr(unsafe.Pointer(s)) + unsafe.Sizeof(uintptr(0)) }
