//go:build linux

package pmi

import "unsafe"

// wordsOf views mapped memory, which begins at a page, as words.
func wordsOf(mem []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}
