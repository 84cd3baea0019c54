package coll

import "github.com/muster-mpi/muster/internal/sched"

// Collectives on intercommunicators (MPI-4.1 section 6.2.3): each group gets the data of
// the other. They are composed of phases, each a collective of the table among some of
// the ranks:
//
//	Barrier          one among all
//	Bcast            one among the root and the other group
//	Gather, Scatter  the same, where the root's own block is empty
//	Allgather        Gather in each group, exchange of the leaders, Bcast in each
//	                 group; or all ranks with all of the other group if lengths differ
//	Alltoall         all ranks with all of the other group
//	Reduce           Reduce in the other group, whose leader sends to the root
//	Allreduce        Reduce in each group, exchange of the leaders, Bcast
//	ReduceScatter    the same with Scatter
//
// The first rank of a group is its leader.

// Inter describes a call on an intercommunicator, as Shape describes one on an
// intracommunicator. The ranks of the graph are those of the first group, followed by
// those of the second.
type Inter struct {
	Kind  Kind
	Rank  int
	Sizes [2]int
	// Root is the root of rooted kinds, by its rank in the graph. The other ranks of the
	// root's group need not know it and pass -1: they have nothing to do.
	Root     int
	Elem     int
	Commutes bool
	// Bytes is the length of the data of Bcast, Reduce, Allreduce and
	// ReduceScatter, which is the same in both groups.
	Bytes int
	// Send are the blocks that a rank sends: Scatter at the root and Alltoall, one for
	// every rank of the other group; Gather and Allgather, its own block, as Each. Recv
	// are those that it receives: Gather at the root, Allgather and Alltoall, one from
	// every rank of the other group; Scatter, its own, as Each; ReduceScatter, one for
	// every rank of its own group. Irregular means that lengths differ; it is equal on
	// all ranks.
	Send, Recv Blocks
}

// Pick chooses the algorithm of a phase. All ranks of the phase must make the same
// choice.
type Pick func(*Shape) (*Algorithm, []int, error)

// BuildInter builds the graph of one rank; the Builder must have been reset for it. It
// reports errors with b.Fail.
func BuildInter(b *sched.Builder, s *Inter, pick Pick) {
	x := &interBuilder{b: b, s: s, pick: pick}
	x.mine, x.other = ranksFrom(0, s.Sizes[0]), ranksFrom(s.Sizes[0], s.Sizes[1])
	if s.Rank >= s.Sizes[0] {
		x.mine, x.other = x.other, x.mine
	}
	switch r := table[s.Kind]; {
	case !s.Kind.BetweenGroups():
		b.Fail("%s is not defined between two groups", s.Kind)
	case r.out == Nothing:
		x.phase(Shape{Kind: s.Kind}, ranksFrom(0, s.Sizes[0]+s.Sizes[1]), x.whole(), sched.None)
	case s.Kind.Rooted():
		if s.Root >= 0 {
			x.buildRooted()
		}
	case r.combines:
		x.reduceToAll()
	case r.in == AllBlocks:
		x.direct(&s.Send)
	default:
		x.allgather()
	}
}

type interBuilder struct {
	b           *sched.Builder
	s           *Inter
	pick        Pick
	mine, other []int // ranks of the own group and of the other one
	step        int   // first step of the phase
}

func ranksFrom(first, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = first + i
	}
	return out
}

// memory is the In and Out of a phase.
type memory struct{ in, out sched.Span }

// whole returns the memory of the call itself.
func (x *interBuilder) whole() memory {
	return memory{sched.Span{Buf: sched.In}, sched.Span{Buf: sched.Out}}
}

func (x *interBuilder) leads() bool { return x.s.Rank == x.mine[0] }

// buildRooted builds Bcast, Gather, Scatter and Reduce.
func (x *interBuilder) buildRooted() {
	givers := x.other
	if x.s.Rank != x.s.Root {
		givers = x.mine
	}
	if x.s.Kind == Reduce {
		x.reduceToRoot(givers)
		return
	}
	// The root is rank 0 of the phase, the others follow.
	ranks := append([]int{x.s.Root}, givers...)
	s := Shape{Kind: x.s.Kind, Bytes: x.s.Bytes, Elem: x.s.Elem}
	if x.s.Kind == Gather {
		s.Recv = x.withRoot(&x.s.Recv, x.s.Send.Each, len(givers))
	}
	if x.s.Kind == Scatter {
		s.Send = x.withRoot(&x.s.Send, x.s.Recv.Each, len(givers))
	}
	x.phase(s, ranks, x.whole(), sched.None)
}

// withRoot returns the blocks of the root, preceded by an empty one for the root itself;
// on other ranks, the length of their own block.
func (x *interBuilder) withRoot(blocks *Blocks, own, n int) Blocks {
	if x.s.Rank != x.s.Root {
		return Blocks{Each: own, Irregular: true}
	}
	all := Blocks{Lens: make([]int, n+1), Offs: make([]int, n+1), Irregular: true}
	for i := range n {
		all.Offs[i+1], all.Lens[i+1] = blocks.Block(i)
	}
	return all
}

func (x *interBuilder) reduceToRoot(givers []int) {
	if x.s.Rank == x.s.Root {
		x.b.Recv(givers[0], sched.Span{Buf: sched.Out, Len: x.s.Bytes})
		return
	}
	at := memory{in: sched.Span{Buf: sched.In}}
	if x.leads() {
		at.out = x.b.Tmp(x.s.Bytes)
	}
	done := x.phase(Shape{Kind: Reduce, Bytes: x.s.Bytes, Elem: x.s.Elem, Commutes: x.s.Commutes}, x.mine, at, sched.None)
	if x.leads() {
		x.b.Send(x.s.Root, at.out, done)
	}
}

// direct exchanges blocks between all ranks and all ranks of the other group.
func (x *interBuilder) direct(send *Blocks) {
	s := Shape{Kind: Neighbors, Elem: x.s.Elem, Sources: x.other, Dests: x.other, Send: *send, Recv: x.s.Recv}
	x.phase(s, ranksFrom(0, len(x.mine)+len(x.other)), x.whole(), sched.None)
}

func (x *interBuilder) allgather() {
	if x.s.Send.Irregular || x.s.Recv.Irregular {
		// A rank knows only the lengths in the other group, so no rank can gather.
		n := x.s.Send.Each
		same := Blocks{Lens: make([]int, len(x.other)), Offs: make([]int, len(x.other))}
		for i := range same.Lens {
			same.Lens[i] = n
		}
		x.direct(&same)
		return
	}
	given, got := x.s.Send.Each*len(x.mine), x.s.Recv.Each*len(x.other)
	at := memory{in: sched.Span{Buf: sched.In}}
	if x.leads() {
		at.out = x.b.Tmp(given)
	}
	s := Shape{Kind: Gather, Elem: x.s.Elem, Recv: Blocks{Each: x.s.Send.Each}}
	done := x.phase(s, x.mine, at, sched.None)
	out := sched.Span{Buf: sched.Out, Len: got}
	done = x.leadersExchange(at.out, out, done)
	x.phase(Shape{Kind: Bcast, Bytes: got, Elem: x.s.Elem}, x.mine, memory{out: out}, done)
}

// reduceToAll builds Allreduce and ReduceScatter.
func (x *interBuilder) reduceToAll() {
	at := memory{in: sched.Span{Buf: sched.In}}
	got := sched.Span{Buf: sched.Out, Len: x.s.Bytes}
	if x.leads() {
		at.out = x.b.Tmp(x.s.Bytes)
		if x.s.Kind == ReduceScatter {
			got = x.b.Tmp(x.s.Bytes)
		}
	}
	s := Shape{Kind: Reduce, Bytes: x.s.Bytes, Elem: x.s.Elem, Commutes: x.s.Commutes}
	done := x.phase(s, x.mine, at, sched.None)
	done = x.leadersExchange(at.out, got, done)
	if x.s.Kind == Allreduce {
		x.phase(Shape{Kind: Bcast, Bytes: x.s.Bytes, Elem: x.s.Elem}, x.mine, memory{out: got}, done)
		return
	}
	parts := x.s.Recv
	if parts.Lens != nil && !x.leads() {
		parts = Blocks{Each: parts.Lens[x.s.Rank-x.mine[0]], Irregular: true}
	}
	s = Shape{Kind: Scatter, Elem: x.s.Elem, Send: parts}
	x.phase(s, x.mine, memory{in: got, out: sched.Span{Buf: sched.Out}}, done)
}

// leadersExchange exchanges the data of the two leaders.
func (x *interBuilder) leadersExchange(src, dst sched.Span, after sched.ID) sched.ID {
	if !x.leads() {
		return after
	}
	x.b.Step(x.step)
	x.step++
	done := after
	if src.Len > 0 {
		x.b.Send(x.other[0], src, after)
	}
	if dst.Len > 0 {
		done = x.b.Recv(x.other[0], dst, after) // In and Out may be the same memory
	}
	return done
}

// phase adds the graph of a collective among some ranks, which begins when after has
// completed, and returns an ID that completes when it ends on this rank.
func (x *interBuilder) phase(s Shape, ranks []int, at memory, after sched.ID) sched.ID {
	s.Size = len(ranks)
	for i, r := range ranks {
		if r == x.s.Rank {
			s.Rank = i
		}
	}
	row, params, err := x.pick(&s)
	if err != nil {
		x.b.Fail("%s among %d ranks, a phase of %s between groups: %w", s.Kind, s.Size, x.s.Kind, err)
		return after
	}
	var b sched.Builder
	g, err := row.Graph(&b, &s, params)
	if err == nil {
		g, err = g.Expand()
	}
	if err != nil {
		x.b.Fail("a phase of %s between groups: %w", x.s.Kind, err)
		return after
	}
	return x.add(g, ranks, at, after)
}

// add copies a graph into the one being built.
func (x *interBuilder) add(g *sched.Graph, ranks []int, at memory, after sched.ID) sched.ID {
	tmp := x.b.Tmp(g.Tmp)
	move := func(s sched.Span) sched.Span {
		base := tmp
		switch s.Buf {
		case sched.In:
			base = at.in
		case sched.Out:
			base = at.out
		}
		return base.At(s.Off, s.Len)
	}
	waits := make([][]sched.ID, len(g.Ops))
	var ends []sched.ID
	last := x.step
	for i := range g.Ops {
		op := &g.Ops[i]
		if waits[i] == nil {
			waits[i] = []sched.ID{after}
		}
		x.b.Step(x.step + int(op.Step))
		last = max(last, x.step+int(op.Step)+1)
		var id sched.ID
		switch op.Kind {
		case sched.Send:
			id = x.b.Send(ranks[op.Peer], move(op.Src), waits[i]...)
		case sched.Recv:
			id = x.b.Recv(ranks[op.Peer], move(op.Dst), waits[i]...)
		case sched.Copy:
			id = x.b.Copy(move(op.Dst), move(op.Src), waits[i]...)
		case sched.Reduce:
			id = x.b.Reduce(move(op.Dst), move(op.Src), waits[i]...)
		}
		for _, j := range g.Successors(i) {
			waits[j] = append(waits[j], id)
		}
		if len(g.Successors(i)) == 0 {
			ends = append(ends, id)
		}
	}
	x.step = last
	if len(ends) == 0 {
		return after
	}
	return x.b.Join(ends...)
}
