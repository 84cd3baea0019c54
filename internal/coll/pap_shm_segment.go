package coll

import "github.com/muster-mpi/muster/internal/sched"

// The algorithms of pap_shm.go in the buffer that the ranks of a node share (T2 6.4.4,
// 6.4.5): ranks copy their blocks in, leaders send from it and receive into it, and hand
// the data of each node over as it arrives, so that every rank copies out what is there.

// handOut hands a team's data over to a rank of this node. own means that the data is of
// this node: then the hand-over also reports that all ranks in begun have begun.
func (f *flow) handOut(rank int, data sched.Span, own bool, begun []sched.ID) {
	switch {
	case own:
		f.handOver(rank, data, begun...)
	case data.Len > 0:
		f.handOver(rank, data)
	}
}

// takeOut takes over what handOut hands over.
func (f *flow) takeOut(leader int, data sched.Span, own bool) {
	if own || data.Len > 0 {
		f.takeOver(leader, data)
	}
}

func papShmAllgatherInSegment(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f, t := &flow{Builder: b}, s.teams()
	mine := t.teamOf(s.Rank)
	leader := t.leader(mine, -1)
	rows := make([]sched.Span, len(t)) // by team: its blocks
	for i, team := range t {
		rows[i] = b.AllocShared(total(spansOf(team, s.outBlock)))
	}
	blocks := cutRow(rows[mine], spansOf(t[mine], s.outBlock))
	var begun []sched.ID
	if s.Rank == leader {
		f.Step(1)
		for i := 1; i < len(t); i++ {
			from := wrap(mine-i, len(t))
			f.recv(t.leader(from, -1), rows[from])
		}
	}
	f.Step(0)
	for i, rank := range t[mine] {
		switch {
		case rank == s.Rank:
			f.copy(blocks[i], s.ownInput())
			if rank != leader {
				f.handOver(leader, blocks[i])
			}
		case s.Rank == leader:
			begun = append(begun, f.takeOver(rank, blocks[i]))
		}
	}
	if s.Rank == leader {
		f.Step(1)
		for i := 1; i < len(t); i++ {
			f.sendUnordered(t.leader(wrap(mine+i, len(t)), -1), rows[mine])
		}
	}
	f.Step(2)
	for i := range t {
		team := wrap(mine-i, len(t))
		f.Stream(handOn(team))
		if s.Rank != leader {
			f.takeOut(leader, rows[team], team == mine)
		} else {
			for _, rank := range t[mine] {
				if rank != s.Rank {
					f.handOut(rank, rows[team], team == mine, begun)
				}
			}
		}
		f.copyOut(s, t[team], rows[team])
	}
}

// cutRow divides a row into spans of the lengths of others.
func cutRow(row sched.Span, like []sched.Span) []sched.Span {
	parts, off := make([]sched.Span, len(like)), 0
	for i, s := range like {
		parts[i] = row.At(off, s.Len)
		off += s.Len
	}
	return parts
}

// copyOut copies the blocks of some ranks to their final offsets. In place, the rank's own
// block is there.
func (f *flow) copyOut(s *Shape, ranks []int, row sched.Span) {
	var dst, src []sched.Span
	for i, at := range cutRow(row, spansOf(ranks, s.outBlock)) {
		if at.Len > 0 && !(s.InPlace && ranks[i] == s.Rank) {
			dst, src = append(dst, s.outBlock(ranks[i])), append(src, at)
		}
	}
	f.copyRuns(dst, src)
}

// papShmAlltoallInSegment lets the leader pack the blocks for another node by destination,
// as papShmAlltoall does, from the inputs in the shared buffer.
func papShmAlltoallInSegment(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f, t := &flow{Builder: b}, s.teams()
	mine := t.teamOf(s.Rank)
	leader, team, each := t.leader(mine, -1), t[mine], s.Recv.Each
	inputs := make([]sched.Span, len(team)) // by local rank
	for i := range team {
		inputs[i] = b.AllocShared(s.Size * each)
	}
	came := make([]sched.Span, len(t)) // by node: for each rank here, the blocks from that node
	for i := range t {
		came[i] = b.AllocShared(len(t[i]) * len(team) * each)
	}
	var begun []sched.ID
	if s.Rank == leader {
		f.Step(1)
		for i := 1; i < len(t); i++ {
			from := wrap(mine-i, len(t))
			f.recv(t.leader(from, -1), came[from])
		}
	}
	f.Step(0)
	for i, rank := range team {
		switch {
		case rank != s.Rank:
			if s.Rank == leader {
				begun = append(begun, f.takeOver(rank, inputs[i]))
			}
		case rank != leader:
			f.copy(inputs[i], s.input(0, s.Size*each))
			f.handOver(leader, inputs[i])
		case s.InPlace: // the input is overwritten by received blocks
			f.copy(inputs[i], s.input(0, s.Size*each))
		default:
			inputs[i] = s.input(0, s.Size*each)
		}
	}
	if s.Rank == leader {
		f.Step(1)
		for i := 1; i < len(t); i++ {
			to := wrap(mine+i, len(t))
			f.sendUnordered(t.leader(to, -1), f.packBlocks(team, t[to], inputs, f.Tmp(len(t[to])*len(team)*each), each))
		}
		f.packBlocks(team, team, inputs, came[mine], each)
	}
	f.copy(s.outBlock(s.Rank), s.sentTo(s.Rank))
	f.Step(2)
	for i := range t {
		from := wrap(mine-i, len(t))
		f.Stream(handOn(from))
		off := 0
		for _, rank := range team {
			sources := except(t[from], rank)
			part := came[from].At(off, len(sources)*each)
			off += part.Len
			if rank == s.Rank {
				if rank != leader {
					f.takeOut(leader, part, from == mine)
				}
				f.copyOut(s, sources, part)
			} else if s.Rank == leader {
				f.handOut(rank, part, from == mine, begun)
			}
		}
	}
}
