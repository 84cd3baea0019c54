package coll

import (
	"cmp"
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// Node-aware allgathers. The ranks of a node are divided into groups of consecutive
// local ranks; the first rank of a group is its leader (T2 5.5.3, where it is called
// master):
//
//	phase 1   the ranks of a group send their blocks to its leader
//	phase 2   the leaders of a group, one on each node, exchange their blocks
//	phase 3   each leader sends the received blocks to all ranks of its node
//
// One group is the single-group algorithm (T2 5.5.1) and, with other exchanges in
// phase 2, SMP-aware Direct, SMP-aware Bruck (T2 4.4.2) and Gather-and-Broadcast
// (T2 4.4.1). The gather-based algorithm (T2 5.5.2) is in nodes_allgather_between.go.
//
// Nodes may have different numbers of ranks. On a node with fewer ranks than groups, a
// rank leads several groups, and some groups have no block there.
//
// There are two forms. Copied: a leader forwards all blocks in one message when the last
// part has arrived, from a row in which a group's blocks are contiguous, and every rank
// copies them to their offsets. Straight: a leader forwards each part as soon as it has
// arrived, from and to the final offset, while others are on the network.
//
// In a segment (Algorithm.InSegment) the row is in the buffer that the ranks of a node
// share, in either form (T2 4.4, 5.5): a rank copies its block in, the leaders send from
// there and receive there, and every rank copies the result out. Nothing else is copied.

const (
	copied   = 1
	straight = 2
)

func nodesAllgatherAlgorithms() []Algorithm {
	form := Param{Name: "form", Values: []int{copied, straight}, About: "1: forwarded in one message and copied out; 2: each part forwarded when it arrives"}
	return []Algorithm{
		Algorithm{
			Kind: Allgather, Name: "node-ring", Ref: "T2 5.5.3 with a ring in phase 2",
			About:  "The ranks of each node form groups, whose leaders forward the nodes' blocks around a ring and to their node.",
			Needs:  Needs{Nodes: true},
			Ops:    func(s *Shape, p []int) int { return perNode(s, p) + perPart(s, p[0], p[1]) },
			Params: []Param{{Name: "groups", Values: []int{1, 2, 4}, About: "ranks of a node that communicate with other nodes"}, form},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return s.groupsCost(m, min(p[0], s.Nodes.most), p[1], func(m *Model, part float64) float64 {
					return float64(s.nodeCount()-1) * m.together(1, part)
				})
			},
		}.withPhases(func(p []int) phases { return phases{groups: p[0], form: p[1], between: exchange{exchangeRing, left}} }),
		Algorithm{
			Kind: Allgather, Name: "node-groups", Ref: "T2 5.5.1, 5.5.3; with one group and k ports 4.4.2, SMP-aware Direct",
			About:  "The ranks of each node form groups; the leaders of a group send its blocks to those of all nodes, k at a time, and forward what they receive to their node.",
			Needs:  Needs{Nodes: true},
			Ops:    func(s *Shape, p []int) int { return perNode(s, p) + perPart(s, p[0], p[2]) },
			Params: []Param{{Name: "groups", Values: []int{1, 2, 4, 8}, About: "ranks of a node that communicate with other nodes"}, portsParam(16, 1), form},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				groups := min(p[0], s.Nodes.most)
				return s.groupsCost(m, groups, p[2], func(m *Model, part float64) float64 {
					return m.window(s.nodeCount()-1, p[1], part) * m.crush(min(s.nodeCount()-1, p[1]), part)
				})
			},
		}.withPhases(func(p []int) phases { return phases{groups: p[0], form: p[2], between: exchangeDirect(p[1])} }),
		Algorithm{
			Kind: Allgather, Name: "node-bruck", Ref: "T2 4.4.2, SMP-aware Bruck",
			About:  "The node leaders send all their blocks to k lower nodes in each round; the shift at the end is part of copying the blocks out.",
			Needs:  Needs{Nodes: true},
			Ops:    func(s *Shape, p []int) int { return perPart(s, 1, p[1]) },
			Params: []Param{portsParam(1, 2, 3), form},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return s.groupsCost(m, 1, p[1], func(m *Model, part float64) float64 {
					t, n := 0.0, s.nodeCount()
					for span := 1; span < n; span *= p[0] + 1 {
						k, bytes := min(p[0], (n-1)/span), part*float64(min(span, n-span))
						t += m.together(k, bytes) * m.crush(k, bytes)
					}
					return t
				})
			},
		}.withPhases(func(p []int) phases { return phases{groups: 1, form: p[1], turned: true, between: exchangeBruck(p[0])} }),
		{
			Kind: Allgather, Name: "node-gather-bcast", Ref: "T2 4.4.1, SMP-aware Gather-and-Broadcast",
			About:  "The node leaders send their blocks to the first of them, which sends all back down a tree: the fewest messages.",
			Needs:  Needs{Nodes: true},
			Ops:    perNode,
			Params: []Param{radixParam(4, 2)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				all, _ := s.blocksTotal()
				return s.groupsCost(m, 1, copied, func(m *Model, part float64) float64 {
					return m.together(s.nodeCount()-1, part) + knomialCost(s.nodeCount(), m, p[0], all)
				})
			},
			Build: func(b *sched.Builder, s *Shape, p []int) {
				nodesAllgather(b, s, phases{groups: 1, form: copied, between: exchangeAtRoot(p[0])}, false)
			},
		},
		{
			Kind: Allgather, Name: "node-spread", Ref: "T2 5.5.2, multi-group gather-based",
			About:     "All ranks of a node get its blocks, and each sends them to some of the nodes, where one rank gathers for its node: the messages of a node are divided among its ranks.",
			Needs:     Needs{Nodes: true},
			Ops:       perNode,
			Cost:      nodeSpreadCost,
			Build:     spreadAllgather,
			InSegment: spreadInSegment,
		},
	}
}

func nodeSpreadCost(s *Shape, m *Model, _ []int) float64 {
	all, largest := s.blocksTotal()
	near, most := m.inNode(), s.Nodes.most
	n := s.nodeCount()
	out := (n - 1 + s.Nodes.fewest - 1) / s.Nodes.fewest
	node := largest * float64(most)
	inside := near.together(most-1, largest) + near.together(most-1, all)
	if m.TimeSlices {
		inside = near.together(most*(most-1), largest) + near.together(most-1, all)
	}
	between := m.together(out, 0) + m.startup(node) - m.Startup + float64(n-1)*node*m.perByte(m.Ports)
	if m.TimeSlices { // all ranks of the node send, one after the other
		between += float64(most-1) * m.Startup
	}
	return m.atLeast(inside + between + m.Copy*(all+largest))
}

// crush returns the factor by which transfers slow down if several nodes send more to
// one node at the same time than switches can buffer (T2 5.4: from 64 KB, concurrent
// connections gain nothing, and lose).
func (m *Model) crush(senders int, bytes float64) float64 {
	if senders > 1 && float64(senders)*bytes > m.switchQueue() {
		return 1.3
	}
	return 1
}

// switchQueue estimates how many bytes for one node a switch buffers. Nothing reports it:
// it is assumed to be 8.4 ms of the cable, which is 1 MB at 1 Gbit/s, and no more for faster
// ones.
func (m *Model) switchQueue() float64 {
	const seconds, most = 8.4e-3, 1 << 20
	cable := cmp.Or(m.alone, m.Cable)
	if cable == 0 {
		return most
	}
	return min(seconds/cable, most)
}

// groupsCost returns the cost of the three phases. The leaders of one node share its
// cables, so the network cost is that of all their parts, and their start-ups add up.
func (s *Shape) groupsCost(m *Model, groups, form int, between func(m *Model, part float64) float64) float64 {
	all, largest := s.blocksTotal()
	near, most, nodes := m.inNode(), s.Nodes.most, s.nodeCount()
	node := largest * float64(most)
	t := near.together((most+groups-1)/groups-1, largest) + between(m.splitAmong(groups, node), node) + float64(groups-1)*m.Startup
	if m.TimeSlices { // each leader sends and receives
		t += float64(groups-1) * m.Startup
	}
	part := all / float64(groups) // that a leader forwards
	leaders := 1                  // that forward one after the other
	if m.TimeSlices {
		leaders = groups
	}
	if form == copied {
		copies := largest
		if groups > 1 || !s.Nodes.inOrder() || s.Recv.irregular() {
			copies += all
		}
		return m.atLeast(t + near.together(max(leaders*(most-1), groups), part) + m.Copy*copies)
	}
	// All parts but the last are forwarded during the network transfer.
	messages := max((nodes-1)*(most-1), groups*nodes)
	return m.atLeast(t + near.together(leaders*(most-1), part/float64(nodes)) + near.together(messages, 0) + m.Copy*largest)
}

// copyRuns copies span by span. Spans that are adjacent in both lists are copied
// together.
func (f *flow) copyRuns(dst, src []sched.Span) {
	for i := 0; i < len(dst); {
		d, s := dst[i], src[i]
		for i++; i < len(dst) && follows(d, dst[i]) && follows(s, src[i]); i++ {
			d.Len, s.Len = d.Len+dst[i].Len, s.Len+src[i].Len
		}
		f.copy(d, s)
	}
}

// exchange is phase 2 of a group that the rank leads. Parts arrive from lower nodes
// first, or from higher ones.
type exchange struct {
	run  func(w *grouped, group int)
	from side
}

// phases describes an allgather of groups.
type phases struct {
	groups, form int
	turned       bool
	between      exchange
}

// withPhases adds the functions that build the phases to an algorithm.
func (a Algorithm) withPhases(phases func(params []int) phases) Algorithm {
	a.Build = func(b *sched.Builder, s *Shape, params []int) { nodesAllgather(b, s, phases(params), false) }
	a.InSegment = func(b *sched.Builder, s *Shape, params []int) { nodesAllgather(b, s, phases(params), true) }
	return a
}

// nodesAllgather builds the three phases.
func nodesAllgather(b *sched.Builder, s *Shape, p phases, shared bool) {
	f := &flow{Builder: b}
	groups, between := min(p.groups, s.Nodes.most), p.between
	w := newGrouped(f, s, groups, p.form == copied && groups > 1, p.turned, shared)
	for j := range groups {
		w.gather(j)
	}
	for j := range groups {
		if w.leader(w.node, j) == s.Rank {
			between.run(w, j)
		}
	}
	for j := range groups {
		if p.form == copied {
			w.share(j, w.whole(j), true)
			continue
		}
		// The own part first: it is forwarded while the others are on the network (T2 4.4.2).
		for i := range s.nodeCount() {
			node := wrap(w.node-i, s.nodeCount())
			if between.from == right {
				node = wrap(w.node+i, s.nodeCount())
			}
			b.Step(1 + i)
			b.Stream(handOn(node)) // a late node does not delay the others (T2 6.4.5)
			w.share(j, w.part(node, j), node == w.node)
		}
		b.Stream(0)
	}
}

// gather builds phase 1 of a group.
func (w *grouped) gather(group int) {
	s, leader := w.s, w.leader(w.node, group)
	lo, hi := w.cut(w.node, group)
	for _, rank := range w.t.RanksOf(w.node)[lo:hi] {
		switch {
		case w.shared && s.Rank == rank:
			w.f.copy(w.block(rank), s.ownInput())
			if rank != leader {
				w.f.handOver(leader, w.block(rank))
			}
		case w.shared && s.Rank == leader:
			w.begun = append(w.begun, w.f.takeOver(rank, w.block(rank)))
		case s.Rank == leader && rank == s.Rank:
			w.f.copy(w.block(rank), s.ownInput())
		case s.Rank == leader:
			w.f.recv(rank, w.block(rank))
		case s.Rank == rank:
			w.f.send(leader, s.ownInput())
		}
	}
}

// share sends a part of the row from the leader of a group to all ranks of the node. own
// means that the blocks of the node are in it, so that all ranks of the group have begun.
func (w *grouped) share(group int, part sched.Span, own bool) {
	if w.shared {
		w.shareInPlace(group, part, own)
	} else if leader := w.leader(w.node, group); w.s.Rank != leader {
		w.f.recv(leader, part)
	} else {
		others := slices.DeleteFunc(slices.Clone(w.t.RanksOf(w.node)), func(rank int) bool { return rank == leader })
		w.f.sendToAll(others, part)
	}
	w.deliver(part)
}

// shareInPlace hands the part over. If the group's ranks have begun, so reports the
// hand-over, even of an empty part: the buffer may be used again when all ranks of the
// node know that of each other (sched.Run).
func (w *grouped) shareInPlace(group int, part sched.Span, own bool) {
	lo, hi := w.cut(w.node, group)
	if part.Len == 0 && (!own || lo == hi) {
		return
	}
	leader := w.leader(w.node, group)
	if w.s.Rank != leader {
		w.f.takeOver(leader, part)
		return
	}
	var begun []sched.ID
	if own {
		begun = w.begun
	}
	for _, rank := range w.t.RanksOf(w.node) {
		if rank != leader {
			w.f.handOver(rank, part, begun...)
		}
	}
}
