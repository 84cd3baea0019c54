package sched

import (
	"fmt"
	"slices"
)

// ID names an operation while its graph is built. None stands for one that is
// not there, so that builders need no special cases for the first round.
type ID int32

const None ID = -1

// Builder makes a Graph. The zero Builder is ready for use; Reset lets one serve
// again. Errors are kept until Graph.
type Builder struct {
	rank, size  int
	step, begin int32
	ranks       []int // see Among
	stream      uint16
	ports       int
	ops         []Op
	deps        []int32 // all dependencies, operation by operation
	from        []int32 // where those of operation i begin
	tmp         int
	err         error
}

// Reset begins the graph of one rank.
func (b *Builder) Reset(rank, size int) {
	*b = Builder{rank: rank, size: size, ops: b.ops[:0], deps: b.deps[:0], from: b.from[:0]}
}

// Among makes the operations to come those of a part of the ranks: a peer is then
// called by its place in the list, and steps are counted from step on. With nil,
// ranks have their own numbers again. So an algorithm for all ranks serves a few.
func (b *Builder) Among(ranks []int, step int) {
	b.ranks, b.begin = ranks, int32(step)
	b.step = b.begin
}

// Step sets the round that the operations to come belong to.
func (b *Builder) Step(n int) { b.step = b.begin + int32(n) }

// Stream sets the stream that the messages to come belong to, at first 0.
func (b *Builder) Stream(n int) { b.stream = uint16(n % Streams) }

// Streams is how many streams there are.
const Streams = 1 << 14

// Ports sets how many loose sends are under way at a time, for the whole graph.
func (b *Builder) Ports(k int) { b.ports = max(k, 1) }

// Tmp takes n bytes of scratch.
func (b *Builder) Tmp(n int) Span {
	s := Span{Tmp, b.tmp, n}
	b.tmp += (n + 63) &^ 63 // lines of their own
	return s
}

// Send sends src to a rank once all of after have ended.
func (b *Builder) Send(peer int, src Span, after ...ID) ID {
	return b.add(Op{Kind: Send, Peer: int32(peer), Src: src}, after)
}

// SendUnordered is Send to a peer that may be served before or after others, as they
// arrive. The receive there must wait for no message, or Validate refuses it.
func (b *Builder) SendUnordered(peer int, src Span, after ...ID) ID {
	b.ports = max(b.ports, 1)
	return b.add(Op{Kind: Send, Unordered: true, Peer: int32(peer), Src: src}, after)
}

// Recv receives from a rank into dst. It is posted once all of after have ended:
// nothing, unless dst is in use before.
func (b *Builder) Recv(peer int, dst Span, after ...ID) ID {
	return b.add(Op{Kind: Recv, Peer: int32(peer), Dst: dst}, after)
}

// Copy copies. Equal spans and empty ones are left out: the ID is then that of
// Join(after...).
func (b *Builder) Copy(dst, src Span, after ...ID) ID {
	if dst == src || src.Len == 0 && dst.Len == 0 {
		return b.Join(after...)
	}
	return b.add(Op{Kind: Copy, Src: src, Dst: dst}, after)
}

// Reduce sets dst to src ∘ dst.
func (b *Builder) Reduce(dst, src Span, after ...ID) ID {
	return b.add(Op{Kind: Reduce, Src: src, Dst: dst}, after)
}

// Join gives one ID for several: an empty copy if there is more than one.
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

// Fail says why no graph can be made. The first reason is kept.
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
	if op.Kind <= Recv && b.ranks != nil {
		if op.Peer < 0 || int(op.Peer) >= len(b.ranks) {
			b.Fail("operation %d: %s with rank %d of a part of %d ranks, by rank %d", i, op.Kind, op.Peer, len(b.ranks), b.rank)
			return i
		}
		op.Peer = int32(b.ranks[op.Peer])
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

// Graph gives what was built. The graph does not share memory with the builder.
func (b *Builder) Graph() (*Graph, error) {
	if b.err != nil {
		return nil, b.err
	}
	n := len(b.ops)
	g := &Graph{Rank: b.rank, Size: b.size, Tmp: b.tmp, Ports: b.ports, Ops: slices.Clone(b.ops),
		first: make([]int32, n+1), after: make([]int32, len(b.deps)), turn: make([]int32, n), need: make([]int32, n)}
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
	b.turns(g)
	return g, nil
}

// turns links sends to one peer, and receives from one peer, stream by stream in
// their order.
func (b *Builder) turns(g *Graph) {
	last := map[int64]int{}
	for i := range g.Ops {
		g.turn[i] = -1
		if op := &g.Ops[i]; op.Kind <= Recv {
			k := int64(op.Stream)<<33 | int64(op.Kind)<<32 | int64(op.Peer)
			if before, ok := last[k]; ok {
				g.turn[before] = int32(i)
				g.need[i]++
			}
			last[k] = i
		}
	}
}
