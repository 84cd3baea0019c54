package coll

import "github.com/muster-mpi/muster/internal/sched"

// Algorithms that know who has arrived (T2 chapter 6: process arrival pattern).
// Ranks seldom make a call at the same time. These algorithms serve first those who
// are there, and wait for nobody before they serve the next:
//
//	pap_direct      every message goes straight to its rank       here, pap_reduce.go
//	pap_shm_direct  the same among node masters, and what has     pap_shm.go, pap_reduce.go
//	                come from a node is copied out at once
//
// No message reports who has arrived. A receive that is posted and waits offers its
// buffer (RTR, T1 4.2), and a message that has come was sent by somebody who is
// there: the executor asks the messages themselves (sched.ArrivalTracker). Here is only
// said which sends may go in any order: sched's unordered sends. Where there are none,
// the order of arrival is left to the data: whatever has come is worked on.
//
// Both serve blocks of different lengths, but for one: what two ranks of alltoallv send
// each other is known to them alone, and a master that gathers for its node would have
// to be told first. There pap_direct stands in for pap_shm_direct (Algorithm.Instead).
//
// No model knows who will be late, so the choice by cost leaves these rows out
// (Algorithm.ByName). But direct alltoall and direct allgather send the same messages
// between the same ranks as pap_direct, into receives that are posted at once. A
// rank can therefore run the one while others run the other (Algorithm.Aware), and
// decides for itself (uneven.go). Pairwise alltoall sends the same messages too, but
// its receives wait for each other: a rank that sent in another order could wait for
// ever.

func papAlgorithms() []Algorithm {
	const ref = "T2 6.4"
	return []Algorithm{
		{
			Kind: Alltoall, Name: papDirect, Ref: "T2 6.4.2", ByName: true,
			About:  "Direct, with the ranks that have arrived served first, k at a time.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				each := float64(s.blockBytes())
				return m.atLeast(m.window(s.Size-1, params[0], each) + m.Copy*each)
			},
			Build: papAlltoall,
		},
		{
			Kind: Alltoall, Name: papShmDirect, Ref: "T2 6.4.4", ByName: true, Instead: papDirect,
			About:  "Blocks are gathered at node masters, exchanged among those that have arrived, k at a time, and handed on node by node as they come.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				each, most := float64(s.blockBytes()), s.mostInNode()
				l, n := float64(most), float64(s.Size)
				return m.atLeast(m.together(most-1, n*each) + m.window(s.nodeCount()-1, params[0], l*l*each) +
					m.together((most-1)*s.nodeCount(), l*each) + m.Copy*n*l*each)
			},
			Build: papShmAlltoall,
		},
		{
			Kind: Allgather, Name: papDirect, Ref: "T2 6.4.3", ByName: true,
			About:  "Direct, with the ranks that have arrived served first, k at a time.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				_, largest := s.blocksTotal()
				return m.atLeast(m.window(s.Size-1, params[0], largest) + m.Copy*largest)
			},
			Build: papAllgather,
		},
		{
			Kind: Allgather, Name: papShmDirect, Ref: "T2 6.4.5", ByName: true,
			About:  "Node masters gather the blocks of their node, exchange them among those that have arrived, k at a time, and hand on each node's as they come.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				_, largest := s.blocksTotal()
				most := s.mostInNode()
				run := float64(most) * largest
				return m.atLeast(m.together(most-1, largest) + m.window(s.nodeCount()-1, params[0], run) + m.together((most-1)*s.nodeCount(), run))
			},
			Build: papShmAllgather,
		},
		{
			Kind: Bcast, Name: papDirect, Ref: ref, ByName: true,
			About:  "The root sends to all ranks itself, those that have arrived first, k at a time: nobody waits for a late rank in between.",
			Params: []Param{portsParam(16, 1, 4)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				return m.atLeast(m.window(s.Size-1, params[0], float64(s.Bytes)))
			},
			Build: papBcast,
		},
		{
			Kind: Bcast, Name: papShmDirect, Ref: ref, ByName: true,
			About:  "The root sends to node masters, and they to their nodes, those that have arrived first, k at a time.",
			Params: []Param{portsParam(16, 1, 4)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				bytes := float64(s.Bytes)
				return m.atLeast(m.window(s.nodeCount()-1, params[0], bytes) + m.window(s.mostInNode()-1, params[0], bytes))
			},
			Build: papShmBcast,
		},
		{
			Kind: Reduce, Name: papDirect, Ref: ref, ByName: true,
			About: "All ranks send to the root, which combines neighbors as soon as both have come, always in the same pairs: the result does not depend on who was late.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				bytes := float64(s.Bytes)
				return m.atLeast(m.together(s.Size-1, bytes) + m.Reduce*bytes*float64(log(s.Size, 2)))
			},
			Build: papReduce,
		},
		{
			Kind: Reduce, Name: papShmDirect, Ref: ref, ByName: true,
			About: "The same in two levels: node masters combine what their nodes have, and the root what the masters send.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return papLevelsCost(s, m, 1)
			},
			Build: papShmReduce,
		},
		{
			Kind: Allreduce, Name: papDirect, Ref: ref, ByName: true,
			About:  "All ranks send to all, those that have arrived first, k at a time; each combines all data in the same pairs.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				bytes := float64(s.Bytes)
				return m.atLeast(m.window(s.Size-1, params[0], bytes) + m.Reduce*bytes*float64(s.Size-1))
			},
			Build: papAllreduce,
		},
		{
			Kind: Allreduce, Name: papShmDirect, Ref: ref, ByName: true,
			About:  "Node masters combine what their nodes have, exchange it among those that have arrived, k at a time, and hand the result on.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				return papLevelsCost(s, m, params[0]) + m.together(s.mostInNode()-1, float64(s.Bytes))
			},
			Build: papShmAllreduce,
		},
	}
}

const (
	papDirect    = "pap_direct"
	papShmDirect = "pap_shm_direct"
)

func (s *Shape) mostInNode() int {
	if s.Nodes == nil {
		return s.Size
	}
	return s.Nodes.most()
}

// sendUnorderedSome leaves out what is empty, like sendSome.
func sendUnorderedSome(b *sched.Builder, peer int, src sched.Span, after ...sched.ID) {
	if src.Len > 0 {
		b.SendUnordered(peer, src, after...)
	}
}

// papAlltoall is directAlltoall with all receives posted at once, since blocks come
// in any order.
func papAlltoall(b *sched.Builder, s *Shape, params []int) {
	n := s.Size
	b.Ports(params[0])
	saved := make([]piece, n)
	for i := range saved {
		saved[i] = piece{s.sentTo(i), sched.None}
	}
	if s.InPlace {
		save(b, s, saved)
	}
	for i := 1; i < n; i++ {
		from := around(s.Rank-i, n)
		free := sched.None
		if s.InPlace {
			free = saved[from].by
		}
		recvSome(b, from, s.gathered(from), free)
	}
	for i := 1; i < n; i++ {
		to := around(s.Rank+i, n)
		sendUnorderedSome(b, to, saved[to].at, saved[to].by)
	}
	b.Copy(s.gathered(s.Rank), s.sentTo(s.Rank))
}

func papAllgather(b *sched.Builder, s *Shape, params []int) {
	n := s.Size
	b.Ports(params[0])
	for i := 1; i < n; i++ {
		from := around(s.Rank-i, n)
		recvSome(b, from, s.gathered(from))
	}
	for i := 1; i < n; i++ {
		sendUnorderedSome(b, around(s.Rank+i, n), s.given())
	}
	b.Copy(s.gathered(s.Rank), s.given())
}

func papBcast(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	if s.Rank != s.Root {
		recvSome(b, s.Root, s.result())
		return
	}
	for i := 1; i < s.Size; i++ {
		sendUnorderedSome(b, around(s.Root+i, s.Size), s.result())
	}
}

// papShmBcast has the root as the master of its own node.
func papShmBcast(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	t := s.teams()
	mine := t.of(s.Rank)
	master := t.master(mine, s.Root)
	if s.Rank != master {
		recvSome(b, master, s.result())
		return
	}
	got := sched.None
	if s.Rank != s.Root {
		got = recvSome(b, s.Root, s.result())
	} else {
		for i := 1; i < len(t); i++ {
			sendUnorderedSome(b, t.master(around(mine+i, len(t)), s.Root), s.result())
		}
	}
	b.Step(1)
	for _, rank := range t[mine] {
		if rank != master {
			sendUnorderedSome(b, rank, s.result(), got)
		}
	}
}
