package dtype

import (
	"fmt"
	"iter"

	"github.com/muster-mpi/muster/internal/longcopy"
)

// View is count elements of a layout in memory. Over has checked the bounds, so the
// methods do not fail. The packed stream of a view is the bytes of its elements in
// order; the methods accept any part of it.
type View struct {
	layout *Layout
	mem    []byte
	origin int64
	count  int64
}

// View returns a View of count elements in mem, the first with its origin at
// mem[origin]. The origin itself may be outside mem, as long as every used byte is
// inside: with absolute addresses as displacements, it is minus the address of mem.
func (l *Layout) View(mem []byte, origin, count int64) (View, error) {
	var c calc
	s, err := l.span(&c, count)
	if err != nil {
		return View{}, err
	}
	if s.lo == s.hi {
		return View{layout: l}, nil
	}
	at := c.at(s, origin)
	if c.overflow || at.lo < 0 || at.hi > int64(len(mem)) {
		return View{}, fmt.Errorf("%w: %d elements with their origin at byte %d of %d use the bytes [%d, %d) from there; pass more memory or fewer elements",
			ErrBounds, count, origin, len(mem), s.lo, s.hi)
	}
	return View{layout: l, mem: mem, origin: origin, count: count}, nil
}

// Len returns the length of the packed stream.
func (v View) Len() int64 { return v.count * v.size() }

func (v View) size() int64 {
	if v.layout == nil {
		return 0
	}
	return v.layout.Size()
}

// Contiguous returns the memory of the elements if they are contiguous; it is then the
// packed stream.
func (v View) Contiguous() ([]byte, bool) {
	if !v.flat() {
		return nil, false
	}
	return v.part(0, v.Len()), true
}

// flat reports whether the elements are contiguous.
func (v View) flat() bool {
	if v.count == 0 {
		return true
	}
	s := v.layout.shape
	return s.kind == shapeBlock && (v.count == 1 || s.size == v.layout.Extent())
}

// part returns the memory of n bytes of contiguous elements.
func (v View) part(pos, n int64) []byte {
	if v.count == 0 {
		return nil
	}
	start := v.origin + v.layout.shape.off + pos
	return v.mem[start : start+n]
}

// Pack copies the packed stream from pos into dst and returns the number of bytes
// copied: less than len(dst) only at the end of the stream, and 0 if pos is outside it.
func (v View) Pack(dst []byte, pos int64) int {
	n := v.clip(pos, int64(len(dst)))
	if n == 0 {
		return 0
	}
	if v.flat() {
		return longcopy.Copy(dst[:n], v.part(pos, n))
	}
	w := walk{act: actPack, mem: v.mem, packed: dst}
	v.walk(&w, v.origin, pos, pos+n)
	return int(n)
}

// Unpack copies src into the elements, as the part of the packed stream that
// begins at pos, and returns the number of bytes copied. Less than len(src)
// means that the rest is beyond the end of the elements.
func (v View) Unpack(src []byte, pos int64) int {
	n := v.clip(pos, int64(len(src)))
	if n == 0 {
		return 0
	}
	if v.flat() {
		return longcopy.Copy(v.part(pos, n), src[:n])
	}
	w := walk{act: actUnpack, mem: v.mem, packed: src}
	v.walk(&w, v.origin, pos, pos+n)
	return int(n)
}

// Segments iterates over the pieces of memory of n bytes of the packed stream from pos:
// offset in the memory and length, in packing order, with adjacent pieces merged.
func (v View) Segments(pos, n int64) iter.Seq2[int64, int64] {
	return func(yield func(off, n int64) bool) {
		part := v.clip(pos, n)
		if part == 0 {
			return
		}
		w := walk{act: actList, yield: yield}
		v.walk(&w, v.origin, pos, pos+part)
		w.flushSegment()
	}
}

// Segments iterates over the pieces of count elements, as [View.Segments] does, for memory
// that is elsewhere: the offsets are relative to the origin of the first element.
func (l *Layout) Segments(count int64) iter.Seq2[int64, int64] {
	v := View{layout: l, count: count}
	return v.Segments(0, v.Len())
}

func (v View) clip(pos, n int64) int64 {
	total := v.Len()
	if pos < 0 || pos >= total || n <= 0 {
		return 0
	}
	return min(n, total-pos)
}

func (v View) walk(w *walk, origin, lo, hi int64) {
	s := v.layout.shape
	if v.count == 1 {
		w.visit(s, origin, lo, hi)
		return
	}
	w.loop(s, origin, v.layout.Extent(), lo, hi)
}
