package coll

import "github.com/muster-mpi/muster/internal/sched"

// Allgather: every rank gets the block of every rank. This file has the table of its
// algorithms and those whose messages are single blocks (ring, neighbor exchange,
// direct); allgather_runs.go has those that send runs of blocks.
//
// Lengths of blocks may differ (MPI-4.1 6.7, allgatherv), and all ranks know them. The
// offsets of the blocks may differ between ranks, so nothing that two ranks must agree
// on may depend on Recv.Offs.

func allgatherAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Allgather, Name: "direct", Ref: "T2 3.4.3, equation 3.3", Aware: papDirect,
			About:  "Every rank sends its block to all others, k at a time.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				_, largest := s.blocksTotal()
				return m.atLeast(m.window(s.Size-1, params[0], largest) + m.Copy*largest)
			},
			Build: directAllgather, Generate: generateDirect,
		},
		{
			Kind: Allgather, Name: "ring", Ref: "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
			Along:  true,
			About:  "Every rank forwards the block that it received last to its neighbor, in one direction or in both.",
			Params: []Param{{Name: "ways", Values: []int{1, 2}, About: "1: all blocks go up; 2: half of them go down"}},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				_, largest := s.blocksTotal()
				return m.atLeast(float64((s.Size-1+params[0]-1)/params[0])*m.together(min(params[0], s.Size-1), largest) + m.Copy*largest)
			},
			Build: ringAllgather, Generate: generateRing,
		},
		{
			Kind: Allgather, Name: "recursive-doubling", Ref: "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005",
			About: "Partners at distance 1, 2, 4 … exchange all their blocks; ranks beyond a power of two go through another rank.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return exchangeAllgatherCost(s, m, 1)
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { exchangeAllgather(b, s, 1) },
		},
		{
			Kind: Allgather, Name: "standard-exchange", Ref: "T2 3.4.3, figure 3.5",
			About:  "Recursive doubling with k ports: groups of k+1 ranks exchange all their blocks; ranks beyond a power of k+1 take part by one step before and one after.",
			Params: []Param{portsParam(2, 3, 4, 7)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				return exchangeAllgatherCost(s, m, params[0])
			},
			Build: func(b *sched.Builder, s *Shape, params []int) { exchangeAllgather(b, s, params[0]) },
		},
		{
			Kind: Allgather, Name: "bruck", Ref: "Bruck et al., IEEE TPDS 8(11), 1997; T2 3.4.3, figure 3.6",
			About:  "In each round every rank sends all its blocks to k lower ranks; a local shift puts the blocks in order.",
			Params: []Param{portsParam(1, 2, 3, 4, 7)},
			Cost:   bruckAllgatherCost, Build: bruckAllgather,
		},
		{
			Kind: Allgather, Name: "neighbor-exchange", Ref: "Chen et al., HPC Asia 2005",
			Along: true,
			About: "Pairs of blocks travel between neighbors that alternate: half the steps of a ring.",
			Needs: Needs{Even: true}, Ops: perRank,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				_, largest := s.blocksTotal()
				pairs := float64(s.Size/2 - 1)
				if s.Recv.irregular() {
					return m.atLeast(m.together(1, largest) + pairs*m.together(2, largest) + m.Copy*largest)
				}
				return m.atLeast(m.together(1, largest) + pairs*m.together(1, 2*largest) + m.Copy*largest)
			},
			Build: neighborExchangeAllgather,
		},
		{
			Kind: Allgather, Name: "gather-bcast", Ref: "T2 4.4.1",
			About:  "A tree gathers all blocks at rank 0 and sends them back down: the fewest messages, which matters where ranks share cores.",
			Params: []Param{portsParam(1, 3, 7, 15)},
			Cost:   gatherBcastAllgatherCost, Build: gatherBcastAllgather,
		},
	}
}

// portsParam returns the parameter k of the k-port algorithms.
func portsParam(values ...int) Param {
	return Param{Name: "ports", Values: values, About: "messages that a rank sends at a time"}
}

// irregular reports whether blocks have different lengths.
func (b *Blocks) irregular() bool { return b.Irregular || b.Lens != nil }

// blocksTotal returns the bytes of all blocks of an allgather and of the largest.
func (s *Shape) blocksTotal() (all, largest float64) {
	if s.Recv.Lens == nil {
		return float64(s.Size * s.Recv.Each), float64(s.Recv.Each)
	}
	for _, n := range s.Recv.Lens {
		all += float64(n)
		largest = max(largest, float64(n))
	}
	return all, largest
}

// ringAllgather needs N-1 steps of one block. Using both directions halves the steps
// of a rank with two ports.
func ringAllgather(b *sched.Builder, s *Shape, params []int) {
	up := s.Size - 1
	if params[0] == 2 {
		up = s.Size / 2
	}
	passOn(b, s, 1, up)
	passOn(b, s, -1, s.Size-1-up)
	b.Step(0)
	b.Copy(s.outBlock(s.Rank), s.ownInput())
}

// passOn forwards blocks along the ring in one direction.
func passOn(b *sched.Builder, s *Shape, direction, steps int) {
	next, before := wrap(s.Rank+direction, s.Size), wrap(s.Rank-direction, s.Size)
	have := piece{s.ownInput(), sched.None}
	var receives []sched.ID
	for i := range steps {
		b.Step(i)
		sendSome(b, next, have.at, have.by)
		have.at = s.outBlock(wrap(s.Rank-direction*(i+1), s.Size))
		have.by = recvSome(b, before, have.at, kthLast(receives, receivesAhead))
		receives = append(receives, have.by)
	}
}

// receivesAhead is the number of receives of a long sequence that are posted early, so
// that messages find a posted receive. More would only fill the queues.
const receivesAhead = 4

// neighborExchangeAllgather first exchanges the blocks of the two ranks of a pair. Then
// every rank forwards the pair of blocks that it received last, alternately to its left
// and its right neighbor. Pairs begin at even ranks, so the blocks of a message are
// adjacent.
func neighborExchangeAllgather(b *sched.Builder, s *Shape, _ []int) {
	n, r := s.Size, s.Rank
	if n%2 != 0 {
		b.Fail("neighbor exchange among %d ranks: the number must be even", n)
		return
	}
	// toward is the direction of the partner of the first step. Ranks of the other
	// parity use the opposite direction, so partners are mutual.
	toward := 1 - 2*(r%2)
	own := b.Copy(s.outBlock(r), s.ownInput())
	partner := wrap(r+toward, n)
	sendSome(b, partner, s.ownInput())
	got := recvSome(b, partner, s.outBlock(partner))
	have, fresh := r-r%2, []sched.ID{own, got}
	for i := 1; i < n/2; i++ {
		b.Step(i)
		toward = -toward
		partner = wrap(r+toward, n)
		sendPair(b, s, partner, have, fresh)
		have = s.pairFrom(partner, i)
		fresh = recvPair(b, s, partner, have)
	}
}

// pairFrom returns the first block of the pair that a rank forwards in step i: its own
// pair in step 1, and then the pair received one step before. Odd ranks send to the
// right first, so what they forward comes from ever further left; for even ranks it is
// the reverse.
func (s *Shape) pairFrom(rank, i int) int {
	pair := rank - rank%2
	if i == 1 {
		return pair
	}
	far := 2 * (i / 2)
	if i%2 == 1 {
		far = -far
	}
	if rank%2 == 0 {
		far = -far
	}
	return wrap(pair+far, s.Size)
}

func sendPair(b *sched.Builder, s *Shape, peer, first int, after []sched.ID) {
	if !s.Recv.irregular() {
		one := s.outBlock(first)
		one.Len *= 2
		sendSome(b, peer, one, after...)
		return
	}
	sendSome(b, peer, s.outBlock(first), after...)
	sendSome(b, peer, s.outBlock(first+1), after...)
}

func recvPair(b *sched.Builder, s *Shape, peer, first int) []sched.ID {
	if !s.Recv.irregular() {
		one := s.outBlock(first)
		one.Len *= 2
		return []sched.ID{recvSome(b, peer, one)}
	}
	return []sched.ID{recvSome(b, peer, s.outBlock(first)), recvSome(b, peer, s.outBlock(first+1))}
}

// directAllgather sends in step i to the k ranks above those of the step before, with
// wrap-around, so that no rank is the target of all others at once. Receives wait for
// no message, so a rank may send its blocks in another order (pap.go).
func directAllgather(b *sched.Builder, s *Shape, params []int) {
	n, k := s.Size, params[0]
	var sends []sched.ID
	for i := 1; i < n; i++ {
		b.Step((i - 1) / k)
		sends = append(sends, sendSome(b, wrap(s.Rank+i, n), s.ownInput(), kthLast(sends, k)))
		from := wrap(s.Rank-i, n)
		recvSome(b, from, s.outBlock(from))
	}
	b.Step(0)
	b.Copy(s.outBlock(s.Rank), s.ownInput())
}
