package coll

import "github.com/muster-mpi/muster/internal/sched"

// Alltoall: every rank has a block for every rank. This file has the table of its
// algorithms and the two that send every block directly to its destination (direct,
// pairwise). Those also support different lengths (MPI-4.1 6.8, alltoallv), which only
// the sender and the receiver of a block know. alltoall_relay.go has the algorithms
// that forward several blocks in one message.
//
// In place, each block is where the block that replaces it is received. Direct saves
// all blocks first; pairwise saves one at a time. Each rank may be in place or not;
// the messages are the same.

func alltoallAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Alltoall, Name: "direct", Ref: "T2 3.4.4, equation 3.3", Aware: papDirect,
			About:  "Every rank sends its blocks directly to the others, beginning with the next rank, k at a time.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				each := float64(s.blockBytes())
				t := m.window(s.Size-1, params[0], each)
				competing := min(params[0], s.Size-1)
				if m.eager(each) { // a send does not wait for its receiver
					competing = s.Size - 1
				}
				if m.Cable > 0 && competing > m.cables() { // more messages than cables
					t *= m.crush(competing, each)
				}
				return m.atLeast(t*m.everyPair(each) + m.Copy*each)
			},
			Build: directAlltoall, Generate: generateDirect,
		},
		{
			Kind: Alltoall, Name: "pairwise", Ref: "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
			About: "In each step every rank exchanges blocks with one partner, and continues when both messages are complete: no rank receives two long messages at a time.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				each := float64(s.blockBytes())
				return m.atLeast(float64(pairings(s.Size))*m.together(1, each)*m.everyPair(each) + m.Copy*each)
			},
			Build: pairwiseAlltoall, Generate: generatePairwise,
		},
		{
			Kind: Alltoall, Name: "bruck", Ref: "Bruck et al., IEEE TPDS 8(11), 1997; T2 3.4.4, figure 3.7",
			About:  "Blocks are forwarded by the digits, to the base k+1, of their distance: few rounds, but each block is sent several times.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(1, 2, 3, 4, 7)},
			Cost:   bruckAlltoallCost, Build: bruckAlltoall, Ops: perRank,
		},
		{
			Kind: Alltoall, Name: "standard-exchange", Ref: "T2 3.4.4",
			About:  "Groups of k+1 ranks exchange all blocks for each other's part of the ranks, in ever smaller parts; ranks beyond a power of k+1 take part by one step before and one after.",
			Needs:  Needs{Regular: true},
			Params: []Param{portsParam(1, 2, 3, 4, 7)},
			Cost:   exchangeAlltoallCost, Build: exchangeAlltoall, Ops: perRank,
		},
	}
}

// sentTo returns the block for a rank at the start. In place it has the offset and the
// length of the block that will be received from that rank (MPI-4.1 6.8).
func (s *Shape) sentTo(rank int) sched.Span {
	if s.InPlace {
		return s.outBlock(rank)
	}
	return s.share(rank)
}

// directAlltoall is the Direct algorithm of T2 3.4.4. The ranks form a ring, and in
// step i a rank sends to the k that follow those of the step before. Receives wait for
// no message, so a rank may send its blocks in another order (pap.go).
func directAlltoall(b *sched.Builder, s *Shape, params []int) {
	n, k := s.Size, params[0]
	saved := make([]piece, n)
	if s.InPlace {
		save(b, s, saved)
	}
	var sends []sched.ID
	for i := 1; i < n; i++ {
		b.Step((i - 1) / k)
		to, from := wrap(s.Rank+i, n), wrap(s.Rank-i, n)
		src, ready := s.sentTo(to), sched.None
		if s.InPlace {
			src, ready = saved[to].at, saved[to].by
		}
		sends = append(sends, sendSome(b, to, src, ready, kthLast(sends, k)))
		free := sched.None
		if s.InPlace {
			free = saved[from].by
		}
		recvSome(b, from, s.outBlock(from), free)
	}
	b.Step(0)
	b.Copy(s.outBlock(s.Rank), s.sentTo(s.Rank))
}

// save copies the blocks of an alltoall in place to scratch, except for the own one.
// Adjacent blocks are copied together.
func save(b *sched.Builder, s *Shape, saved []piece) {
	size := 0
	for i := range saved {
		if i != s.Rank {
			size += s.outBlock(i).Len
		}
	}
	area := b.Tmp(size)
	at, begun := 0, 0
	m := mover{b: b}
	for i := range saved {
		if i == s.Rank {
			continue
		}
		from := s.outBlock(i)
		saved[i] = piece{area.At(at, from.Len), sched.None}
		m.copy(saved[i].at, from)
		at += from.Len
		// The ID of a run's copy is known when the run ends.
		if last := i == len(saved)-1; last || i+1 == s.Rank || !follows(from, s.outBlock(i+1)) {
			m.flush()
			for ; begun <= i; begun++ {
				saved[begun].by = kthLast(m.done, 1)
			}
		}
	}
}

// pairwiseAlltoall waits for both blocks of a step before it sends the next. The
// receive of the next step is already posted, so that its sender need not wait.
//
// In place, the block for the partner is saved and its span is received into; two
// scratch spans let a step begin while the last one ends. This requires mutual
// partners. Each rank may be in place or not, so partners are always mutual.
func pairwiseAlltoall(b *sched.Builder, s *Shape, _ []int) {
	b.Copy(s.outBlock(s.Rank), s.sentTo(s.Rank))
	var area [2]sched.Span
	if s.InPlace {
		longest := 0
		for i := range s.Size {
			longest = max(longest, s.outBlock(i).Len)
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
			saved = b.Copy(copied, src, kthLast(sends, 2))
			src = copied
		}
		if id := sendSome(b, peer, src, saved, kthLast(sends, 1), kthLast(receives, 1)); id != sched.None {
			sends = append(sends, id)
		}
		if id := recvSome(b, peer, s.outBlock(peer), saved, kthLast(receives, 2)); id != sched.None {
			receives = append(receives, id)
		}
	}
}

// pairings returns the number of steps until every rank has had every other as its
// partner. With an odd number of ranks, one is idle in each step.
func pairings(n int) int {
	if n%2 == 0 {
		return n - 1
	}
	return n
}

// partner returns a rank's partner in a step, or the rank itself if it is idle. With a
// power of two ranks, partners differ in the bits of step+1, so that near ranks come
// first. Otherwise the sum of the two ranks is the step, as in a round-robin
// tournament: an odd number of ranks leaves one over in each step; with an even number
// the last rank is the partner of that one.
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
	if p := wrap(step-rank, ring); p != rank || n%2 == 1 {
		return p
	}
	return ring
}

// everyPair returns the factor by which transfers of n bytes between every two ranks slow down
// if they share cores: a rendezvous waits for the core of its peer, while the cable is idle.
// Measured with 16 ranks on four hosts that share two cores, at 1 MB.
func (m *Model) everyPair(n float64) float64 {
	if m.TimeSlices && m.Cable > 0 && !m.eager(n) {
		return 1.7
	}
	return 1
}
