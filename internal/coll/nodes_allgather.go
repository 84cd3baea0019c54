package coll

import "github.com/muster-mpi/muster/internal/sched"

// Allgathers that know of nodes. The ranks of a node are cut into groups of
// neighbors, each with a master, the first of it (T2 5.5.3):
//
//	phase 1   the ranks of a group give their blocks to its master
//	phase 2   the masters of a group, one on each node, exchange what they have
//	phase 3   each master gives what it has got to all ranks of its node
//
// One group is the single-group algorithm (T2 5.5.1) and, with other exchanges in
// phase 2, SMP-aware Direct, SMP-aware Bruck (T2 4.4.2) and Gather-and-Broadcast
// (T2 4.4.1). The gather-based algorithm (T2 5.5.2) is in nodes_allgather_spread.go.
//
// Nodes may have different numbers of ranks. Where there are fewer ranks than
// groups, a rank is the master of several, and some groups have no block there.
//
// Two forms: copied, a master hands on all it has in one message when the last part
// has come, out of a row in which a group's blocks lie side by side, and every rank
// copies them to their place; straight, each part is handed on as soon as it is
// there, from its place to its place, while others are on the network.

const (
	copied   = 1
	straight = 2
)

func nodesAllgatherAlgorithms() []Algorithm {
	form := Param{Name: "form", Values: []int{copied, straight}, About: "1: handed on in one message and copied out; 2: each part handed on as it comes"}
	return []Algorithm{
		{
			Kind: Allgather, Name: "node-groups", Ref: "T2 5.5.1, 5.5.3; with one group and k ports 4.4.2, SMP-aware Direct",
			About:  "The ranks of each node form groups; the masters of a group send its blocks to those of all nodes, k at a time, and share what they get with their node.",
			Needs:  Needs{Nodes: true},
			Params: []Param{{Name: "groups", Values: []int{1, 2, 4, 8}, About: "ranks of a node that speak with other nodes"}, portsParam(16, 1), form},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				groups := min(p[0], s.Nodes.most())
				return s.groupsCost(m, groups, p[2], func(part float64) float64 {
					return m.window(s.nodeCount()-1, p[1], part) * m.crush(min(s.nodeCount()-1, p[1]), part)
				})
			},
			Build: func(b *sched.Builder, s *Shape, p []int) {
				nodesAllgather(b, s, p[0], p[2], false, exchangeDirect(p[1]))
			},
		},
		{
			Kind: Allgather, Name: "node-ring", Ref: "T2 5.5.3 with a ring in phase 2",
			About:  "The ranks of each node form groups, whose masters pass the nodes' blocks around a ring and on to their node.",
			Needs:  Needs{Nodes: true},
			Params: []Param{{Name: "groups", Values: []int{1, 2, 4}, About: "ranks of a node that speak with other nodes"}, form},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return s.groupsCost(m, min(p[0], s.Nodes.most()), p[1], func(part float64) float64 {
					return float64(s.nodeCount()-1) * m.together(1, part)
				})
			},
			Build: func(b *sched.Builder, s *Shape, p []int) {
				nodesAllgather(b, s, p[0], p[1], false, exchange{exchangeRing, left})
			},
		},
		{
			Kind: Allgather, Name: "node-bruck", Ref: "T2 4.4.2, SMP-aware Bruck",
			About:  "The masters of the nodes send all they have to k nodes below them in each round; the shift at the end is part of copying the blocks out.",
			Needs:  Needs{Nodes: true},
			Params: []Param{portsParam(1, 2, 3), form},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return s.groupsCost(m, 1, p[1], func(part float64) float64 {
					t, n := 0.0, s.nodeCount()
					for span := 1; span < n; span *= p[0] + 1 {
						k, bytes := min(p[0], (n-1)/span), part*float64(min(span, n-span))
						t += m.together(k, bytes) * m.crush(k, bytes)
					}
					return t
				})
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { nodesAllgather(b, s, 1, p[1], true, exchangeBruck(p[0])) },
		},
		{
			Kind: Allgather, Name: "node-gather-bcast", Ref: "T2 4.4.1, SMP-aware Gather-and-Broadcast",
			About:  "The masters of the nodes send their blocks to the first of them, which sends all back down a tree: the fewest messages.",
			Needs:  Needs{Nodes: true},
			Params: []Param{radixParam(4, 2)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				all, _ := s.blocksTotal()
				return s.groupsCost(m, 1, copied, func(part float64) float64 {
					return m.together(s.nodeCount()-1, part) + knomialCost(s.nodeCount(), m, p[0], all)
				})
			},
			Build: func(b *sched.Builder, s *Shape, p []int) {
				nodesAllgather(b, s, 1, copied, false, exchangeAtRoot(p[0]))
			},
		},
		{
			Kind: Allgather, Name: "node-spread", Ref: "T2 5.5.2, multi-group gather-based",
			About: "All ranks of a node get its blocks, and each sends them to some of the nodes, where one rank gathers for its node: the messages of a node are spread over its ranks.",
			Needs: Needs{Nodes: true},
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				all, largest := s.blocksTotal()
				near, most := m.near(), s.Nodes.most()
				n := s.nodeCount()
				out := (n - 1 + s.Nodes.fewest() - 1) / s.Nodes.fewest()
				node := largest * float64(most)
				inside := near.together(most-1, largest) + near.together(most-1, all)
				if m.TimeSlices {
					inside = near.together(most*(most-1), largest) + near.together(most-1, all)
				}
				between := m.together(out, 0) + m.startup(node) - m.Startup + float64(n-1)*node*m.PerByte/float64(max(m.Ports, 1))
				return m.atLeast(inside + between + m.Copy*(all+largest))
			},
			Build: spreadAllgather,
		},
	}
}

// crush is how much longer it takes if several nodes send more to one at the same
// time than switches keep (T2 5.4: connections that are active together gain nothing
// from 64 KB on, and lose).
func (m *Model) crush(senders int, bytes float64) float64 {
	const kept = 1 << 20
	if senders > 1 && float64(senders)*bytes > kept {
		return 1.3
	}
	return 1
}

// groupsCost is the cost of the three phases. Masters of one node share its way to
// others, so their parts together are what the network sees, and their start-ups
// add up.
func (s *Shape) groupsCost(m *Model, groups, form int, between func(part float64) float64) float64 {
	all, largest := s.blocksTotal()
	near, most, nodes := m.near(), s.Nodes.most(), s.nodeCount()
	t := near.together((most+groups-1)/groups-1, largest) + between(largest*float64(most)) + float64(groups-1)*m.Startup
	part := all / float64(groups) // that a master hands on
	masters := 1                  // that hand on one after the other
	if m.TimeSlices {
		masters = groups
	}
	if form == copied {
		copies := largest
		if groups > 1 || !s.Nodes.inOrder || s.Recv.irregular() {
			copies += all
		}
		return m.atLeast(t + near.together(max(masters*(most-1), groups), part) + m.Copy*copies)
	}
	// All parts but the last are handed on beside the network.
	messages := max((nodes-1)*(most-1), groups*nodes)
	return m.atLeast(t + near.together(masters*(most-1), part/float64(nodes)) + near.together(messages, 0) + m.Copy*largest)
}

// grouped is a row of all blocks, in the order that lets the runs of an algorithm be
// single messages, with the rank's view of it.
type grouped struct {
	f      *flow
	s      *Shape
	t      *Topology
	node   int
	groups int
	mem    sched.Span
	at     [][]int // where the part of a node and a group begins, by node and group
	order  []int   // the ranks as they lie in the row
	begin  []int   // where the block of each of them begins, and the end
	placed bool    // the own block is brought to its localRank without the row
}

// newGrouped lays the row out: by group and node if it will be copied out anyway,
// by node and group if blocks go straight to their place. turned has the own node
// come first.
func newGrouped(f *flow, s *Shape, groups int, byGroup, turned bool) *grouped {
	t := s.Nodes
	w := &grouped{f: f, s: s, t: t, node: t.Node[s.Rank], groups: groups, at: make([][]int, len(t.Ranks))}
	nodes := len(t.Ranks)
	w.begin = append(make([]int, 0, s.Size+1), 0)
	inOut := true
	add := func(n, j int) {
		w.at[n][j] = w.begin[len(w.begin)-1]
		lo, hi := w.cut(n, j)
		for _, rank := range t.Ranks[n][lo:hi] {
			off, size := s.Recv.Of(rank)
			end := w.begin[len(w.begin)-1]
			inOut = inOut && (size == 0 || off == end)
			w.order, w.begin = append(w.order, rank), append(w.begin, end+size)
		}
	}
	for n := range t.Ranks {
		w.at[n] = make([]int, groups)
	}
	first := 0
	if turned {
		first = w.node
	}
	for a := range nodes * groups {
		n, j := a/groups, a%groups
		if byGroup {
			n, j = a%nodes, a/nodes
		}
		add(around(first+n, nodes), j)
	}
	size := w.begin[s.Size]
	if w.mem = (sched.Span{Buf: sched.Out, Len: size}); !inOut {
		w.mem = f.Tmp(size)
	}
	return w
}

// cut is the places of a node that a group has there.
func (w *grouped) cut(node, group int) (lo, hi int) {
	p := len(w.t.Ranks[node])
	return group * p / w.groups, (group + 1) * p / w.groups
}

// master is the rank that speaks for a group on a node.
func (w *grouped) master(node, group int) int {
	lo, _ := w.cut(node, group)
	return w.t.Ranks[node][lo]
}

// part is the blocks of a group on a node.
func (w *grouped) part(node, group int) sched.Span {
	lo, hi := w.cut(node, group)
	n := 0
	for _, rank := range w.t.Ranks[node][lo:hi] {
		n += w.s.gathered(rank).Len
	}
	return w.mem.At(w.at[node][group], n)
}

// block is the place in the row of the block of a rank.
func (w *grouped) block(rank int) sched.Span {
	n := w.t.Node[rank]
	localRank := w.t.LocalRank[rank]
	for j := range w.groups {
		lo, hi := w.cut(n, j)
		if localRank < lo || localRank >= hi {
			continue
		}
		off := w.at[n][j]
		for _, r := range w.t.Ranks[n][lo:localRank] {
			off += w.s.gathered(r).Len
		}
		return w.mem.At(off, w.s.gathered(rank).Len)
	}
	panic("coll: every localRank is in a group") // cut leaves none out
}

// deliver copies what lies in a part of the row to its place in Out, block by block
// as far as they are not neighbors there too.
func (w *grouped) deliver(part sched.Span) {
	if w.mem.Buf == sched.Out || part.Len == 0 {
		return
	}
	var dst, src []sched.Span
	for i, rank := range w.order {
		at := w.mem.At(w.begin[i], w.begin[i+1]-w.begin[i])
		if at.Off < part.Off || at.Off+at.Len > part.Off+part.Len || rank == w.s.Rank && (w.s.InPlace || w.placed) {
			continue // the own block is there, and may be on its way to others
		}
		dst, src = append(dst, w.s.gathered(rank)), append(src, at)
	}
	w.f.copyRuns(dst, src)
}

// copyRuns copies span by span, neighbors that stay neighbors together.
func (f *flow) copyRuns(dst, src []sched.Span) {
	for i := 0; i < len(dst); {
		d, s := dst[i], src[i]
		for i++; i < len(dst) && follows(d, dst[i]) && follows(s, src[i]); i++ {
			d.Len, s.Len = d.Len+dst[i].Len, s.Len+src[i].Len
		}
		f.copy(d, s)
	}
}

// exchange is phase 2 for a group of which the rank is a master. Parts come from
// the nodes below first, or from those above.
type exchange struct {
	run  func(w *grouped, group int)
	from side
}

// nodesAllgather is the three phases.
func nodesAllgather(b *sched.Builder, s *Shape, groups, form int, turned bool, between exchange) {
	f := &flow{Builder: b}
	groups = min(groups, s.Nodes.most())
	w := newGrouped(f, s, groups, form == copied && groups > 1, turned)
	for j := range groups {
		w.gather(j)
	}
	for j := range groups {
		if w.master(w.node, j) == s.Rank {
			between.run(w, j)
		}
	}
	for j := range groups {
		if form == copied {
			w.share(j, w.whole(j))
			continue
		}
		// The own part first: it is handed on while the others travel (T2 4.4.2).
		for i := range s.nodeCount() {
			node := around(w.node-i, s.nodeCount())
			if between.from == right {
				node = around(w.node+i, s.nodeCount())
			}
			b.Step(1 + i)
			b.Stream(handOn(node)) // a node that is late does not hold up the others (T2 6.4.5)
			w.share(j, w.part(node, j))
		}
		b.Stream(0)
	}
}

// gather is phase 1 of a group.
func (w *grouped) gather(group int) {
	s, master := w.s, w.master(w.node, group)
	lo, hi := w.cut(w.node, group)
	for _, rank := range w.t.Ranks[w.node][lo:hi] {
		switch {
		case s.Rank == master && rank == s.Rank:
			w.f.copy(w.block(rank), s.given())
		case s.Rank == master:
			w.f.recv(rank, w.block(rank))
		case s.Rank == rank:
			w.f.send(master, s.given())
		}
	}
}

// share gives a part of the row, which the master of a group has, to all ranks of
// the node.
func (w *grouped) share(group int, part sched.Span) {
	if master := w.master(w.node, group); w.s.Rank != master {
		w.f.recv(master, part)
	} else {
		for _, rank := range w.t.Ranks[w.node] {
			if rank != w.s.Rank {
				w.f.send(rank, part)
			}
		}
	}
	w.deliver(part)
}

// whole is all parts of a group, which lie side by side in a row that is copied out.
func (w *grouped) whole(group int) sched.Span {
	n, first := 0, -1
	for node := range w.t.Ranks {
		n += w.part(node, group).Len
		if at := w.at[node][group]; first < 0 || at < first {
			first = at
		}
	}
	w.f.Step(1 + len(w.t.Ranks))
	return w.mem.At(first, n)
}
