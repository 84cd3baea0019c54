package coll

import "github.com/muster-mpi/muster/internal/sched"

// Phase 2 of nodes_allgather.go, in which the leaders of a group exchange their nodes'
// blocks, and the gather-based allgather, in which leaders only gather.

// exchangeDirect: a leader sends to all others, k at a time, beginning with the next
// node (T2 5.5.1: all connections at the same time).
func exchangeDirect(k int) exchange {
	return exchange{func(w *grouped, group int) {
		var sends, receives []sched.ID
		nodes := w.t.Nodes()
		for i := 1; i < nodes; i++ {
			w.f.Step(1 + (i-1)/k)
			to, from := wrap(w.node+i, nodes), wrap(w.node-i, nodes)
			sends = append(sends, w.f.send(w.leader(to, group), w.part(w.node, group), kthLast(sends, k)))
			receives = append(receives, w.f.recv(w.leader(from, group), w.part(from, group), kthLast(receives, 2*k)))
		}
	}, left}
}

// exchangeRing: a leader forwards the part that it received last to the next node.
func exchangeRing(w *grouped, group int) {
	nodes := w.t.Nodes()
	up, down := w.leader(wrap(w.node+1, nodes), group), w.leader(wrap(w.node-1, nodes), group)
	for i := range nodes - 1 {
		w.f.Step(1 + i)
		w.f.send(up, w.part(wrap(w.node-i, nodes), group))
		from := wrap(w.node-1-i, nodes)
		w.f.recv(down, w.part(from, group))
	}
}

// exchangeBruck works in a row that begins with the own node: in each round a leader
// sends its nodes' blocks, as far as they are missing there, to k lower leaders, as
// bruckAllgather does with ranks.
func exchangeBruck(k int) exchange {
	return exchange{func(w *grouped, group int) {
		n := w.t.Nodes()
		run := func(i, count int) sched.Span { // count nodes from the i-th
			at := w.offset(wrap(w.node+i, n), group)
			end := w.mem.Len
			if i+count < n {
				end = w.offset(wrap(w.node+i+count, n), group)
			}
			return w.mem.At(at, end-at)
		}
		for span, step := 1, 1; span < n; span, step = span*(k+1), step+1 {
			w.f.Step(step)
			for j := 1; j <= k && j*span < n; j++ {
				count := min(span, n-j*span)
				w.f.send(w.leader(wrap(w.node-j*span, n), group), run(0, count))
			}
			for j := 1; j <= k && j*span < n; j++ {
				w.f.recv(w.leader(wrap(w.node+j*span, n), group), run(j*span, min(span, n-j*span)))
			}
		}
	}, right}
}

// exchangeAtRoot: the first leader gathers all parts and sends them back down a tree.
func exchangeAtRoot(radix int) exchange {
	return exchange{func(w *grouped, group int) {
		if w.f.Step(1); w.node > 0 {
			w.f.send(w.leader(0, group), w.part(w.node, group))
		} else {
			for n := 1; n < w.t.Nodes(); n++ {
				w.f.recv(w.leader(n, group), w.part(n, group))
			}
		}
		t, ok := knomial(w.f.Builder, w.node, w.t.Nodes(), radix)
		if !ok {
			return
		}
		if t.parent >= 0 {
			w.f.Step(2 + t.step)
			w.f.recv(w.leader(t.parent, group), w.mem)
		}
		for _, c := range t.children {
			w.f.Step(2 + c.step)
			w.f.send(w.leader(c.rank, group), w.mem)
		}
	}, left}
}

// spreadAllgather: all ranks of a node have its blocks, so each can send them to some of
// the other nodes, where one rank gathers them. T2 5.5.2 groups ranks of equal local
// rank and lets node i gather at local rank i. If there are more nodes than local ranks,
// the local rank is i modulo their number, which is the second master of a group there.
func spreadAllgather(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	w := newGrouped(f, s, 1, false, true, false)
	local, nodes := s.Nodes.RanksOf(w.node), s.nodeCount()
	for i := 1; i < len(local); i++ {
		f.send(local[wrap(s.Nodes.LocalRankOf(s.Rank)+i, len(local))], s.ownInput())
	}
	for i := 1; i < len(local); i++ {
		from := local[wrap(s.Nodes.LocalRankOf(s.Rank)-i, len(local))]
		f.recv(from, w.block(from))
	}
	if w.placed = true; w.mem.Buf == sched.Out {
		f.copy(s.outBlock(s.Rank), s.ownInput())
	}
	own := w.part(w.node, 0)
	for i := 1; i < nodes; i++ {
		if to := wrap(w.node+i, nodes); s.Nodes.sender(w.node, to) == s.Rank {
			if i <= len(local) && w.mem.Buf != sched.Out { // the first send of this rank
				f.copy(w.block(s.Rank), s.ownInput())
			}
			b.Step(1)
			f.send(s.Nodes.gatherer(to), own)
		}
	}
	b.Step(1)
	gatherer := s.Nodes.gatherer(w.node)
	if gatherer == s.Rank {
		for i := 1; i < nodes; i++ {
			from := wrap(w.node-i, nodes)
			f.recv(s.Nodes.sender(from, w.node), w.part(from, 0))
		}
	}
	if w.mem.Buf != sched.Out {
		f.copy(s.outBlock(s.Rank), s.ownInput())
	}
	w.deliver(own)
	b.Step(2)
	others := w.mem.At(own.Len, w.mem.Len-own.Len) // the row begins with the own node
	if gatherer == s.Rank {
		for _, rank := range local {
			if rank != s.Rank {
				f.send(rank, others)
			}
		}
	} else {
		f.recv(gatherer, others)
	}
	w.deliver(others)
}

// spreadInSegment is spreadAllgather in the buffer that the node shares: the first phase
// is an exchange of hand-overs, after which every rank sends the blocks of its node from
// there, and the third phase is a hand-over by the gatherer.
func spreadInSegment(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	w := newGrouped(f, s, 1, false, true, true)
	local, nodes := s.Nodes.RanksOf(w.node), s.nodeCount()
	mine := s.Nodes.LocalRankOf(s.Rank)
	f.copy(w.block(s.Rank), s.ownInput())
	for i := 1; i < len(local); i++ {
		f.handOver(local[wrap(mine+i, len(local))], w.block(s.Rank))
	}
	for i := 1; i < len(local); i++ {
		from := local[wrap(mine-i, len(local))]
		f.takeOver(from, w.block(from))
	}
	own, gatherer := w.part(w.node, 0), s.Nodes.gatherer(w.node)
	f.Step(1)
	for i := 1; i < nodes; i++ {
		if to := wrap(w.node+i, nodes); s.Nodes.sender(w.node, to) == s.Rank {
			f.send(s.Nodes.gatherer(to), own)
		}
		if from := wrap(w.node-i, nodes); gatherer == s.Rank {
			f.recv(s.Nodes.sender(from, w.node), w.part(from, 0))
		}
	}
	w.deliver(own)
	f.Step(2)
	others := w.mem.At(own.Len, w.mem.Len-own.Len) // the row begins with the own node
	for _, rank := range local {
		switch {
		case rank == s.Rank || others.Len == 0:
		case gatherer == s.Rank:
			f.handOver(rank, others)
		case rank == gatherer:
			f.takeOver(gatherer, others)
		}
	}
	w.deliver(others)
}

// sender returns the rank of a node that sends to another node.
func (t *Topology) sender(node, to int) int {
	return t.RankAt(node, (wrap(to-node, t.nodes)-1)%t.Count(node))
}

// gatherer returns the rank of a node that receives from other nodes.
func (t *Topology) gatherer(node int) int { return t.RankAt(node, node%t.Count(node)) }
