package dtype

// The constructors of MPI-4.1 section 5.1.2, with MPI's names. Each checks its
// arguments, computes the bounds, and then builds the shape.

// Basic returns the layout of size contiguous bytes with an alignment of align: an
// int32 is Basic(4, 4).
func Basic(size, align int64) (*Layout, error) {
	if size < 0 || align < 1 {
		return nil, argumentError("Basic: size %d, alignment %d; want size >= 0 and alignment >= 1", size, align)
	}
	a := assembly{align: align, size: size, trueSpan: span{0, size}, padded: size, used: size > 0}
	return a.finish("Basic", func() *shape { return block(0, size) })
}

// Contiguous returns the layout of count consecutive elements of base.
func Contiguous(count int64, base *Layout) (*Layout, error) {
	return hvector("Contiguous", 1, count, 0, base)
}

// Vector returns the layout of count blocks of blocklen elements that begin stride
// elements apart.
func Vector(count, blocklen, stride int64, base *Layout) (*Layout, error) {
	if base == nil {
		return nil, argumentError("Vector: base layout is nil")
	}
	var c calc
	bytes := c.mul(stride, base.Extent())
	if c.overflow {
		return nil, overflowError("Vector")
	}
	return hvector("Vector", count, blocklen, bytes, base)
}

// Hvector is Vector with the stride in bytes.
func Hvector(count, blocklen, stride int64, base *Layout) (*Layout, error) {
	return hvector("Hvector", count, blocklen, stride, base)
}

func hvector(name string, count, blocklen, stride int64, base *Layout) (*Layout, error) {
	if base == nil {
		return nil, argumentError("%s: base layout is nil", name)
	}
	if count < 0 || blocklen < 0 {
		return nil, argumentError("%s: count %d, block length %d; neither may be negative", name, count, blocklen)
	}
	var a assembly
	a.repeat(base, 0, count, stride, blocklen)
	return a.finish(name, func() *shape {
		return repeat(count, stride, repeat(blocklen, base.Extent(), base.shape))
	})
}

// Indexed returns the layout of blocks of blocklens[i] elements, displs[i] elements
// from the origin.
func Indexed(blocklens, displs []int64, base *Layout) (*Layout, error) {
	return newIndexed("Indexed", displs, base, true, func(i int) int64 { return blocklens[i] }, len(blocklens))
}

// IndexedBlock is Indexed with blocks of one length.
func IndexedBlock(blocklen int64, displs []int64, base *Layout) (*Layout, error) {
	return newIndexed("IndexedBlock", displs, base, true, func(int) int64 { return blocklen }, len(displs))
}

// Hindexed is Indexed with the displacements in bytes.
func Hindexed(blocklens, displs []int64, base *Layout) (*Layout, error) {
	return newIndexed("Hindexed", displs, base, false, func(i int) int64 { return blocklens[i] }, len(blocklens))
}

// HindexedBlock is IndexedBlock with the displacements in bytes.
func HindexedBlock(blocklen int64, displs []int64, base *Layout) (*Layout, error) {
	return newIndexed("HindexedBlock", displs, base, false, func(int) int64 { return blocklen }, len(displs))
}

func newIndexed(name string, displs []int64, base *Layout, inElements bool, blocklen func(int) int64, lens int) (*Layout, error) {
	if base == nil {
		return nil, argumentError("%s: base layout is nil", name)
	}
	if lens != len(displs) {
		return nil, argumentError("%s: %d block lengths but %d displacements", name, lens, len(displs))
	}
	var a assembly
	unit := int64(1)
	if inElements {
		unit = base.Extent()
	}
	for i, d := range displs {
		if blocklen(i) < 0 {
			return nil, argumentError("%s: block length %d of block %d is negative", name, blocklen(i), i)
		}
		a.repeat(base, a.mul(d, unit), 1, 0, blocklen(i))
	}
	return a.finish(name, func() *shape {
		var j joiner
		var run *shape // shared by adjacent blocks of one length, so that join sees they are equal
		runLen := int64(-1)
		for i, d := range displs {
			if n := blocklen(i); n != runLen {
				run, runLen = repeat(n, base.Extent(), base.shape), n
			}
			j.add(d*unit, run)
		}
		return j.join()
	})
}

// Struct returns the layout of blocks of different layouts: blocklens[i] elements of
// types[i], displs[i] bytes from the origin.
func Struct(blocklens, displs []int64, types []*Layout) (*Layout, error) {
	if len(blocklens) != len(displs) || len(types) != len(displs) {
		return nil, argumentError("Struct: %d block lengths, %d displacements, %d layouts; want as many of each",
			len(blocklens), len(displs), len(types))
	}
	var a assembly
	for i, t := range types {
		if t == nil {
			return nil, argumentError("Struct: layout %d is nil", i)
		}
		if blocklens[i] < 0 {
			return nil, argumentError("Struct: block length %d of block %d is negative", blocklens[i], i)
		}
		a.repeat(t, displs[i], 1, 0, blocklens[i])
	}
	return a.finish("Struct", func() *shape {
		var j joiner
		for i, t := range types {
			j.add(displs[i], repeat(blocklens[i], t.Extent(), t.shape))
		}
		return j.join()
	})
}

// Subarray returns the layout of the part of an array in C order that begins at starts
// and has subsizes elements in each dimension. Its extent is that of the whole array of
// the given sizes, so successive elements are successive arrays.
func Subarray(sizes, subsizes, starts []int64, base *Layout) (*Layout, error) {
	if base == nil {
		return nil, argumentError("Subarray: base layout is nil")
	}
	if len(sizes) == 0 || len(sizes) != len(subsizes) || len(sizes) != len(starts) {
		return nil, argumentError("Subarray: %d sizes, %d subsizes, %d starts; want the same number, at least 1",
			len(sizes), len(subsizes), len(starts))
	}
	for d := range sizes {
		if subsizes[d] < 1 || starts[d] < 0 || subsizes[d] > sizes[d] || starts[d] > sizes[d]-subsizes[d] {
			return nil, argumentError("Subarray: dimension %d has size %d, subsize %d, start %d; want subsize >= 1, start >= 0 and start+subsize <= size",
				d, sizes[d], subsizes[d], starts[d])
		}
	}
	part := base
	var a calc
	stride, off := base.Extent(), int64(0)
	for d := len(sizes) - 1; d >= 0; d-- { // the last dimension is contiguous
		off = a.add(off, a.mul(starts[d], stride))
		var err error
		if part, err = hvector("Subarray", subsizes[d], 1, stride, part); err != nil {
			return nil, err
		}
		stride = a.mul(stride, sizes[d])
	}
	return part.embed(&a, "Subarray", off, stride)
}

// embed returns the layout as a part of an array: at off, with the extent of the array.
func (l *Layout) embed(c *calc, name string, off, extent int64) (*Layout, error) {
	trueSpan := l.trueSpan
	if l.Size() > 0 {
		trueSpan = c.at(trueSpan, off)
	}
	if c.overflow {
		return nil, overflowError(name)
	}
	return &Layout{
		shape: l.shape.shift(off), align: l.align, trueSpan: trueSpan,
		bounds: span{0, extent}, lowMarked: true, highMarked: true,
	}, nil
}

// Resized returns base with another lower bound and extent, so that elements can
// overlap or be further apart.
func Resized(base *Layout, lowerBound, extent int64) (*Layout, error) {
	if base == nil {
		return nil, argumentError("Resized: base layout is nil")
	}
	var c calc
	upper := c.add(lowerBound, extent)
	if c.overflow {
		return nil, overflowError("Resized")
	}
	return &Layout{
		shape: base.shape, align: base.align, trueSpan: base.trueSpan,
		bounds: span{lowerBound, upper}, lowMarked: true, highMarked: true,
	}, nil
}

// LowerMarker returns the layout of no bytes that sets the lower bound of a Struct to its
// displacement: MPI_LB of MPI-1.
func LowerMarker() *Layout { return &Layout{shape: block(0, 0), align: 1, lowMarked: true} }

// UpperMarker is the same for the upper bound: MPI_UB of MPI-1.
func UpperMarker() *Layout { return &Layout{shape: block(0, 0), align: 1, highMarked: true} }
