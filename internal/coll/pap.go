package coll

import "github.com/muster-mpi/muster/internal/sched"

// Arrival-aware algorithms (T2 chapter 6: process arrival pattern). Ranks seldom enter
// a call at the same time. These algorithms serve arrived ranks first, and do not wait
// for a late rank before they serve the next:
//
//	pap_direct      every message is sent directly to its rank    here, pap_reduce.go
//	pap_shm_direct  the same among node leaders, and data from    pap_shm.go, pap_reduce.go
//	                a node is copied out at once
//
// No message reports arrivals. A receive that is posted and waits offers its buffer
// (RTR, T1 4.2), and a received message shows that its sender has arrived: the executor
// derives arrivals from the messages themselves (sched.ArrivalTracker). The algorithms
// only mark which sends may be posted in any order: sched's unordered sends. Where there
// are none, the order follows the data: whatever has arrived is processed.
//
// Both support blocks of different lengths, with one exception: the lengths of alltoallv
// are known only to the sender and the receiver, and a leader that gathers for its node
// would need them first. There pap_direct replaces pap_shm_direct (Algorithm.Instead).
//
// No model predicts which ranks will be late, so the choice by cost excludes these
// algorithms (Algorithm.ByName). All ranks change to them together if arrival is uneven
// and a trial has shown a gain (trial.go). But direct alltoall and direct allgather send the same
// messages between the same ranks as pap_direct, into receives that are posted at once.
// Each rank can therefore choose between the two on its own (Algorithm.Aware, uneven.go).
// Pairwise alltoall sends the same messages too, but its receives wait for each other: a
// rank that sent in another order could deadlock.

func papAlgorithms() []Algorithm {
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
			Kind: Alltoall, Name: papShmDirect, Ref: "T2 6.4.4", ByName: true, Leaders: true, Instead: papDirect,
			About:  "Blocks are gathered at node leaders, exchanged among those that have arrived, k at a time, and forwarded node by node as they arrive.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				each, most, near := float64(s.blockBytes()), s.mostInNode(), m.inNode()
				l, n := float64(most), float64(s.Size)
				gather := near.together(most-1, n*each)
				if s.Size == 2 && most == 2 {
					gather = 0 // the leader forwards only its own block, at the same time
				}
				return m.atLeast(gather + m.window(s.nodeCount()-1, params[0], l*l*each) +
					near.together((most-1)*s.nodeCount(), (n-1)*each/float64(s.nodeCount())) + m.Copy*n*l*each)
			},
			Build:     papShmAlltoall,
			InSegment: papShmAlltoallInSegment,
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
			Kind: Allgather, Name: papShmDirect, Ref: "T2 6.4.5", ByName: true, Leaders: true,
			About:  "Node leaders gather the blocks of their node, exchange them among those that have arrived, k at a time, and forward each node's blocks as they arrive.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				_, largest := s.blocksTotal()
				most, near := s.mostInNode(), m.inNode()
				run := float64(most) * largest
				return m.atLeast(near.together(most-1, largest) + m.window(s.nodeCount()-1, params[0], run) + near.together((most-1)*s.nodeCount(), run))
			},
			Build:     papShmAllgather,
			InSegment: papShmAllgatherInSegment,
		},
		{
			Kind: Bcast, Name: papDirect, Ref: papRef, ByName: true,
			About:  "The root sends to all ranks directly, arrived ones first, k at a time: no rank waits for a late one in between.",
			Params: []Param{portsParam(16, 1, 4)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				return m.atLeast(m.window(s.Size-1, params[0], float64(s.Bytes)))
			},
			Build: papBcast,
		},
		{
			Kind: Bcast, Name: papShmDirect, Ref: papRef, ByName: true, Leaders: true,
			About:  "The root sends to node leaders, and they to their nodes, arrived ranks first, k at a time.",
			Params: []Param{portsParam(16, 1, 4)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				bytes, near := float64(s.Bytes), m.inNode()
				return m.atLeast(m.window(s.nodeCount()-1, params[0], bytes) + near.window(s.mostInNode()-1, params[0], bytes))
			},
			Build: papShmBcast,
		},
	}
}

const (
	papDirect    = "pap_direct"
	papShmDirect = "pap_shm_direct"
	papRef       = "T2 6.4"
)

func (s *Shape) mostInNode() int {
	if s.Nodes == nil {
		return s.Size
	}
	return s.Nodes.most
}

// sendUnorderedSome adds an unordered send, unless it is empty.
func sendUnorderedSome(b *sched.Builder, peer int, src sched.Span, after ...sched.ID) {
	if src.Len > 0 {
		b.SendUnordered(peer, src, after...)
	}
}

// papAlltoall is directAlltoall with all receives posted at once, because blocks arrive
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
		from := wrap(s.Rank-i, n)
		free := sched.None
		if s.InPlace {
			free = saved[from].by
		}
		recvSome(b, from, s.outBlock(from), free)
	}
	for i := 1; i < n; i++ {
		to := wrap(s.Rank+i, n)
		sendUnorderedSome(b, to, saved[to].at, saved[to].by)
	}
	b.Copy(s.outBlock(s.Rank), s.sentTo(s.Rank))
}

func papAllgather(b *sched.Builder, s *Shape, params []int) {
	n := s.Size
	b.Ports(params[0])
	for i := 1; i < n; i++ {
		from := wrap(s.Rank-i, n)
		recvSome(b, from, s.outBlock(from))
	}
	for i := 1; i < n; i++ {
		sendUnorderedSome(b, wrap(s.Rank+i, n), s.ownInput())
	}
	b.Copy(s.outBlock(s.Rank), s.ownInput())
}

func papBcast(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	if s.Rank != s.Root {
		recvSome(b, s.Root, s.result())
		return
	}
	for i := 1; i < s.Size; i++ {
		sendUnorderedSome(b, wrap(s.Root+i, s.Size), s.result())
	}
}

// papShmBcast uses the root as the leader of its node.
func papShmBcast(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	t := s.teams()
	mine := t.teamOf(s.Rank)
	leader := t.leader(mine, s.Root)
	if s.Rank != leader {
		recvSome(b, leader, s.result())
		return
	}
	got := sched.None
	if s.Rank != s.Root {
		got = recvSome(b, s.Root, s.result())
	} else {
		for i := 1; i < len(t); i++ {
			sendUnorderedSome(b, t.leader(wrap(mine+i, len(t)), s.Root), s.result())
		}
	}
	b.Step(1)
	for _, rank := range t[mine] {
		if rank != leader {
			sendUnorderedSome(b, rank, s.result(), got)
		}
	}
}
