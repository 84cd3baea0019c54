package coll

import (
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// Arrival-aware alltoall and allgather among node leaders (T2 6.4.4, 6.4.5), in three
// phases:
//
//	1  the ranks of a node send their blocks to its leader
//	2  the leaders exchange the blocks between their nodes, arrived ones first
//	3  data from a node is forwarded to the ranks of this node at once
//
// The thesis has a flag for each leader in phase 3, so that data from one is not delayed
// by another. Here each node has its own stream: messages of different streams may
// overtake each other (sched.Op). They use the shared memory of the node, like all
// messages within it. In pap_shm_segment.go they are hand-overs of a buffer that the node
// shares, as in the thesis.
//
// Nodes may have different numbers of ranks, in any order. A message holds blocks in the
// order of the nodes' lists, which are the same on all ranks; offsets in Out may differ.

// teams holds the ranks of each node.
type teams [][]int

func (s *Shape) teams() teams {
	if s.Nodes != nil {
		return s.Nodes.lists()
	}
	all := make([]int, s.Size)
	for i := range all {
		all[i] = i
	}
	return teams{all}
}

// teamOf returns the team of a rank.
func (t teams) teamOf(rank int) int {
	for i, ranks := range t {
		for _, r := range ranks {
			if r == rank {
				return i
			}
		}
	}
	return -1
}

// leader returns the first rank of a team, or the root if it is in the team. A root of
// -1 is in none.
func (t teams) leader(team, root int) int {
	for _, r := range t[team] {
		if r == root {
			return r
		}
	}
	return t[team][0]
}

// handOn returns the stream in which a team's data is forwarded; the first two phases
// use stream 0.
func handOn(team int) int { return 1 + team%(sched.Streams-1) }

// landing is the destination of a message with the blocks of some ranks: Out if they are
// contiguous there, otherwise scratch.
type landing struct {
	at     sched.Span
	blocks []sched.Span
	inOut  bool
	own    int // index of the rank's own block if it is in place, else -1
}

func (f *flow) land(s *Shape, ranks []int) landing {
	l := landing{inOut: true, own: -1}
	for i, r := range ranks {
		if r == s.Rank && s.InPlace {
			l.own = i
		}
		block := s.outBlock(r)
		l.blocks = append(l.blocks, block)
		switch {
		case block.Len == 0:
		case l.at.Len == 0:
			l.at = block
		default:
			l.inOut = l.inOut && follows(l.at, block)
			l.at.Len += block.Len
		}
	}
	if !l.inOut {
		l.at = f.Tmp(l.at.Len)
	}
	return l
}

// block returns the span of block i in the message.
func (l *landing) block(i int) sched.Span {
	off := 0
	for _, b := range l.blocks[:i] {
		off += b.Len
	}
	return l.at.At(off, l.blocks[i].Len)
}

// spread copies the blocks to their final offsets, if they are not there.
func (f *flow) spread(l *landing, from sched.Span) {
	if l.inOut && from == l.at {
		return
	}
	off := 0
	for i, to := range l.blocks {
		if i != l.own {
			f.copy(to, from.At(off, to.Len))
		}
		off += to.Len
	}
}

// sendUnordered adds an unordered send.
func (f *flow) sendUnordered(peer int, src sched.Span) {
	if src.Len == 0 {
		return
	}
	f.after = f.reads(f.after[:0], src)
	f.read(src, f.SendUnordered(peer, src, f.after...))
}

// takeAll builds phase 3 of a rank that is not a leader.
func (f *flow) takeAll(s *Shape, t teams, mine, leader int) {
	f.Step(2)
	for i := range t {
		team := wrap(mine-i, len(t))
		l := f.land(s, s.blocksFrom(t[team]))
		f.Stream(handOn(team))
		f.recv(leader, l.at)
		f.spread(&l, l.at)
	}
}

// blocksFrom returns the ranks of a team whose blocks the leader forwards to this rank: in
// an alltoall not its own, which stays on the rank.
func (s *Shape) blocksFrom(team []int) []int {
	if s.Kind != Alltoall {
		return team
	}
	return except(team, s.Rank)
}

// except returns ranks without one of them.
func except(ranks []int, rank int) []int {
	return slices.DeleteFunc(slices.Clone(ranks), func(r int) bool { return r == rank })
}

func papShmAllgather(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f, t := &flow{Builder: b}, s.teams()
	mine := t.teamOf(s.Rank)
	leader := t.leader(mine, -1)
	if s.Rank != leader {
		f.send(leader, s.ownInput())
		f.takeAll(s, t, mine, leader)
		return
	}
	lands := make([]landing, len(t))
	for i := range t {
		team := wrap(mine-i, len(t))
		lands[team] = f.land(s, t[team])
		if f.Step(1); team != mine {
			f.recv(t.leader(team, -1), lands[team].at)
		}
	}
	f.Step(0)
	for i, rank := range t[mine] {
		if rank == s.Rank {
			f.copy(lands[mine].block(i), s.ownInput())
		} else {
			f.recv(rank, lands[mine].block(i))
		}
	}
	f.Step(1)
	for i := 1; i < len(t); i++ {
		f.sendUnordered(t.leader(wrap(mine+i, len(t)), -1), lands[mine].at)
	}
	f.Step(2)
	for i := range t {
		team := wrap(mine-i, len(t))
		l := &lands[team]
		f.Stream(handOn(team))
		for _, rank := range t[mine] {
			if rank != s.Rank {
				f.send(rank, l.at)
			}
		}
		f.spread(l, l.at)
	}
}

// papShmAlltoall packs the blocks for another node by destination, so that the blocks
// to forward are contiguous. A rank copies the block for itself.
func papShmAlltoall(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f, t := &flow{Builder: b}, s.teams()
	mine := t.teamOf(s.Rank)
	leader := t.leader(mine, -1)
	each := s.Recv.Each
	if s.Rank != leader {
		f.send(leader, s.input(0, s.Size*each))
		f.copy(s.outBlock(s.Rank), s.sentTo(s.Rank))
		f.takeAll(s, t, mine, leader)
		return
	}
	team := t[mine]
	came := make([]sched.Span, len(t)) // by node: for each rank here, the blocks from that node
	for i := 1; i < len(t); i++ {
		from := wrap(mine-i, len(t))
		came[from] = f.Tmp(len(t[from]) * len(team) * each)
		f.Step(1)
		f.recv(t.leader(from, -1), came[from])
	}
	f.Step(0)
	inputs := make([]sched.Span, len(team)) // by local rank
	for i, rank := range team {
		inputs[i] = s.input(0, s.Size*each)
		if rank != s.Rank || s.InPlace { // in place it is overwritten by received blocks
			inputs[i] = f.Tmp(s.Size * each)
		}
		if rank != s.Rank {
			f.recv(rank, inputs[i])
		} else {
			f.copy(inputs[i], s.input(0, s.Size*each))
		}
	}
	pack := func(to []int) sched.Span {
		return f.packBlocks(team, to, inputs, f.Tmp(len(to)*len(team)*each), each)
	}
	for i := 1; i < len(t); i++ {
		f.Step(1)
		to := wrap(mine+i, len(t))
		f.sendUnordered(t.leader(to, -1), pack(t[to]))
	}
	came[mine] = pack(team)
	f.copy(s.outBlock(s.Rank), s.sentTo(s.Rank))
	f.Step(2)
	for i := range t {
		from := wrap(mine-i, len(t))
		f.Stream(handOn(from))
		off := 0
		for _, rank := range team {
			sources := except(t[from], rank)
			part := came[from].At(off, len(sources)*each)
			if off += part.Len; rank != s.Rank {
				f.send(rank, part)
				continue
			}
			for k, src := range sources {
				f.copy(s.outBlock(src), part.At(k*each, each))
			}
		}
	}
}

// packBlocks copies the blocks of the ranks of a team for those of another, or of the same,
// to packed: by destination, and without blocks of a rank for itself. It returns packed.
func (f *flow) packBlocks(team, to []int, inputs []sched.Span, packed sched.Span, each int) sched.Span {
	off := 0
	for _, dst := range to {
		for j, src := range team {
			if src != dst {
				f.copy(packed.At(off, each), inputs[j].At(dst*each, each))
				off += each
			}
		}
	}
	return packed
}
