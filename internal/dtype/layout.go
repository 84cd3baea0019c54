package dtype

// Layout is the list of bytes of one element, relative to the element's origin, in
// packing order. It is immutable and may be shared by goroutines.
type Layout struct {
	shape *shape
	align int64
	// bounds is [lower bound, upper bound); trueSpan is the span of the bytes
	// themselves. They differ by trailing padding, and arbitrarily after Resized.
	bounds   span
	trueSpan span
	// lowMarked and highMarked mean that Resized, Subarray or a marker set that bound of
	// this layout or of a part of it. Such bounds take precedence over those of the bytes
	// (MPI-4.1 section 5.1.7).
	lowMarked, highMarked bool
}

// Size returns the number of bytes of one packed element.
func (l *Layout) Size() int64 { return l.shape.size }

// Extent returns the distance between the origins of two successive elements.
func (l *Layout) Extent() int64 { return l.bounds.hi - l.bounds.lo }

// LowerBound returns the lower bound of the element, relative to its origin.
func (l *Layout) LowerBound() int64 { return l.bounds.lo }

// TrueExtent returns the distance from the first used byte to the end of the last.
func (l *Layout) TrueExtent() int64 { return l.trueSpan.hi - l.trueSpan.lo }

// TrueLowerBound returns the offset of the first used byte, relative to the origin.
func (l *Layout) TrueLowerBound() int64 { return l.trueSpan.lo }

// Alignment returns the strictest alignment of the basic elements.
func (l *Layout) Alignment() int64 { return l.align }

// Blocks returns the number of separate pieces of memory in one element. Callers use
// it to choose between sending a list of pieces and a packed copy.
func (l *Layout) Blocks() int64 { return l.shape.blocks }

// IsContiguous reports whether any number of elements form one piece of memory,
// in order and without gaps. Such elements need no packing.
func (l *Layout) IsContiguous() bool {
	return l.shape.kind == shapeBlock && l.shape.size == l.Extent()
}

// Span returns the range of bytes [lo, hi) that count elements use, relative to the
// origin of the first. A caller that has only an address must pass that much memory
// to Over.
func (l *Layout) Span(count int64) (lo, hi int64, err error) {
	var c calc
	s, err := l.span(&c, count)
	return s.lo, s.hi, err
}

func (l *Layout) span(c *calc, count int64) (span, error) {
	if count < 0 {
		return span{}, argumentError("count is %d; it must not be negative", count)
	}
	if count == 0 || l.Size() == 0 {
		return span{}, nil
	}
	s := c.spread(l.trueSpan, count, l.Extent())
	c.mul(count, l.Size())
	if c.overflow {
		return span{}, overflowError("elements")
	}
	return s, nil
}

// assembly collects the bounds of a new layout while its parts are added.
type assembly struct {
	calc
	size     int64
	align    int64
	trueSpan span
	bounds   span
	padded   int64 // the largest upper bound of the parts
	used     bool  // trueSpan and padded are set
	// The bounds that are set.
	lowMarked, highMarked bool
}

// repeat adds blocks × count copies of base: runs of count elements an extent apart,
// the runs a stride apart, the first at off. Zero copies do not affect the bounds.
func (a *assembly) repeat(base *Layout, off, blocks, stride, count int64) {
	if blocks == 0 || count == 0 {
		return
	}
	a.size = a.add(a.size, a.mul(a.mul(blocks, count), base.Size()))
	put := func(s span) span {
		return a.at(a.spread(a.spread(s, count, base.Extent()), blocks, stride), off)
	}
	if base.Size() > 0 {
		a.align = max(a.align, base.align)
		s, hi := put(base.trueSpan), put(span{base.bounds.hi, base.bounds.hi}).hi
		if a.used {
			s, hi = s.cover(a.trueSpan), max(hi, a.padded)
		}
		a.trueSpan, a.padded, a.used = s, hi, true
	}
	// The two bounds move separately: with a negative extent the upper bound is below the
	// lower, so they do not form a span.
	if base.lowMarked {
		lo := put(span{base.bounds.lo, base.bounds.lo}).lo
		if a.lowMarked {
			lo = min(lo, a.bounds.lo)
		}
		a.bounds.lo, a.lowMarked = lo, true
	}
	if base.highMarked {
		hi := put(span{base.bounds.hi, base.bounds.hi}).hi
		if a.highMarked {
			hi = max(hi, a.bounds.hi)
		}
		a.bounds.hi, a.highMarked = hi, true
	}
}

// finish returns the layout. Without a marker the extent is rounded up to the
// alignment, as a compiler pads a struct (MPI-4.1 section 5.1, the definition of
// extent). The padding of the last part counts, as in Open MPI and MPICH: programs that
// compute with extents expect a part to lie within the whole.
func (a *assembly) finish(constructor string, s func() *shape) (*Layout, error) {
	l := &Layout{align: max(1, a.align), trueSpan: a.trueSpan, bounds: a.bounds, lowMarked: a.lowMarked, highMarked: a.highMarked}
	if a.used { // else a bound that is not marked is 0
		if !a.lowMarked {
			l.bounds.lo = a.trueSpan.lo
		}
		if !a.highMarked {
			l.bounds.hi = a.add(l.bounds.lo, a.roundUp(a.sub(a.padded, l.bounds.lo), l.align))
		}
	}
	a.sub(l.bounds.hi, l.bounds.lo)
	a.sub(a.trueSpan.hi, a.trueSpan.lo)
	if a.overflow {
		return nil, overflowError(constructor)
	}
	l.shape = s()
	return l, nil
}
