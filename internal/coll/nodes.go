package coll

import "github.com/muster-mpi/muster/internal/sched"

// What the algorithms that know of nodes have in common (T2 chapters 4 and 5). They
// have three phases: the ranks of a node come together, a few ranks of each node
// speak with other nodes, and the ranks of a node part again. Messages inside a
// node go over shared memory, which costs a small part of the network, so few and
// long messages between nodes are worth some more inside.
//
// A flow keeps the phases apart only as far as bytes demand it: what is inside the
// node is copied out while the rest is on the network (T2 4.4.2).

// parts is the view of a rank on its node and on those that speak for the nodes.
type parts struct {
	t         *Topology
	node      int
	local     []int // the ranks of the node
	localRank int   // of the rank among them
	speakers  []int // one rank of each node: the master, on the root's node the root
	speaks    int   // place of the node's speaker among local
}

// newParts is for a root, or for none if it is negative.
func newParts(s *Shape, root int) *parts {
	t := s.Nodes
	node := t.Node[s.Rank]
	p := &parts{t: t, node: node, local: t.Ranks[node], localRank: t.LocalRank[s.Rank], speakers: make([]int, len(t.Ranks))}
	for n := range t.Ranks {
		p.speakers[n] = t.master(n)
	}
	if root >= 0 {
		p.speakers[t.Node[root]] = root
	}
	p.speaks = t.LocalRank[p.speakers[node]]
	return p
}

// isSpeaker reports whether the rank speaks for its node.
func (p *parts) isSpeaker() bool { return p.localRank == p.speaks }

// inNode begins a phase among the ranks of the node, with the speaker as root, and
// is the call as they see it.
func (p *parts) inNode(b *sched.Builder, s *Shape, step int) *Shape {
	b.Among(p.local, step)
	sub := *s
	sub.Rank, sub.Size, sub.Root, sub.Nodes = p.localRank, len(p.local), p.speaks, nil
	return &sub
}

// betweenNodes begins a phase among the speakers, of which the rank is one.
func (p *parts) betweenNodes(b *sched.Builder, s *Shape, step int) *Shape {
	b.Among(p.speakers, step)
	sub := *s
	sub.Rank, sub.Size, sub.Root, sub.Nodes = p.node, len(p.speakers), p.t.Node[s.Root], nil
	return &sub
}

// sendAll sends spans as one message, packed if they do not lie side by side.
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

// copyAll copies spans one after the other into others that are as long together,
// in as few operations as they lie.
func (f *flow) copyAll(dst, src []sched.Span) {
	dst, src = joined(dst), joined(src)
	for len(dst) > 0 && len(src) > 0 {
		n := min(dst[0].Len, src[0].Len)
		f.copy(dst[0].At(0, n), src[0].At(0, n))
		dst, src = without(dst, n), without(src, n)
	}
}

// without takes n bytes off the first of some spans.
func without(spans []sched.Span, n int) []sched.Span {
	if spans[0].Len == n {
		return spans[1:]
	}
	spans[0] = spans[0].At(n, spans[0].Len-n)
	return spans
}

// joined makes one span of neighbors. It gives a list of its own.
func joined(spans []sched.Span) (list []sched.Span) {
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

// sideBySide is the one span that several make, if they do.
func sideBySide(spans []sched.Span) (run sched.Span, ok bool) {
	list := joined(spans)
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
