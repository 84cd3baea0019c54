package coll

import "github.com/muster-mpi/muster/internal/sched"

// The spans of a call's data, in place or not: algorithms read their input from the
// spans returned here and write to Out. Also the division of data into parts, which is
// the same on every rank.

// input returns the span of n bytes at off of a rank's input: in In, or, in place, in
// Out.
func (s *Shape) input(off, n int) sched.Span {
	if s.InPlace {
		return sched.Span{Buf: sched.Out, Off: off, Len: n}
	}
	return sched.Span{Buf: sched.In, Off: off, Len: n}
}

// data returns the input of Reduce, Allreduce, Scan and Exscan, result their Out.
func (s *Shape) data() sched.Span   { return s.input(0, s.Bytes) }
func (s *Shape) result() sched.Span { return sched.Span{Buf: sched.Out, Len: s.Bytes} }

// ownInput returns a rank's contribution to a Gather or Allgather: In, or its own block
// of Out.
func (s *Shape) ownInput() sched.Span {
	off, n := s.Recv.Block(s.Rank)
	if s.InPlace {
		return sched.Span{Buf: sched.Out, Off: off, Len: n}
	}
	return sched.Span{Buf: sched.In, Len: n}
}

// outBlock returns the span in Out of a rank's block.
func (s *Shape) outBlock(rank int) sched.Span {
	off, n := s.Recv.Block(rank)
	return sched.Span{Buf: sched.Out, Off: off, Len: n}
}

// share returns the input of an Alltoall or ReduceScatter that is for a rank.
func (s *Shape) share(rank int) sched.Span {
	off, n := s.Send.Block(rank)
	return s.input(off, n)
}

// blockBytes returns the length of a block if all ranks know it. Otherwise it returns
// 0, and costs of algorithms differ only in their start-ups.
func (s *Shape) blockBytes() int {
	blocks := &s.Recv
	if s.Kind == Scatter {
		blocks = &s.Send
	}
	if blocks.irregular() {
		return 0
	}
	return blocks.Each
}

// part returns the i-th of n parts of the data, split between elements. The parts
// differ by at most one element; an incomplete last element belongs to the last part.
func part(bytes, elem, i, n int) (off, length int) {
	elem = max(elem, 1)
	cut := func(i int) int {
		if i == n {
			return bytes
		}
		count := bytes / elem
		return (count/n*i + count%n*i/n) * elem
	}
	off = cut(i)
	return off, cut(i+1) - off
}

// segments returns the number of segments of about want bytes for a pipeline. It is
// bounded, because each segment adds operations to the graph.
func segments(bytes, elem, want int) int {
	const most = 1024
	want = max(want, elem, 1)
	return min(max((bytes+want-1)/want, 1), max(bytes/max(elem, 1), 1), most)
}

// log returns ⌈log n⌉ to the base radix.
func log(n, radix int) int {
	steps := 0
	for reach := 1; reach < n; reach *= radix {
		steps++
	}
	return steps
}
