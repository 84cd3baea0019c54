package coll

import "github.com/muster-mpi/muster/internal/sched"

// Where the data of a call lies, in place or not, so that algorithms need not ask:
// they read their input from the spans given here and write Out. And how data is
// cut into parts that every rank finds alike.

// input is where the part of a rank's input that begins at off lies: in In, or,
// in place, where MPI puts it, in Out.
func (s *Shape) input(off, n int) sched.Span {
	if s.InPlace {
		return sched.Span{Buf: sched.Out, Off: off, Len: n}
	}
	return sched.Span{Buf: sched.In, Off: off, Len: n}
}

// data is the input of Reduce, Allreduce, Scan and Exscan, result their Out.
func (s *Shape) data() sched.Span   { return s.input(0, s.Bytes) }
func (s *Shape) result() sched.Span { return sched.Span{Buf: sched.Out, Len: s.Bytes} }

// given is what a rank gives to a Gather or Allgather: In, or its own block of Out.
func (s *Shape) given() sched.Span {
	off, n := s.Recv.Of(s.Rank)
	if s.InPlace {
		return sched.Span{Buf: sched.Out, Off: off, Len: n}
	}
	return sched.Span{Buf: sched.In, Len: n}
}

// gathered is the place in Out of the block of a rank.
func (s *Shape) gathered(rank int) sched.Span {
	off, n := s.Recv.Of(rank)
	return sched.Span{Buf: sched.Out, Off: off, Len: n}
}

// share is the input of an Alltoall or ReduceScatter that is meant for a rank.
func (s *Shape) share(rank int) sched.Span {
	off, n := s.Send.Of(rank)
	return s.input(off, n)
}

// blockBytes is the length of a block as all ranks know it. Where only the root
// knows the lengths it is 0, and algorithms are told apart by their start-ups.
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

// part is the i-th of n parts of the data, cut between elements. The parts differ
// by one element at most; what does not fill an element belongs to the last.
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

// segments is into how many parts a pipeline cuts data for a wanted length of the
// parts. Their number is bounded, since each costs operations of the graph.
func segments(bytes, elem, want int) int {
	const most = 1024
	want = max(want, elem, 1)
	return min(max((bytes+want-1)/want, 1), max(bytes/max(elem, 1), 1), most)
}

// log is the smallest number of steps in which a count that grows radix times in
// each reaches n: ⌈log n⌉.
func log(n, radix int) int {
	steps := 0
	for reach := 1; reach < n; reach *= radix {
		steps++
	}
	return steps
}
