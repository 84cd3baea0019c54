package coll

import (
	"slices"
	"sort"

	"github.com/muster-mpi/muster/internal/sched"
)

// A flow builds a graph from a sequential program: operations follow each other as if
// each completed before the next began. For every byte the flow tracks its last writer
// and the readers since then, and makes an operation wait for exactly those that it
// would race with. The order of calls thus defines the meaning of an algorithm, and a
// receive into unused memory is posted at once, wherever it is in the program.
//
// Empty messages are omitted: sender and receiver know the same length. Barriers, which
// consist only of empty messages, use the Builder.

type flow struct {
	*sched.Builder
	mem   [sched.Bufs][]stretch // by sched.Buf, sorted by offset, disjoint
	after []sched.ID
}

// stretch is a range of bytes with the same writer and readers.
type stretch struct {
	off, end int
	writer   sched.ID
	readers  []sched.ID // since then; never modified in place
}

// send sends src, after the operations in held as well.
func (f *flow) send(peer int, src sched.Span, held ...sched.ID) sched.ID {
	if src.Len == 0 {
		return sched.None
	}
	f.after = f.reads(append(f.after[:0], held...), src)
	id := f.Send(peer, src, f.after...)
	f.read(src, id)
	return id
}

// sendToAll sends src to several ranks. All wait for the same operations, and are recorded
// together.
func (f *flow) sendToAll(peers []int, src sched.Span) {
	if src.Len == 0 || len(peers) == 0 {
		return
	}
	f.after = f.reads(f.after[:0], src)
	ids := make([]sched.ID, len(peers))
	for i, peer := range peers {
		ids[i] = f.Send(peer, src, f.after...)
	}
	f.read(src, ids...)
}

// recv receives into dst, after the operations in held as well.
func (f *flow) recv(peer int, dst sched.Span, held ...sched.ID) sched.ID {
	if dst.Len == 0 {
		return sched.None
	}
	f.after = f.writes(append(f.after[:0], held...), dst)
	id := f.Recv(peer, dst, f.after...)
	f.wrote(dst, id)
	return id
}

// handOver hands a span of the node's shared buffer over, after the operations in held as
// well. Unlike a message it may be empty: it also notifies that the rank has begun.
func (f *flow) handOver(peer int, s sched.Span, held ...sched.ID) {
	f.after = f.reads(append(f.after[:0], held...), s)
	f.read(s, f.HandOver(peer, s, f.after...))
}

// takeOver takes a span over.
func (f *flow) takeOver(peer int, s sched.Span) sched.ID {
	f.after = f.writes(f.after[:0], s)
	id := f.TakeOver(peer, s, f.after...)
	f.wrote(s, id)
	return id
}

func (f *flow) copy(dst, src sched.Span) {
	if dst == src || src.Len == 0 && dst.Len == 0 {
		return
	}
	f.after = f.writes(f.reads(f.after[:0], src), dst)
	id := f.Copy(dst, src, f.after...)
	f.read(src, id)
	f.wrote(dst, id)
}

// reduce sets dst to src ∘ dst.
func (f *flow) reduce(dst, src sched.Span) {
	if src.Len == 0 && dst.Len == 0 {
		return
	}
	f.after = f.writes(f.reads(f.after[:0], src), dst)
	id := f.Reduce(dst, src, f.after...)
	f.read(src, id)
	f.wrote(dst, id)
}

// findOverlap returns the range of stretches that overlap s.
func (f *flow) findOverlap(s sched.Span) (i, j int) {
	list := f.mem[s.Buf]
	i = sort.Search(len(list), func(i int) bool { return list[i].end > s.Off })
	for j = i; j < len(list) && list[j].off < s.Off+s.Len; j++ {
	}
	return i, j
}

// reads appends the operations that must complete before s can be read.
func (f *flow) reads(after []sched.ID, s sched.Span) []sched.ID {
	i, j := f.findOverlap(s)
	for _, p := range f.mem[s.Buf][i:j] {
		after = append(after, p.writer)
	}
	return after
}

// writes appends the operations that must complete before s can be written: the
// readers, which wait for the writer, or the writer.
func (f *flow) writes(after []sched.ID, s sched.Span) []sched.ID {
	i, j := f.findOverlap(s)
	for _, p := range f.mem[s.Buf][i:j] {
		if len(p.readers) > 0 {
			after = append(after, p.readers...)
		} else {
			after = append(after, p.writer)
		}
	}
	return after
}

// wrote records a new writer of s.
func (f *flow) wrote(s sched.Span, id sched.ID) {
	f.replace(s, func(parts []stretch) []stretch {
		return append(parts, stretch{off: s.Off, end: s.Off + s.Len, writer: id})
	}, nil)
}

// read records readers of s.
func (f *flow) read(s sched.Span, ids ...sched.ID) {
	at := s.Off
	fill := func(parts []stretch, to int) []stretch {
		if at < to {
			parts = append(parts, stretch{off: at, end: to, writer: sched.None, readers: slices.Clone(ids)})
			at = to
		}
		return parts
	}
	f.replace(s, func(parts []stretch) []stretch { return fill(parts, s.Off+s.Len) },
		func(parts []stretch, p stretch) []stretch {
			parts = fill(parts, p.off)
			at = p.end
			p.readers = append(slices.Clip(p.readers), ids...)
			return append(parts, p)
		})
}

// replace splits the stretches at both ends of s and replaces those inside: keep, if
// not nil, is called for each of them, and last appends to the result.
func (f *flow) replace(s sched.Span, last func([]stretch) []stretch, keep func([]stretch, stretch) []stretch) {
	i, j := f.findOverlap(s)
	list, end := f.mem[s.Buf], s.Off+s.Len
	var parts []stretch
	for _, p := range list[i:j] {
		if p.off < s.Off {
			parts = append(parts, stretch{p.off, s.Off, p.writer, p.readers})
		}
		if keep != nil {
			parts = keep(parts, stretch{max(p.off, s.Off), min(p.end, end), p.writer, p.readers})
		}
	}
	parts = last(parts)
	if i < j && list[j-1].end > end {
		p := list[j-1]
		parts = append(parts, stretch{end, p.end, p.writer, p.readers})
	}
	f.mem[s.Buf] = slices.Replace(list, i, j, parts...)
}
