package sched

// Peek returns the operations that were added since Reset, and their dependencies: those
// of operation i are deps[from[i]:from[i+1]], and of the last one deps[from[i]:]. The
// slices are valid until the next call of the Builder. A simulator that builds the graphs
// of many ranks compares them without the cost of a Graph for each.
func (b *Builder) Peek() (ops []Op, from, deps []int32, err error) {
	return b.ops, b.from, b.deps, b.err
}
