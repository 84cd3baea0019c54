package dtype

// Distribution is how a dimension of an array is divided among processes: cyclically in
// blocks. If Block is so large that each process has at most one block, it is MPI's block
// distribution; with one process, the dimension is not distributed.
type Distribution struct {
	Size  int64 // elements of the array in this dimension
	Block int64 // elements of a block
	Procs int64 // processes in this dimension
	Coord int64 // of the process, from 0
}

// Darray returns the layout of the part of a distributed array that one process has
// (MPI-4.1 section 5.1.4). The last dimension is contiguous. Its extent is that of the whole
// array.
func Darray(dims []Distribution, base *Layout) (*Layout, error) {
	if base == nil {
		return nil, argumentError("Darray: base layout is nil")
	}
	if len(dims) == 0 {
		return nil, argumentError("Darray: there are no dimensions")
	}
	part := base
	var c calc
	stride, off := base.Extent(), int64(0)
	for i := len(dims) - 1; i >= 0; i-- {
		d := dims[i]
		if d.Size < 1 || d.Block < 1 || d.Procs < 1 || d.Coord < 0 || d.Coord >= d.Procs {
			return nil, argumentError("Darray: dimension %d has size %d, blocks of %d, process %d of %d", i, d.Size, d.Block, d.Coord, d.Procs)
		}
		var err error
		if part, err = d.apply(&c, stride, part); err != nil {
			return nil, err
		}
		off = c.add(off, c.mul(c.mul(d.Coord, min(d.Block, d.Size)), stride))
		stride = c.mul(stride, d.Size)
	}
	return part.embed(&c, "Darray", off, stride)
}

// apply returns the elements of the process in one dimension, relative to its first.
func (d Distribution) apply(c *calc, stride int64, part *Layout) (*Layout, error) {
	block := min(d.Block, d.Size)
	round := c.mul(block, d.Procs) // the distance between two blocks of a process
	if c.overflow {
		return nil, overflowError("Darray")
	}
	rest := max(0, d.Size-d.Coord*block)
	whole, last := rest/round, min(rest%round, block)
	if last == block {
		whole, last = whole+1, 0
	}
	run, err := hvector("Darray", block, 1, stride, part)
	if err != nil {
		return nil, err
	}
	blocks, err := hvector("Darray", whole, 1, c.mul(round, stride), run)
	if err != nil || last == 0 {
		return blocks, err
	}
	tail, err := hvector("Darray", last, 1, stride, part)
	if err != nil {
		return nil, err
	}
	return Struct([]int64{1, 1}, []int64{0, c.mul(whole, c.mul(round, stride))}, []*Layout{blocks, tail})
}
