package dtype

// A walk traverses the part [lo, hi) of a shape's packed stream as runs: blocks of one
// size, a stride apart. Packing, unpacking and listing use the same walk; they differ in
// how they process a run (copy.go). Seeking is a division or a binary search per level,
// so no state is kept between two parts of a message.

type walk struct {
	act    action
	mem    []byte // memory of the elements
	packed []byte // the rest of the packed side
	yield  func(off, n int64) bool
	// The last segment, which the next may extend.
	segOff, segLen int64
	stopped        bool
}

type action uint8

const (
	actPack action = iota
	actUnpack
	actList
)

// visit traverses the packed bytes [lo, hi) of s with its origin at base.
func (w *walk) visit(s *shape, base, lo, hi int64) {
	base += s.off
	switch s.kind {
	case shapeBlock:
		w.run(base+lo, hi-lo, 0, 1)
	case shapeLoop:
		w.loop(s.kid, base, s.stride, lo, hi)
	case shapeList:
		w.list(s, base, lo, hi)
	}
}

// loop traverses the packed bytes [lo, hi) of kids that are stride apart.
func (w *walk) loop(kid *shape, at, stride, lo, hi int64) {
	unit := kid.size
	if lo > 0 {
		skip := lo / unit
		at += skip * stride
		lo -= skip * unit
		hi -= skip * unit
	}
	if lo > 0 || hi < unit { // the first kid is partial
		end := min(unit, hi)
		w.visit(kid, at, lo, end)
		at += stride
		lo = end
	}
	whole := (hi - lo) / unit
	if kid.kind == shapeBlock {
		if whole > 0 {
			w.run(at+kid.off, unit, stride, whole)
		}
	} else {
		for i := int64(0); i < whole && !w.stopped; i++ {
			w.visit(kid, at+i*stride, 0, unit)
		}
	}
	if rest := hi - lo - whole*unit; rest > 0 && !w.stopped {
		w.visit(kid, at+whole*stride, 0, rest)
	}
}

// list traverses the packed bytes [lo, hi) of a list.
func (w *walk) list(s *shape, base, lo, hi int64) {
	i := s.itemAt(lo)
	start := s.itemStart(i)
	for ; lo < hi && !w.stopped; i++ {
		size := s.itemSize(i)
		end := min(hi, start+size)
		if s.kids == nil && (s.kid == nil || s.kid.kind == shapeBlock) {
			w.run(base+s.offs[i]+lo-start, end-lo, 0, 1)
		} else {
			w.visit(s.item(i), base+s.offs[i], lo-start, end-start)
		}
		start += size
		lo = end
	}
}
