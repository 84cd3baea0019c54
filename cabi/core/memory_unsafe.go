package core

// Memory of the program. An address is a uintptr until it is used.

import "unsafe"

// at converts an address to a pointer. The memory belongs to the program, not to Go; go vet
// cannot know that.
func at[T any](addr uintptr) *T { return *(**T)(unsafe.Pointer(&addr)) }

// memory returns n elements at an address.
func memory[T any](addr uintptr, n int) []T {
	if n <= 0 {
		return nil
	}
	return unsafe.Slice(at[T](addr), n)
}

// set stores a result, unless the address is NULL.
func set[T any](addr uintptr, v T) {
	if addr != 0 {
		*at[T](addr) = v
	}
}

// text returns the string at an address.
func text(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	n := 0
	for *at[byte](addr + uintptr(n)) != 0 {
		n++
	}
	return string(memory[byte](addr, n))
}

// setText stores a string of at most room-1 bytes and its NUL, and returns its length.
func setText(addr uintptr, s string, room int) int {
	n := min(len(s), room-1)
	copy(memory[byte](addr, n), s[:n])
	*at[byte](addr + uintptr(n)) = 0
	return n
}

// addressOf returns the address of memory that does not move: on the heap, or the program's.
// The caller keeps it alive.
func addressOf[T any](s []T) uintptr {
	if len(s) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(s)))
}

// elements returns bytes as elements of T.
func elements[T any](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// sizeOf returns the size of T in bytes.
func sizeOf[T any]() int { return int(unsafe.Sizeof(*new(T))) }
