package dtype

import "slices"

// naive is a typemap as in the standard: a list of all byte ranges, and the markers that
// Resized and Subarray set. It is slow and obviously correct.
type naive struct {
	entries []naiveEntry
	lower   []int64
	upper   []int64
	padded  []int64 // the upper bounds of the parts, which have bytes
	align   int64
}

type naiveEntry struct{ off, n int64 }

func naiveBasic(size, align int64) naive {
	return naive{entries: []naiveEntry{{0, size}}, align: align}
}

// plus appends a copy of m, shifted by off.
func (t *naive) plus(m naive, off int64) {
	for _, e := range m.entries {
		t.entries = append(t.entries, naiveEntry{e.off + off, e.n})
		t.align = max(t.align, m.align)
	}
	if _, hi := m.bounds(); len(m.entries) > 0 {
		t.padded = append(t.padded, hi+off)
	}
	for _, b := range m.lower {
		t.lower = append(t.lower, b+off)
	}
	for _, b := range m.upper {
		t.upper = append(t.upper, b+off)
	}
}

// run appends count copies, an extent apart.
func (t *naive) run(m naive, off, count int64) {
	for i := range count {
		t.plus(m, off+i*m.extent())
	}
}

func (t naive) size() (n int64) {
	for _, e := range t.entries {
		n += e.n
	}
	return n
}

func (t naive) trueBounds() (lo, hi int64) {
	for i, e := range t.entries {
		if i == 0 {
			lo, hi = e.off, e.off+e.n
		}
		lo, hi = min(lo, e.off), max(hi, e.off+e.n)
	}
	return lo, hi
}

func (t naive) bounds() (lo, hi int64) {
	if len(t.lower) > 0 {
		return slices.Min(t.lower), slices.Max(t.upper)
	}
	if lo, hi = t.trueBounds(); len(t.padded) > 0 {
		hi = slices.Max(t.padded)
	}
	for t.align > 0 && (hi-lo)%t.align != 0 {
		hi++
	}
	return lo, hi
}

func (t naive) extent() int64 {
	lo, hi := t.bounds()
	return hi - lo
}

// resized drops the markers and sets new ones.
func (t naive) resized(lower, extent int64) naive {
	return naive{entries: t.entries, align: t.align, lower: []int64{lower}, upper: []int64{lower + extent}}
}

// offsets returns the offset of each byte of the packed stream of count elements.
func (t naive) offsets(origin, count int64) (offs []int64) {
	for i := range count {
		for _, e := range t.entries {
			for b := range e.n {
				offs = append(offs, origin+i*t.extent()+e.off+b)
			}
		}
	}
	return offs
}

// source derives choices from bytes, so that a fuzzer can control them.
type source struct{ data []byte }

// pick returns a number in [lo, hi].
func (s *source) pick(lo, hi int64) int64 {
	if len(s.data) == 0 {
		return lo
	}
	b := int64(s.data[0])
	s.data = s.data[1:]
	return lo + b%(hi-lo+1)
}

// list returns n numbers in [lo, hi].
func (s *source) list(n, lo, hi int64) []int64 {
	l := make([]int64, n)
	for i := range l {
		l[i] = s.pick(lo, hi)
	}
	return l
}

// layout returns a random layout and its naive typemap. Sizes are small enough to
// expand.
func (s *source) layout(depth int) (*Layout, naive, error) {
	if depth == 0 || len(s.data) == 0 {
		size := []int64{1, 2, 4, 8, 16, 3, 12, 24, 32}[s.pick(0, 8)]
		align := min(size, 8)
		l, err := Basic(size, align)
		return l, naiveBasic(size, align), err
	}
	base, model, err := s.layout(depth - 1)
	if err != nil || len(model.entries) > 300 {
		return base, model, err
	}
	var l *Layout
	var t naive
	switch s.pick(0, 9) {
	case 0:
		n := s.pick(0, 4)
		l, err = Contiguous(n, base)
		t.run(model, 0, n)
	case 1:
		n, b, st := s.pick(0, 4), s.pick(0, 3), s.pick(-4, 6)
		l, err = Vector(n, b, st, base)
		for i := range n {
			t.run(model, i*st*model.extent(), b)
		}
	case 2:
		n, b, st := s.pick(0, 4), s.pick(0, 3), s.pick(-40, 60)
		l, err = Hvector(n, b, st, base)
		for i := range n {
			t.run(model, i*st, b)
		}
	case 3, 4:
		n := s.pick(0, 5)
		lens, displs := s.list(n, 0, 3), s.list(n, -5, 9)
		if s.pick(0, 1) == 0 {
			l, err = Indexed(lens, displs, base)
		} else {
			for i := range displs {
				displs[i] *= model.extent()
			}
			l, err = Hindexed(lens, displs, base)
			for i := range displs {
				if e := model.extent(); e != 0 {
					displs[i] /= e
				}
			}
		}
		for i := range lens {
			t.run(model, displs[i]*model.extent(), lens[i])
		}
	case 5:
		n, b := s.pick(0, 5), s.pick(0, 3)
		displs := s.list(n, -5, 9)
		l, err = IndexedBlock(b, displs, base)
		for _, d := range displs {
			t.run(model, d*model.extent(), b)
		}
	case 6:
		n, b := s.pick(0, 5), s.pick(0, 3)
		displs := s.list(n, -50, 90)
		l, err = HindexedBlock(b, displs, base)
		for _, d := range displs {
			t.run(model, d, b)
		}
	case 7:
		n := s.pick(0, 4)
		lens, displs := s.list(n, 0, 2), s.list(n, -30, 100)
		types, models := make([]*Layout, n), make([]naive, n)
		for i := range types {
			types[i], models[i] = base, model
			if s.pick(0, 1) == 1 {
				if types[i], models[i], err = s.layout(depth - 1); err != nil {
					return nil, t, err
				}
			}
			t.run(models[i], displs[i], lens[i])
		}
		l, err = Struct(lens, displs, types)
	case 8:
		d := s.pick(1, 3)
		sizes, subs, starts := s.list(d, 1, 4), make([]int64, d), make([]int64, d)
		for i := range sizes {
			subs[i] = s.pick(1, sizes[i])
			starts[i] = s.pick(0, sizes[i]-subs[i])
		}
		l, err = Subarray(sizes, subs, starts, base)
		t = naiveSubarray(sizes, subs, starts, model)
	case 9:
		lower, extent := s.pick(-20, 20), s.pick(-10, 80)
		l, err = Resized(base, lower, extent)
		t = model.resized(lower, extent)
	}
	return l, t, err
}

func naiveSubarray(sizes, subs, starts []int64, model naive) naive {
	var t naive
	total := int64(1)
	for _, n := range sizes {
		total *= n
	}
	var visit func(d int, at int64)
	visit = func(d int, at int64) {
		if d == len(sizes) {
			t.plus(model, at*model.extent())
			return
		}
		for i := range subs[d] {
			visit(d+1, at*sizes[d]+starts[d]+i)
		}
	}
	visit(0, 0)
	return t.resized(0, total*model.extent())
}
