package coll

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// The definition of each collective. Task returns, for a call, the contents of every
// rank's buffers at the start and the contents required at the end (MPI-4.1 chapter 6,
// and 8.6 for neighbors); Prove checks graphs against it. Bytes of Out outside the
// results must not be written. That includes the root's data of a broadcast, because
// a caller may broadcast the same bytes twice at a time.

// Task returns the definition of a call; shapes holds the Shape of every rank. Offsets
// of a rank's data are those of its input.
func Task(shapes []Shape) *sched.Task {
	s := &shapes[0]
	r := table[s.Kind]
	t := &sched.Task{Elem: s.Elem, Commutes: s.Commutes, Sync: r.out == Nothing, Agree: r.combines && r.awaits && r.out == Vector,
		Ranks: make([]sched.Memory, len(shapes))}
	if s.Nodes != nil {
		t.Node = s.Nodes.NodeList()
	}
	for i := range shapes {
		m := &meaning{shapes: shapes, s: &shapes[i], m: &t.Ranks[i]}
		r.define(m)
	}
	return t
}

// Prove checks the graphs of all ranks of a call and returns the first fault.
func Prove(shapes []Shape, graphs []*sched.Graph) error {
	if err := checkShapes(shapes); err != nil {
		return err
	}
	return sched.Validate(graphs, Task(shapes))
}

// Graphs returns the graphs of all ranks of a call.
func (a *Algorithm) Graphs(shapes []Shape, params []int) ([]*sched.Graph, error) {
	var b sched.Builder
	graphs := make([]*sched.Graph, len(shapes))
	for r := range shapes {
		g, err := a.Graph(&b, &shapes[r], params)
		if err != nil {
			return nil, err
		}
		if graphs[r], err = g.Expand(); err != nil {
			return nil, err
		}
	}
	return graphs, nil
}

// checkShapes checks that the shapes are those of one call.
func checkShapes(shapes []Shape) error {
	if len(shapes) == 0 {
		return fmt.Errorf("no ranks")
	}
	first := &shapes[0]
	for r := range shapes {
		s := &shapes[r]
		switch {
		case s.Rank != r || s.Size != len(shapes):
			return fmt.Errorf("shape %d of %d belongs to rank %d of %d", r, len(shapes), s.Rank, s.Size)
		case s.Kind != first.Kind || s.Root != first.Root || s.Bytes != first.Bytes || s.Elem != first.Elem || s.Commutes != first.Commutes:
			return fmt.Errorf("ranks 0 and %d do not make the same call: %+v, %+v", r, *first, *s)
		case s.Kind == ReduceScatter && !(slices.Equal(s.Send.Lens, first.Send.Lens) && slices.Equal(s.Send.Offs, first.Send.Offs)):
			return fmt.Errorf("ranks 0 and %d divide the data differently: %+v, %+v", r, first.Send, s.Send)
		case s.InPlace && s.Kind.Rooted() && r != s.Root:
			return fmt.Errorf("rank %d is in place, but in a %s only the root, rank %d, can be", r, s.Kind, s.Root)
		}
	}
	return nil
}

// meaning builds the memory of one rank.
type meaning struct {
	shapes []Shape
	s      *Shape
	m      *sched.Memory
}

// start records that n bytes at off of a buffer are this rank's data from offset at,
// and extends the buffer if needed.
func (m *meaning) start(buf sched.Buf, off, n, at int) {
	m.room(buf, off+n)
	m.m.Start = append(m.m.Start, sched.Piece{Span: sched.Span{Buf: buf, Off: off, Len: n}, From: m.s.Rank, To: m.s.Rank + 1, At: at})
}

// end records that n bytes at off of Out must become the data of ranks from to to-1.
func (m *meaning) end(off, n, from, to, at int) {
	m.room(sched.Out, off+n)
	m.m.End = append(m.m.End, sched.Piece{Span: sched.Span{Buf: sched.Out, Off: off, Len: n}, From: from, To: to, At: at})
}

func (m *meaning) room(buf sched.Buf, end int) {
	if buf == sched.In {
		m.m.In = max(m.m.In, end)
	} else {
		m.m.Out = max(m.m.Out, end)
	}
}

// input returns the buffer that holds the input.
func (m *meaning) input() sched.Buf {
	if m.s.InPlace {
		return sched.Out
	}
	return sched.In
}

// bcast defines MPI-4.1 6.4.
func (m *meaning) bcast() {
	if m.s.Rank == m.s.Root {
		m.start(sched.Out, 0, m.s.Bytes, 0)
	} else {
		m.end(0, m.s.Bytes, m.s.Root, m.s.Root+1, 0)
	}
}

// gather defines MPI-4.1 6.5 and 6.7.
func (m *meaning) gather() {
	s := m.s
	off, n := s.Recv.Block(s.Rank)
	if s.InPlace {
		m.start(sched.Out, off, n, 0)
	} else {
		m.start(sched.In, 0, n, 0)
	}
	if s.Kind == Gather && s.Rank != s.Root {
		return
	}
	for i := range s.Size {
		off, n := s.Recv.Block(i)
		m.end(off, n, i, i+1, 0)
	}
}

// scatter defines MPI-4.1 6.6. A root in place has no output.
func (m *meaning) scatter() {
	s := m.s
	if s.Rank == s.Root {
		for i := range s.Size {
			off, n := s.Send.Block(i)
			m.start(sched.In, off, n, off)
		}
		if s.InPlace {
			return
		}
	}
	at, n := m.shapes[s.Root].Send.Block(s.Rank)
	m.end(0, n, s.Root, s.Root+1, at)
}

// alltoall defines MPI-4.1 6.8. In place, the blocks of Out are also the input.
func (m *meaning) alltoall() {
	s := m.s
	for i := range s.Size {
		off, n := s.outgoing(i)
		m.start(m.input(), off, n, off)
		at, _ := m.shapes[i].outgoing(s.Rank)
		off, n = s.Recv.Block(i)
		m.end(off, n, i, i+1, at)
	}
}

// outgoing returns the offset and the length of the block that an alltoall sends to
// rank i.
func (s *Shape) outgoing(i int) (off, n int) {
	if s.InPlace {
		return s.Recv.Block(i)
	}
	return s.Send.Block(i)
}

// reduce defines MPI-4.1 6.9.1 and 6.9.6.
func (m *meaning) reduce() {
	if m.s.Kind == Reduce && m.s.Rank != m.s.Root {
		m.start(m.input(), 0, m.s.Bytes, 0)
		return
	}
	m.combine(m.s.Size)
}

// scan and exscan define MPI-4.1 6.11. Exscan has no result on rank 0.
func (m *meaning) scan()   { m.combine(m.s.Rank + 1) }
func (m *meaning) exscan() { m.combine(m.s.Rank) }

// combine records that the rank gets the result over ranks 0 to to-1.
func (m *meaning) combine(to int) {
	m.start(m.input(), 0, m.s.Bytes, 0)
	if to > 0 {
		m.end(0, m.s.Bytes, 0, to, 0)
	} else {
		m.room(sched.Out, m.s.Bytes)
	}
}

// reduceScatter defines MPI-4.1 6.10. In place, the result is at the beginning of Out
// and the blocks after it do not change.
func (m *meaning) reduceScatter() {
	s := m.s
	for i := range s.Size {
		off, n := s.Send.Block(i)
		m.start(m.input(), off, n, off)
		if i == s.Rank {
			m.end(0, n, 0, s.Size, off)
		}
	}
}

// neighbors defines MPI-4.1 8.6. Of several blocks from one rank to another, the n-th
// that is sent is the n-th that is received.
func (m *meaning) neighbors() {
	s := m.s
	for i := range s.Dests {
		off, n := s.Send.Block(i)
		m.start(sched.In, off, n, off)
	}
	nth := map[int]int{}
	for j, from := range s.Sources {
		off, n := s.Recv.Block(j)
		peer := &m.shapes[from]
		seen := 0
		for i, to := range peer.Dests {
			if to != s.Rank {
				continue
			}
			if seen == nth[from] {
				at, _ := peer.Send.Block(i)
				m.end(off, n, from, from+1, at)
			}
			seen++
		}
		nth[from]++
	}
}
