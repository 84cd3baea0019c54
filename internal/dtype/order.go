package dtype

// Order says how the pieces of a layout follow each other in packing order.
type Order struct {
	First, Last int64 // offsets of the first and of the last piece
	End         int64 // the largest end of a piece
	// Increasing says that no piece begins before the one that it follows.
	Increasing bool
	// Repeats says, of an increasing layout, that it has a byte more than once.
	Repeats bool
}

// Order returns the order of a layout that has bytes. It visits the tree of the layout and not its
// pieces, of which a few bytes can describe more than anyone could visit.
func (l *Layout) Order() Order { return l.shape.order() }

func (s *shape) order() Order {
	switch s.kind {
	case shapeLoop:
		return s.kid.order().repeat(s.count, s.stride).shift(s.off)
	case shapeList:
		var o Order
		for i, off := range s.offs {
			next := Order{End: s.itemSize(i), Increasing: true}
			if s.kid != nil || s.kids != nil {
				next = s.item(i).order()
			}
			if next = next.shift(off); i > 0 {
				next = o.join(next)
			}
			o = next
		}
		return o.shift(s.off)
	}
	return Order{First: s.off, Last: s.off, End: s.off + s.size, Increasing: true}
}

func (o Order) shift(off int64) Order {
	o.First, o.Last, o.End = o.First+off, o.Last+off, o.End+off
	return o
}

// join returns the order of o followed by next.
func (o Order) join(next Order) Order {
	return Order{First: o.First, Last: next.Last, End: max(o.End, next.End),
		Increasing: o.Increasing && next.Increasing && next.First >= o.Last,
		Repeats:    o.Repeats || next.Repeats || next.First < o.End}
}

// repeat returns the order of count copies, stride apart: two of them show whether any meet.
func (o Order) repeat(count, stride int64) Order {
	if count < 2 {
		return o
	}
	two, last := o.join(o.shift(stride)), o.shift((count-1)*stride)
	two.Last, two.End = last.Last, max(o.End, last.End)
	return two
}
