package dtype

import "unsafe"

// strided copies count blocks of type B between two places, each with its own
// step in bytes. Slices would be checked for each block, which takes longer
// than to move it: the caller has checked the first and the last.
//
// B is an array of bytes, so nothing need be aligned. The pointers move on only
// to blocks that exist: Go does not allow one that points past its memory.
func strided[B [1]byte | [2]byte | [4]byte | [8]byte | [12]byte | [16]byte | [24]byte | [32]byte](dst, src *byte, dstStep, srcStep, count int) {
	d, s := unsafe.Pointer(dst), unsafe.Pointer(src)
	for count >= 4 {
		*(*B)(d) = *(*B)(s)
		*(*B)(unsafe.Add(d, dstStep)) = *(*B)(unsafe.Add(s, srcStep))
		*(*B)(unsafe.Add(d, 2*dstStep)) = *(*B)(unsafe.Add(s, 2*srcStep))
		*(*B)(unsafe.Add(d, 3*dstStep)) = *(*B)(unsafe.Add(s, 3*srcStep))
		if count -= 4; count == 0 {
			return
		}
		d, s = unsafe.Add(d, 4*dstStep), unsafe.Add(s, 4*srcStep)
	}
	for i := range count {
		*(*B)(unsafe.Add(d, i*dstStep)) = *(*B)(unsafe.Add(s, i*srcStep))
	}
}
