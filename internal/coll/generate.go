package coll

import "github.com/muster-mpi/muster/internal/sched"

// Generated forms of the algorithms in which every rank communicates with every other:
// direct, ring and pairwise. Their operations are made while they run
// (sched.Generator), so that the schedule of a rank does not grow with the number of
// ranks. The messages are the same, in the same order; but no more receives are posted
// than the window holds, where the other form may post all at once.
//
// That cannot deadlock: the i-th send of a rank matches the i-th receive of its peer, and
// the receives of a rank are posted in order when those a window before have completed. If
// all messages below i complete, so does message i.

// generateAbove is the number of ranks up to which algorithms build all operations: as many
// use 160 KB a rank.
const generateAbove = 1024

// generateWindow is the number of operations that a rank holds. Half of them are receives,
// more of which would only fill the queues.
const generateWindow = 64

// longestPlan is the number of operations up to which an algorithm is chosen by its cost if
// there are more ranks than generateAbove and another has fewer: a rank would spend more
// time and memory on the schedule than it gains.
const longestPlan = 4096

// tooLong reports whether the schedule of some rank is too long for the choice by cost.
func (a *Algorithm) tooLong(s *Shape, params []int) bool {
	return s.Size > generateAbove && a.Ops != nil && a.Ops(s, params) > longestPlan
}

// perRank is the Ops of an algorithm with an operation for every rank, perNode of one with
// some for every node.
func perRank(s *Shape, _ []int) int { return s.Size }
func perNode(s *Shape, _ []int) int { return 2 * s.nodeCount() }

// perPart is the Ops of an allgather of groups that forwards each part of a node on its own,
// or copies it out.
func perPart(s *Shape, groups, form int) int {
	if groups == 1 && form == copied {
		return 0
	}
	return s.nodeCount() * max(groups, s.Nodes.most)
}

// Generates reports whether the algorithm generates its operations for a call. Then its
// receives wait for each other, and a rank cannot send in another order on its own
// (Algorithm.Aware).
func (a *Algorithm) Generates(s *Shape) bool { return a.Generate != nil && s.Size > generateAbove }

// copy returns a copy of the shape, which a generator keeps.
func (s *Shape) copy() *Shape {
	own := *s
	return &own
}

// some returns an operation, or one without an effect if its message or copy is empty.
func some(op sched.Op) sched.Op {
	if op.Src.Len == 0 && op.Dst.Len == 0 || op.Kind == sched.Copy && op.Src == op.Dst {
		none := sched.Nothing()
		none.Step = op.Step
		return none
	}
	return op
}

// countReceives returns the number of receives of an exchange with all ranks.
func (s *Shape) countReceives() (n int) {
	if s.Recv.Lens == nil {
		return (s.Size - 1) * min(s.Recv.Each, 1)
	}
	for r, length := range s.Recv.Lens {
		if length > 0 && r != s.Rank {
			n++
		}
	}
	return n
}

// generateDirect is directAllgather and directAlltoall: operation 0 copies the own block, or
// all blocks of an alltoall in place, and then each step has a send and a receive.
func generateDirect(b *sched.Builder, s *Shape, params []int, window int) {
	s = s.copy()
	n, k := s.Size, params[0]
	for window < 4*k {
		window *= 2
	}
	own := s.ownInput()
	src := func(int) sched.Span { return own }
	first := some(sched.Op{Kind: sched.Copy, Src: own, Dst: s.outBlock(s.Rank)})
	saved := sched.None // operation 0, if the others wait for it
	if s.Kind == Alltoall {
		src = s.sentTo
		first = some(sched.Op{Kind: sched.Copy, Src: s.sentTo(s.Rank), Dst: s.outBlock(s.Rank)})
		if s.InPlace {
			if s.Recv.Lens != nil { // the caller has lists for all ranks
				directAlltoall(b, s, params)
				return
			}
			all := b.Tmp(n * s.Recv.Each)
			src = func(to int) sched.Span { return all.At(to*s.Recv.Each, s.Recv.Each) }
			first = some(sched.Op{Kind: sched.Copy, Src: sched.Span{Buf: sched.Out, Len: all.Len}, Dst: all})
			saved = 0
		}
	}
	b.Generate(sched.Generator{Len: 2*n - 1, Receives: s.countReceives(), Window: window, At: func(i int) (sched.Op, sched.Waits) {
		if i == 0 {
			return first, sched.WaitEnds()
		}
		d := (i + 1) / 2 // distance of the peer
		step := int32((d - 1) / k)
		if i%2 == 0 {
			from := wrap(s.Rank-d, n)
			return some(sched.Op{Kind: sched.Recv, Peer: int32(from), Step: step, Dst: s.outBlock(from)}), sched.WaitEnds(saved)
		}
		to := wrap(s.Rank+d, n)
		before := sched.None
		if d > k {
			before = sched.ID(i - 2*k)
		}
		return some(sched.Op{Kind: sched.Send, Peer: int32(to), Step: step, Src: src(to)}), sched.WaitEnds(saved, before)
	}})
}

// generateRing is ringAllgather: after the copy of the own block, each step has a send and a
// receive upwards and, if there are two ways, a send and a receive downwards.
func generateRing(b *sched.Builder, s *Shape, params []int, window int) {
	s = s.copy()
	n, ways := s.Size, params[0]
	up := n - 1
	if ways == 2 {
		up = n / 2
	} else {
		ways = 1
	}
	each := 2 * ways // operations of a step
	copied := some(sched.Op{Kind: sched.Copy, Src: s.ownInput(), Dst: s.outBlock(s.Rank)})
	b.Generate(sched.Generator{Len: 1 + each*up, Receives: s.countReceives(), Window: window, At: func(i int) (sched.Op, sched.Waits) {
		if i == 0 {
			return copied, sched.WaitEnds()
		}
		step, which := (i-1)/each, (i-1)%each
		direction, steps := 1, up
		if which >= 2 {
			direction, steps = -1, n-1-up
		}
		// before returns the same operation some steps before.
		before := func(k int) sched.ID {
			if step < k {
				return sched.None
			}
			return sched.ID(i - k*each)
		}
		op := sched.Nothing()
		if op.Step = int32(step); step >= steps {
			return op, sched.WaitEnds()
		}
		if which%2 == 1 {
			op.Kind, op.Peer = sched.Recv, int32(wrap(s.Rank-direction, n))
			op.Src, op.Dst = sched.Span{}, s.outBlock(wrap(s.Rank-direction*(step+1), n))
			return some(op), sched.WaitEnds(before(receivesAhead)).AndPosted(before(1))
		}
		op.Kind, op.Peer = sched.Send, int32(wrap(s.Rank+direction, n))
		op.Src, op.Dst = s.ownInput(), sched.Span{}
		came := sched.None
		if step > 0 { // the receive of the step before
			op.Src, came = s.outBlock(wrap(s.Rank-direction*step, n)), sched.ID(i-each+1)
		}
		return some(op), sched.WaitEnds(came).AndPosted(before(1))
	}})
}

// generatePairwise is pairwiseAlltoall: after the copy of the own block, each step has a
// copy of the block to be sent, if the call is in place, a send and a receive.
func generatePairwise(b *sched.Builder, s *Shape, _ []int, window int) {
	s = s.copy()
	each := 2
	var area [2]sched.Span
	if s.InPlace {
		each = 3
		longest := s.Recv.Each
		for _, n := range s.Recv.Lens {
			longest = max(longest, n)
		}
		area[0], area[1] = b.Tmp(longest), b.Tmp(longest)
	}
	copied := some(sched.Op{Kind: sched.Copy, Src: s.sentTo(s.Rank), Dst: s.outBlock(s.Rank)})
	b.Generate(sched.Generator{Len: 1 + each*pairings(s.Size), Receives: s.countReceives(), Window: window, At: func(i int) (sched.Op, sched.Waits) {
		if i == 0 {
			return copied, sched.WaitEnds()
		}
		step, which := (i-1)/each, each-1-(i-1)%each // 0 is the receive, 1 the send, 2 the copy
		base := sched.ID(i - (i-1)%each)             // the first operation of the step
		peer := partner(s.Rank, step, s.Size)
		// at returns an operation of the step k before.
		at := func(k, which int) sched.ID {
			if step < k {
				return sched.None
			}
			return base + sched.ID(each-1-which-k*each)
		}
		if peer == s.Rank { // idle, but operations of later steps wait for those of earlier ones
			idle := sched.Nothing()
			idle.Step = int32(step)
			return idle, sched.WaitEnds(at(1, 0), at(1, 1))
		}
		src, saved := s.sentTo(peer), sched.None
		if s.InPlace {
			if src = area[step%2].At(0, src.Len); src.Len > 0 {
				saved = at(0, 2)
			}
		}
		switch which {
		case 2:
			return some(sched.Op{Kind: sched.Copy, Step: int32(step), Src: s.sentTo(peer), Dst: src}), sched.WaitEnds(at(2, 1))
		case 1:
			return some(sched.Op{Kind: sched.Send, Peer: int32(peer), Step: int32(step), Src: src}), sched.WaitEnds(saved, at(1, 1), at(1, 0))
		}
		return some(sched.Op{Kind: sched.Recv, Peer: int32(peer), Step: int32(step), Dst: s.outBlock(peer)}), sched.WaitEnds(saved, at(2, 0))
	}})
}
