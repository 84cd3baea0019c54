package coll

import "github.com/muster-mpi/muster/internal/sched"

// The row of the node-aware allgathers. If blocks have one length and the ranks are
// numbered node by node, its offsets are computed, so that nothing grows with the number
// of ranks; otherwise they are listed.

// grouped is a row of all blocks, ordered so that each run of an algorithm is a single
// message.
type grouped struct {
	f       *flow
	s       *Shape
	t       *Topology
	node    int
	groups  int
	first   int  // node at the beginning of the row
	byGroup bool // the row is ordered by group and node, otherwise by node and group
	mem     sched.Span
	shared  bool       // mem is shared by the node
	begun   []sched.ID // the other ranks of the groups that the rank leads have begun
	placed  bool       // the own block is copied to Out without the row
	list    *rowList   // nil: offsets are computed
}

// rowList lists the offsets of a row.
type rowList struct {
	at    [][]int // offset of a group's part, by node and group
	order []int   // the ranks in the order of the row
	begin []int   // offset of the block of each of them, and the end
	inOut bool    // the blocks have the same offsets in Out
}

// newGrouped lays the row out: by group and node if it will be copied out anyway, by
// node and group if blocks are received at their final offsets. With turned, the own
// node comes first.
func newGrouped(f *flow, s *Shape, groups int, byGroup, turned, shared bool) *grouped {
	t := s.Nodes
	w := &grouped{f: f, shared: shared, s: s, t: t, node: t.NodeOf(s.Rank), groups: groups, byGroup: byGroup}
	if turned {
		w.first = w.node
	}
	size, inOut := s.Size*s.Recv.Each, w.first == 0 && !byGroup
	if s.Recv.Lens != nil || !t.inOrder() {
		w.list = w.lay()
		size, inOut = w.list.begin[s.Size], w.list.inOut
	}
	switch {
	case w.shared:
		w.mem = f.AllocShared(size)
	case inOut:
		w.mem = sched.Span{Buf: sched.Out, Len: size}
	default:
		w.mem = f.Tmp(size)
	}
	return w
}

// lay lists the offsets.
func (w *grouped) lay() *rowList {
	t, nodes := w.t, w.t.nodes
	l := &rowList{at: make([][]int, nodes), begin: append(make([]int, 0, w.s.Size+1), 0), inOut: true}
	for n := range l.at {
		l.at[n] = make([]int, w.groups)
	}
	for a := range nodes * w.groups {
		n, j := a/w.groups, a%w.groups
		if w.byGroup {
			n, j = a%nodes, a/nodes
		}
		n = wrap(w.first+n, nodes)
		l.at[n][j] = l.begin[len(l.begin)-1]
		lo, hi := w.cut(n, j)
		for q := lo; q < hi; q++ {
			rank := t.RankAt(n, q)
			off, size := w.s.Recv.Block(rank)
			end := l.begin[len(l.begin)-1]
			l.inOut = l.inOut && (size == 0 || off == end)
			l.order, l.begin = append(l.order, rank), append(l.begin, end+size)
		}
	}
	return l
}

// cut returns the range of local ranks of a group on a node.
func (w *grouped) cut(node, group int) (lo, hi int) { return w.cutOf(w.t.Count(node), group) }

// cutOf is cut for a node with p ranks.
func (w *grouped) cutOf(p, group int) (lo, hi int) {
	return group * p / w.groups, (group + 1) * p / w.groups
}

// ranksBelow returns the number of ranks of a group on the nodes below a node, in a topology of
// blocks.
func (w *grouped) ranksBelow(node, group int) (ranks int) {
	for _, b := range w.t.blocks {
		if b.node >= node {
			break
		}
		lo, hi := w.cutOf(b.each, group)
		ranks += min(b.nodes, node-b.node) * (hi - lo)
	}
	return ranks
}

// groupStart returns the number of blocks in a row by groups before those of a group.
func (w *grouped) groupStart(group int) (blocks int) {
	for j := range group {
		blocks += w.ranksBelow(w.t.nodes, j)
	}
	return blocks
}

// offset returns the offset in the row of the part of a group on a node.
func (w *grouped) offset(node, group int) int {
	if w.list != nil {
		return w.list.at[node][group]
	}
	blocks := 0
	if w.byGroup {
		blocks = w.groupStart(group) + wrap(w.ranksBelow(node, group)-w.ranksBelow(w.first, group), max(w.ranksBelow(w.t.nodes, group), 1))
	} else {
		lo, _ := w.cut(node, group)
		blocks = wrap(w.t.ranksBefore(node)-w.t.ranksBefore(w.first), w.s.Size) + lo
	}
	return blocks * w.s.Recv.Each
}

// leader returns the leader of a group on a node.
func (w *grouped) leader(node, group int) int {
	lo, _ := w.cut(node, group)
	return w.t.RankAt(node, lo)
}

// part returns the blocks of a group on a node.
func (w *grouped) part(node, group int) sched.Span {
	lo, hi := w.cut(node, group)
	n := 0
	if w.s.Recv.Lens == nil {
		n = (hi - lo) * w.s.Recv.Each
	} else {
		for q := lo; q < hi; q++ {
			n += w.s.outBlock(w.t.RankAt(node, q)).Len
		}
	}
	return w.mem.At(w.offset(node, group), n)
}

// block returns the span in the row of a rank's block.
func (w *grouped) block(rank int) sched.Span {
	n, localRank := w.t.NodeOf(rank), w.t.LocalRankOf(rank)
	for j := range w.groups {
		lo, hi := w.cut(n, j)
		if localRank < lo || localRank >= hi {
			continue
		}
		off := w.offset(n, j)
		for q := lo; q < localRank; q++ {
			off += w.s.outBlock(w.t.RankAt(n, q)).Len
		}
		return w.mem.At(off, w.s.outBlock(rank).Len)
	}
	panic("coll: every rank is in a group") // cut covers all ranks
}

// whole returns all parts of a group, which are contiguous in a row that is copied out.
func (w *grouped) whole(group int) sched.Span {
	w.f.Step(1 + w.t.nodes)
	if w.list == nil {
		return w.mem.At(w.groupStart(group)*w.s.Recv.Each, w.ranksBelow(w.t.nodes, group)*w.s.Recv.Each)
	}
	n, first := 0, -1
	for node := range w.t.nodes {
		n += w.part(node, group).Len
		if at := w.offset(node, group); first < 0 || at < first {
			first = at
		}
	}
	return w.mem.At(first, n)
}

// deliver copies the blocks of a part of the row to Out, adjacent blocks together.
func (w *grouped) deliver(part sched.Span) {
	if w.mem.Buf == sched.Out || part.Len == 0 {
		return
	}
	if w.list == nil {
		w.deliverRuns(part)
		return
	}
	var dst, src []sched.Span
	for i, rank := range w.list.order {
		at := w.mem.At(w.list.begin[i], w.list.begin[i+1]-w.list.begin[i])
		if at.Off < part.Off || at.Off+at.Len > part.Off+part.Len || w.isThere(rank) {
			continue
		}
		dst, src = append(dst, w.s.outBlock(rank)), append(src, at)
	}
	w.f.copyRuns(dst, src)
}

// isThere reports whether a block is in Out already, and possibly being sent.
func (w *grouped) isThere(rank int) bool {
	return rank == w.s.Rank && (w.s.InPlace || w.placed)
}

// deliverRuns is deliver with computed offsets. The ranks of a part on a node are
// consecutive, and so are those of all nodes in a row that is not by groups.
func (w *grouped) deliverRuns(part sched.Span) {
	each := w.s.Recv.Each
	run := func(at, rank, count int) { // count blocks at an index of the row, from a rank
		if w.isThere(w.s.Rank) && rank <= w.s.Rank && w.s.Rank < rank+count {
			before := w.s.Rank - rank
			w.copyRun(at, rank, before)
			w.copyRun(at+before+1, rank+before+1, count-before-1)
			return
		}
		w.copyRun(at, rank, count)
	}
	if !w.byGroup {
		at := (part.Off - w.mem.Off) / each
		count := part.Len / each
		rank := wrap(w.t.ranksBefore(w.first)+at, w.s.Size)
		head := min(count, w.s.Size-rank)
		run(at, rank, head)
		run(at+head, 0, count-head)
		return
	}
	for a := range w.t.nodes * w.groups {
		n, j := wrap(w.first+a%w.t.nodes, w.t.nodes), a/w.t.nodes
		if p := w.part(n, j); p.Len > 0 && p.Off >= part.Off && p.Off+p.Len <= part.Off+part.Len {
			run((p.Off-w.mem.Off)/each, w.leader(n, j), p.Len/each)
		}
	}
}

// copyRun copies blocks of the row to Out.
func (w *grouped) copyRun(at, rank, count int) {
	each := w.s.Recv.Each
	w.f.copy(sched.Span{Buf: sched.Out, Off: rank * each, Len: count * each}, w.mem.At(at*each, count*each))
}
