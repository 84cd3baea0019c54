//go:build linux

package pmi

import "unsafe"

// wordsOf returns mapped memory, which is page-aligned, as words.
func wordsOf(mem []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}
