package sched

import (
	"fmt"
	"slices"
)

// ID identifies an operation while its graph is built. None identifies no
// operation, so that algorithms need no special case for the first round.
type ID int32

const None ID = -1

// Builder builds a Graph. Call Reset before each graph; a Builder may be reused.
// The first error is kept and returned by Graph.
type Builder struct {
	rank, size  int
	step, begin int32
	among       int // ranks of a restriction, and the i-th of them; see AmongAll
	at          func(i int) int
	stream      uint16
	ports       int
	ops         []Op
	deps        []int32 // dependencies of all operations, in operation order
	from        []int32 // from[i] is the index in deps of operation i's first dependency
	tmp         int
	shared      int
	generator   *Generator
	err         error
}

// Reset starts a new graph for one rank.
func (b *Builder) Reset(rank, size int) {
	*b = Builder{rank: rank, size: size, ops: b.ops[:0], deps: b.deps[:0], from: b.from[:0]}
}

// Restrict restricts the following operations to a subset of the ranks: a peer is then
// an index into ranks, and steps are counted from step. A nil list ends the
// restriction. An algorithm for all ranks can thus serve a subset.
func (b *Builder) Restrict(ranks []int, step int) {
	if ranks == nil {
		b.RestrictAll(0, nil, step)
		return
	}
	b.RestrictAll(len(ranks), func(i int) int { return ranks[i] }, step)
}

// RestrictAll is Restrict with a function for the i-th of n ranks, instead of a list.
func (b *Builder) RestrictAll(n int, at func(i int) int, step int) {
	b.among, b.at, b.begin = n, at, int32(step)
	b.step = b.begin
}

// Step sets the round of the following operations.
func (b *Builder) Step(n int) { b.step = b.begin + int32(n) }

// Stream sets the stream of the following messages. The initial stream is 0.
func (b *Builder) Stream(n int) { b.stream = uint16(n % Streams) }

// Streams is the number of streams.
const Streams = 1 << 14

// Ports limits how many unordered sends of the graph are under way at a time.
func (b *Builder) Ports(k int) { b.ports = max(k, 1) }

// Tmp allocates n bytes of scratch memory.
func (b *Builder) Tmp(n int) Span {
	s := Span{Tmp, b.tmp, n}
	b.tmp += (n + 63) &^ 63 // whole cache lines
	return s
}

// AllocShared allocates n bytes that the ranks of a node share. All of them must make the
// same calls, so that they get the same spans.
func (b *Builder) AllocShared(n int) Span {
	s := Span{Shared, b.shared, n}
	b.shared += (n + 63) &^ 63 // ranks that write adjacent spans do not share a cache line
	return s
}

// Send adds a send of src to a rank. It is posted once all of after have completed.
func (b *Builder) Send(peer int, src Span, after ...ID) ID {
	return b.add(Op{Kind: Send, Peer: int32(peer), Src: src}, after)
}

// SendUnordered adds a send that may be posted before or after other unordered
// sends, in the order in which their peers arrive. Validate requires that the
// matching receive does not depend on any message.
func (b *Builder) SendUnordered(peer int, src Span, after ...ID) ID {
	b.ports = max(b.ports, 1)
	return b.add(Op{Kind: Send, Unordered: true, Peer: int32(peer), Src: src}, after)
}

// Recv adds a receive from a rank into dst. It is posted once all of after have
// completed; after may be empty unless an earlier operation uses dst.
func (b *Builder) Recv(peer int, dst Span, after ...ID) ID {
	return b.add(Op{Kind: Recv, Peer: int32(peer), Dst: dst}, after)
}

// HandOver adds a message that hands a span of Shared over to a rank of the same node,
// which takes it over.
func (b *Builder) HandOver(peer int, s Span, after ...ID) ID {
	return b.add(Op{Kind: Send, HandOver: true, Peer: int32(peer), Src: s}, after)
}

// TakeOver adds the receive of the same span that a rank of the node hands over.
func (b *Builder) TakeOver(peer int, s Span, after ...ID) ID {
	return b.add(Op{Kind: Recv, HandOver: true, Peer: int32(peer), Dst: s}, after)
}

// Copy adds a copy of src to dst. If the spans are equal or empty, it adds no copy
// and returns Join(after...).
func (b *Builder) Copy(dst, src Span, after ...ID) ID {
	if dst == src || src.Len == 0 && dst.Len == 0 {
		return b.Join(after...)
	}
	return b.add(Op{Kind: Copy, Src: src, Dst: dst}, after)
}

// Reduce adds a reduction that sets dst to src ∘ dst.
func (b *Builder) Reduce(dst, src Span, after ...ID) ID {
	return b.add(Op{Kind: Reduce, Src: src, Dst: dst}, after)
}

// Join returns one ID that completes when all of after have. It adds an empty copy
// if there is more than one.
func (b *Builder) Join(after ...ID) ID {
	one := None
	for _, id := range after {
		switch {
		case id == None || id == one:
		case one == None:
			one = id
		default:
			return b.add(Op{Kind: Copy, Src: Span{Buf: Tmp}, Dst: Span{Buf: Tmp}}, after)
		}
	}
	return one
}

// Fail records why no graph can be built. Only the first reason is kept.
func (b *Builder) Fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *Builder) add(op Op, after []ID) ID {
	op.Step = b.step
	if op.Kind <= Recv {
		op.Stream = b.stream
	}
	i := ID(len(b.ops))
	if op.Kind <= Recv && b.at != nil {
		if op.Peer < 0 || int(op.Peer) >= b.among {
			b.Fail("operation %d: %s with rank %d of a part of %d ranks, by rank %d", i, op.Kind, op.Peer, b.among, b.rank)
			return i
		}
		op.Peer = int32(b.at(int(op.Peer)))
	}
	switch {
	case op.Kind <= Recv && (op.Peer < 0 || int(op.Peer) >= b.size || int(op.Peer) == b.rank):
		b.Fail("operation %d: %s with rank %d of %d, by rank %d", i, op.Kind, op.Peer, b.size, b.rank)
	case op.Kind >= Copy && op.Src.Len != op.Dst.Len:
		b.Fail("operation %d: %s of %d bytes to %d", i, op.Kind, op.Src.Len, op.Dst.Len)
	case op.Kind != Send && op.Dst.Buf == In:
		b.Fail("operation %d: %s writes into the input", i, op.Kind)
	case op.Src.Off < 0 || op.Src.Len < 0 || op.Dst.Off < 0 || op.Dst.Len < 0:
		b.Fail("operation %d: %s with a negative offset or length", i, op.Kind)
	case op.HandOver && (op.Kind > Recv || op.Unordered || op.data().Buf != Shared):
		b.Fail("operation %d: only an ordered message of a shared span can hand it over", i)
	}
	b.from = append(b.from, int32(len(b.deps)))
	for _, id := range after {
		if id == None {
			continue
		}
		if id < 0 || id >= i {
			b.Fail("operation %d waits for operation %d, which is not before it", i, id)
			continue
		}
		if !slices.Contains(b.deps[b.from[i]:], int32(id)) {
			b.deps = append(b.deps, int32(id))
		}
	}
	b.ops = append(b.ops, op)
	return i
}

// Graph returns the graph. It shares no memory with the Builder.
func (b *Builder) Graph() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.generator != nil {
		if len(b.ops) > 0 {
			return nil, fmt.Errorf("a generated graph with %d other operations", len(b.ops))
		}
		return &Graph{Rank: b.rank, Size: b.size, Tmp: b.tmp, Shared: b.shared, generator: b.generator}, nil
	}
	n := len(b.ops)
	g := &Graph{Rank: b.rank, Size: b.size, Tmp: b.tmp, Shared: b.shared, Ports: b.ports, Ops: slices.Clone(b.ops),
		first: make([]int32, n+1), after: make([]int32, len(b.deps)), nextPost: make([]int32, n), need: make([]int32, n)}
	for _, d := range b.deps {
		g.first[d+1]++
	}
	for i := range n {
		g.first[i+1] += g.first[i]
	}
	at := slices.Clone(g.first[:n])
	for i := range n {
		end := len(b.deps)
		if i+1 < n {
			end = int(b.from[i+1])
		}
		for _, d := range b.deps[b.from[i]:end] {
			g.after[at[d]] = int32(i)
			at[d]++
		}
		g.need[i] = int32(end) - b.from[i]
	}
	b.linkPosts(g)
	return g, nil
}

// linkPosts sets g.nextPost: sends to one peer, and receives from one peer, are
// posted in order within a stream.
func (b *Builder) linkPosts(g *Graph) {
	last := map[int64]int{}
	for i := range g.Ops {
		g.nextPost[i] = -1
		if op := &g.Ops[i]; op.Kind <= Recv {
			k := int64(op.Stream)<<33 | int64(op.Kind)<<32 | int64(op.Peer)
			if before, ok := last[k]; ok {
				g.nextPost[before] = int32(i)
				g.need[i]++
			}
			last[k] = i
		}
	}
}
