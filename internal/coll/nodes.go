package coll

import "github.com/muster-mpi/muster/internal/sched"

// Common parts of the node-aware algorithms (T2 chapters 4 and 5). They have three
// phases: the ranks of a node combine their data, a few ranks of each node communicate
// with other nodes, and the result is distributed within the node. Messages within a
// node use shared memory, which is far less expensive than the network, so fewer and
// longer messages between nodes are worth some more within.
//
// A flow separates the phases only as far as data dependencies require: data of the own
// node is copied out while the rest is on the network (T2 4.4.2).

// parts describes the node of a rank and the leaders of all nodes.
type parts struct {
	t         *Topology
	node      int
	local     []int // the ranks of the node
	localRank int   // index of the rank in local
	root      int   // the leader of its node; negative: there is none
	leader    int   // index of the node's leader in local
}

// newParts returns the parts for a root; a negative root means none.
func newParts(s *Shape, root int) *parts {
	t := s.Nodes
	node := t.NodeOf(s.Rank)
	p := &parts{t: t, node: node, local: t.RanksOf(node), localRank: t.LocalRankOf(s.Rank), root: root}
	p.leader = t.LocalRankOf(p.leaderOf(node))
	return p
}

// leaderOf returns the leader of a node: local rank 0, or the root on its node.
func (p *parts) leaderOf(node int) int {
	if p.root >= 0 && p.t.NodeOf(p.root) == node {
		return p.root
	}
	return p.t.leader(node)
}

// isLeader reports whether the rank is the leader of its node.
func (p *parts) isLeader() bool { return p.localRank == p.leader }

// inNode begins a phase among the ranks of the node, with the leader as root, and
// returns its Shape.
func (p *parts) inNode(b *sched.Builder, s *Shape, step int) *Shape {
	b.Restrict(p.local, step)
	sub := *s
	sub.Rank, sub.Size, sub.Root, sub.Nodes = p.localRank, len(p.local), p.leader, nil
	return &sub
}

// betweenNodes begins a phase among the leaders, of which the rank must be one, and
// returns its Shape.
func (p *parts) betweenNodes(b *sched.Builder, s *Shape, step int) *Shape {
	b.RestrictAll(p.t.nodes, p.leaderOf, step)
	sub := *s
	sub.Rank, sub.Size, sub.Root, sub.Nodes = p.node, p.t.nodes, p.t.NodeOf(s.Root), nil
	return &sub
}

// sendAll sends spans as one message, packed if they are not contiguous.
func (f *flow) sendAll(peer int, spans []sched.Span, held ...sched.ID) sched.ID {
	run, ok := sideBySide(spans)
	if !ok {
		run = f.Tmp(total(spans))
		f.copyAll([]sched.Span{run}, spans)
	}
	return f.send(peer, run, held...)
}

// recvAll receives one message into spans.
func (f *flow) recvAll(peer int, spans []sched.Span, held ...sched.ID) sched.ID {
	run, ok := sideBySide(spans)
	if !ok {
		run = f.Tmp(total(spans))
	}
	id := f.recv(peer, run, held...)
	if !ok {
		f.copyAll(spans, []sched.Span{run})
	}
	return id
}

// copyAll copies spans into others of the same total length, in as few operations as
// possible.
func (f *flow) copyAll(dst, src []sched.Span) {
	dst, src = joinSpans(dst), joinSpans(src)
	for len(dst) > 0 && len(src) > 0 {
		n := min(dst[0].Len, src[0].Len)
		f.copy(dst[0].At(0, n), src[0].At(0, n))
		dst, src = trimFront(dst, n), trimFront(src, n)
	}
}

// trimFront removes the first n bytes of some spans.
func trimFront(spans []sched.Span, n int) []sched.Span {
	if spans[0].Len == n {
		return spans[1:]
	}
	spans[0] = spans[0].At(n, spans[0].Len-n)
	return spans
}

// joinSpans returns a new list in which adjacent spans are merged.
func joinSpans(spans []sched.Span) (list []sched.Span) {
	for _, s := range spans {
		switch last := len(list) - 1; {
		case s.Len == 0:
		case last >= 0 && follows(list[last], s):
			list[last].Len += s.Len
		default:
			list = append(list, s)
		}
	}
	return list
}

// sideBySide returns the span of several contiguous ones, and whether they are
// contiguous.
func sideBySide(spans []sched.Span) (run sched.Span, ok bool) {
	list := joinSpans(spans)
	switch len(list) {
	case 0:
		return sched.Span{}, true
	case 1:
		return list[0], true
	}
	return sched.Span{}, false
}

func total(spans []sched.Span) (bytes int) {
	for _, s := range spans {
		bytes += s.Len
	}
	return bytes
}
