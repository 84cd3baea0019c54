package coll

import "github.com/muster-mpi/muster/internal/sched"

// Alltoall: every rank has a block for every rank. Here are the table of its
// algorithms and the two that send every block straight to where it belongs
// (direct, pairwise); those also serve lengths that differ (MPI-4.1 6.8,
// alltoallv), which only the two ranks at the ends of a message know.
// alltoall_relay.go has the algorithms in which blocks travel together.
//
// In place, a block lies where the block that replaces it will come to. Direct
// copies all blocks away first; pairwise does so with one at a time. Ranks may be
// in place or not each for itself: what passes between them is the same.

func alltoallAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Alltoall, Name: "direct", Ref: "T2 3.4.4, equation 3.3", Aware: papDirect,
			About:  "Every rank sends its blocks straight to the others, beginning with the next rank, k at a time.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				each := float64(s.blockBytes())
				return m.atLeast(m.window(s.Size-1, params[0], each) + m.Copy*each)
			},
			Build: directAlltoall,
		},
		{
			Kind: Alltoall, Name: "pairwise", Ref: "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
			About: "In each step every rank exchanges blocks with one partner, and goes on when both blocks have passed: no rank gets two long messages at a time.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				each := float64(s.blockBytes())
				return m.atLeast(float64(pairings(s.Size))*m.together(1, each) + m.Copy*each)
			},
			Build: pairwiseAlltoall,
		},
		{
			Kind: Alltoall, Name: "bruck", Ref: "Bruck et al., IEEE TPDS 8(11), 1997; T2 3.4.4, figure 3.7",
			About:  "Blocks travel by the digits, to the base k+1, of how far they have to go: few rounds, each block several times.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(1, 2, 3, 4, 7)},
			Cost:   bruckAlltoallCost, Build: bruckAlltoall,
		},
		{
			Kind: Alltoall, Name: "standard-exchange", Ref: "T2 3.4.4",
			About:  "Groups of k+1 ranks exchange all blocks for each other's part of the ranks, in ever smaller parts; ranks beyond a power of k+1 are corrected for by a step before and one after.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(1, 2, 3, 4, 7)},
			Cost:   exchangeAlltoallCost, Build: exchangeAlltoall,
		},
	}
}

// sentTo is the block for a rank, at the start: in place it has the place and the
// length of the block that will come from there (MPI-4.1 6.8).
func (s *Shape) sentTo(rank int) sched.Span {
	if s.InPlace {
		return s.gathered(rank)
	}
	return s.share(rank)
}

// directAlltoall: T2 3.4.4. The ranks are a ring, and in step i a rank sends to
// the k that follow those of the step before. Receives wait for no message: a rank
// may send its blocks in another order (pap.go).
func directAlltoall(b *sched.Builder, s *Shape, params []int) {
	n, k := s.Size, params[0]
	saved := make([]piece, n)
	if s.InPlace {
		save(b, s, saved)
	}
	var sends []sched.ID
	for i := 1; i < n; i++ {
		b.Step((i - 1) / k)
		to, from := around(s.Rank+i, n), around(s.Rank-i, n)
		src, ready := s.sentTo(to), sched.None
		if s.InPlace {
			src, ready = saved[to].at, saved[to].by
		}
		sends = append(sends, sendSome(b, to, src, ready, back(sends, k)))
		free := sched.None
		if s.InPlace {
			free = saved[from].by
		}
		recvSome(b, from, s.gathered(from), free)
	}
	b.Step(0)
	b.Copy(s.gathered(s.Rank), s.sentTo(s.Rank))
}

// save copies the blocks of an alltoall in place, but for the own one, which
// stays. Blocks that are neighbors are copied together.
func save(b *sched.Builder, s *Shape, saved []piece) {
	size := 0
	for i := range saved {
		if i != s.Rank {
			size += s.gathered(i).Len
		}
	}
	area := b.Tmp(size)
	at, begun := 0, 0
	m := mover{b: b}
	for i := range saved {
		if i == s.Rank {
			continue
		}
		from := s.gathered(i)
		saved[i] = piece{area.At(at, from.Len), sched.None}
		m.copy(saved[i].at, from)
		at += from.Len
		// The copy of a run is known once the next run begins.
		if last := i == len(saved)-1; last || i+1 == s.Rank || !follows(from, s.gathered(i+1)) {
			m.flush()
			for ; begun <= i; begun++ {
				saved[begun].by = back(m.done, 1)
			}
		}
	}
}

// pairwiseAlltoall waits for both blocks of a step before it sends the next. The
// receive of the next step is posted already, so that its sender need not wait.
//
// In place, the block for the partner is copied away and its place is received
// into; two places for copies let a step begin while the last one ends. That asks
// for partners that are mutual, and as each rank may be in place or not for itself,
// they always are.
func pairwiseAlltoall(b *sched.Builder, s *Shape, _ []int) {
	b.Copy(s.gathered(s.Rank), s.sentTo(s.Rank))
	var area [2]sched.Span
	if s.InPlace {
		longest := 0
		for i := range s.Size {
			longest = max(longest, s.gathered(i).Len)
		}
		area[0], area[1] = b.Tmp(longest), b.Tmp(longest)
	}
	var sends, receives []sched.ID
	for step := range pairings(s.Size) {
		b.Step(step)
		peer := partner(s.Rank, step, s.Size)
		if peer == s.Rank {
			continue
		}
		src, saved := s.sentTo(peer), sched.None
		if s.InPlace && src.Len > 0 {
			copied := area[len(sends)%2].At(0, src.Len)
			saved = b.Copy(copied, src, back(sends, 2))
			src = copied
		}
		if id := sendSome(b, peer, src, saved, back(sends, 1), back(receives, 1)); id != sched.None {
			sends = append(sends, id)
		}
		if id := recvSome(b, peer, s.gathered(peer), saved, back(receives, 2)); id != sched.None {
			receives = append(receives, id)
		}
	}
}

// pairings is how many steps it takes until every rank has met every other, if a
// rank meets one a step: with an odd number, someone rests in each.
func pairings(n int) int {
	if n%2 == 0 {
		return n - 1
	}
	return n
}

// partner is whom a rank meets in a step; itself if it rests. A power of two goes
// by the bits that differ, so that near ranks meet first. Else the sum of the two
// numbers is the step, as in a tournament: an odd number of ranks has one left over
// each time, and of an even number the last rank stays out and meets that one.
func partner(rank, step, n int) int {
	if n > 1 && n&(n-1) == 0 {
		return rank ^ (step + 1)
	}
	ring := n - 1 + n%2
	if rank == ring { // the last of an even number
		if step%2 == 1 {
			step += ring
		}
		return step / 2
	}
	if p := around(step-rank, ring); p != rank || n%2 == 1 {
		return p
	}
	return ring
}
