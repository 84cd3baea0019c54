package shmem

import "unsafe"

// LineBytes is the size of a cache line. Data that one rank writes and others poll has one of
// its own.
const LineBytes = 64

// AlignedBytes returns n zero bytes of ordinary memory that begin on a cache line. The sizes
// of the allocator are multiples of a line from 1 KB on, so that room for the alignment is
// rarely needed.
func AlignedBytes(n int) []byte {
	b := make([]byte, n)
	if n == 0 || uintptr(unsafe.Pointer(&b[0]))%LineBytes == 0 {
		return b[:n:n]
	}
	b = make([]byte, n+LineBytes)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (LineBytes - 1)
	return b[skip : skip+n : skip+n]
}

// Words returns mapped memory as words.
func Words(mem []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}
