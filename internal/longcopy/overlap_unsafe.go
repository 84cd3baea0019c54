package longcopy

import "unsafe"

// overlap reports whether two slices of the same length have bytes in common.
func overlap(a, b []byte) bool {
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return max(x, y)-min(x, y) < uintptr(len(a))
}
