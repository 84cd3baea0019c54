package dtype

import "unsafe"

// copyStrided copies count blocks of type B; source and destination each have their own
// step in bytes. With slices, the bounds check of each block would take longer than
// the copy; the caller has checked the first and the last block.
//
// B is an array of bytes, so it needs no alignment. The pointers advance only to
// existing blocks, because Go does not allow pointers past an object.
func copyStrided[B [1]byte | [2]byte | [4]byte | [8]byte | [12]byte | [16]byte | [24]byte | [32]byte](dst, src *byte, dstStep, srcStep, count int) {
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
