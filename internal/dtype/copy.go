package dtype

import "github.com/muster-mpi/muster/internal/longcopy"

// run processes count blocks of n bytes, stride apart, the first at off. The view
// has checked the bounds; count and n are positive.
func (w *walk) run(off, n, stride, count int64) {
	switch w.act {
	case actPack:
		w.packed = w.packed[gather(w.packed, w.mem, int(off), int(n), int(stride), int(count)):]
	case actUnpack:
		w.packed = w.packed[scatter(w.mem, w.packed, int(off), int(n), int(stride), int(count)):]
	case actList:
		if stride == n { // a contiguous stream of any length is one piece
			w.segment(off, n*count)
			return
		}
		for i := int64(0); i < count && !w.stopped; i++ {
			w.segment(off+i*stride, n)
		}
	}
}

// segment reports the previous segment, unless this one continues it.
func (w *walk) segment(off, n int64) {
	if w.segOff+w.segLen == off {
		w.segLen += n
		return
	}
	w.flushSegment()
	w.segOff, w.segLen = off, n
}

func (w *walk) flushSegment() {
	if w.segLen > 0 && !w.stopped {
		w.stopped = !w.yield(w.segOff, w.segLen)
	}
}

// move copies count blocks of n bytes, dstStep and srcStep apart, from the start of
// src to the start of dst, if n is a common element size: such a block needs one load
// and one store, while memmove takes several times as long. The caller has checked the
// bounds.
func move(dst, src *byte, dstStep, srcStep, n, count int) bool {
	switch n {
	case 1:
		copyStrided[[1]byte](dst, src, dstStep, srcStep, count)
	case 2:
		copyStrided[[2]byte](dst, src, dstStep, srcStep, count)
	case 4:
		copyStrided[[4]byte](dst, src, dstStep, srcStep, count)
	case 8:
		copyStrided[[8]byte](dst, src, dstStep, srcStep, count)
	case 12:
		copyStrided[[12]byte](dst, src, dstStep, srcStep, count)
	case 16:
		copyStrided[[16]byte](dst, src, dstStep, srcStep, count)
	case 24:
		copyStrided[[24]byte](dst, src, dstStep, srcStep, count)
	case 32:
		copyStrided[[32]byte](dst, src, dstStep, srcStep, count)
	default:
		return false
	}
	return true
}

// gather packs blocks of mem into dst and returns the number of bytes.
func gather(dst, mem []byte, off, n, stride, count int) int {
	if count == 1 {
		return longcopy.Copy(dst[:n], mem[off:off+n])
	}
	total, last := n*count, off+(count-1)*stride
	dst, _ = dst[:total], mem[last:last+n] // bounds checks
	if move(&dst[0], &mem[off : off+n][0], n, stride, n, count) {
		return total
	}
	for len(dst) > 0 {
		copy(dst[:n], mem[off:])
		dst, off = dst[n:], off+stride
	}
	return total
}

// scatter unpacks src into blocks of mem and returns the number of bytes.
func scatter(mem, src []byte, off, n, stride, count int) int {
	if count == 1 {
		return longcopy.Copy(mem[off:off+n], src[:n])
	}
	total, last := n*count, off+(count-1)*stride
	src, _ = src[:total], mem[last:last+n]
	if move(&mem[off : off+n][0], &src[0], stride, n, n, count) {
		return total
	}
	for len(src) > 0 {
		copy(mem[off:], src[:n])
		src, off = src[n:], off+stride
	}
	return total
}
