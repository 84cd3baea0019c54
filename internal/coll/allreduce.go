package coll

import "github.com/muster-mpi/muster/internal/sched"

// Allreduce (MPI-4.1 section 6.9.6). All ranks group operands in the same way, so that
// results are bitwise equal although floating-point addition is not associative.

func allreduceAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Allreduce, Name: "recursive-doubling", Ref: "Thakur, Rabenseifner, Gropp 2005",
			About: "In round i the ranks at distance 2^i exchange their values.",
			Far:   doublingFar,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return m.atLeast(foldedCost(s, m, true) + float64(log(power(s.Size), 2))*(m.together(1, float64(s.Bytes))+m.Reduce*float64(s.Bytes)))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { doublingAllreduce(&flow{Builder: b}, s) },
		},
		{
			Kind: Allreduce, Name: "direct", Ref: "T2 3.4.3 (Direct allgather), each rank reducing what it gets",
			About: "Every rank sends its data to all others and reduces what it receives: one step, for few ranks.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				n := float64(s.Bytes)
				return m.atLeast(m.together(s.Size-1, n) + float64(s.Size-1)*m.Reduce*n + m.Copy*n)
			},
			Build: directAllreduce, Ops: perRank,
		},
		{
			Kind: Allreduce, Name: "ring", Ref: "Patarasuk, Yuan 2009",
			Along: true,
			About: "Parts of the data travel around a ring, are reduced on the way, and travel around it once more.",
			Needs: Needs{Commutes: true}, Ops: perRank,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				each := float64(s.Bytes) / float64(s.Size)
				return m.atLeast(float64(s.Size-1) * (2*m.together(1, each) + m.Reduce*each))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) {
				ringAmong(&flow{Builder: b}, group{s.Rank, s.Size, s.Elem}, s.data(), s.result())
			},
		},
		{
			Kind: Allreduce, Name: "rabenseifner", Ref: "Rabenseifner 2004",
			About: "Halves of the data are exchanged and reduced, then quarters, and so on; the results are collected in reverse order.",
			Far:   halvingFar,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				n := float64(power(s.Size))
				return m.atLeast(foldedCost(s, m, true) + halvingCost(s, m) + m.halves(power(s.Size), float64(s.Bytes)) + m.bytes(1, 1, (n-1)/n*float64(s.Bytes)))
			},
			Build: rabenseifnerAllreduce,
		},
		{
			Kind: Allreduce, Name: "circulant", Ref: "Träff 2024, Optimal, non-pipelined reduce-scatter and allreduce algorithms",
			About: "Like Rabenseifner's, with distances that fit any number of ranks: no rank is idle.",
			Far:   circulantFar,
			Needs: Needs{Commutes: true},
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				n := float64(s.Size)
				// Ranges of blocks that wrap around at the last rank are two messages.
				split := 2 * float64(max(log(s.Size, 2)-1, 0)) * (m.together(2, 0) - m.together(1, 0))
				return m.atLeast(2*circulantCost(s.Size, float64(s.Bytes), m) - (n-1)/n*float64(s.Bytes)*m.Reduce + split)
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { circulantAllreduce(&flow{Builder: b}, s) },
		},
		{
			Kind: Allreduce, Name: "reduce-bcast", Ref: "MPI-4.1 section 6.9.6",
			About: "A reduction to rank 0 and a broadcast from it: the fewest messages, which matters where ranks share cores.",
			Far:   treeFar,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return m.atLeast(reduceTreeCost(s, m) + knomialCost(s.Size, m, 2, float64(s.Bytes)))
			},
			Build: reduceBcastAllreduce,
		},
	}
}

// doublingAllreduce is recursive doubling. Ranks beyond a power of two send their data
// to a neighbor and receive the result from it.
func doublingAllreduce(f *flow, s *Shape) {
	d := newFolding(s.Size, -1)
	index, partner := d.index(s.Rank), d.partner(s.Rank)
	active := power(s.Size)
	last := 1 + log(active, 2)
	if d.at(index) != s.Rank {
		f.send(partner, s.data())
		f.Step(last)
		f.recv(partner, s.result())
		return
	}
	var peers []int
	if partner >= 0 {
		peers = append(peers, partner)
	}
	for distance := 1; distance < active; distance *= 2 {
		peers = append(peers, d.at(index^distance))
	}
	var sides []side
	for _, peer := range peers {
		sides = append(sides, sideOf(peer, s.Rank))
	}
	x := newAccumulator(f, s.Commutes, s.data(), s.result(), false, sides)
	step := 0
	if d.extra > 0 && partner < 0 {
		step = 1
	}
	for i, peer := range peers {
		f.Step(step + i)
		if peer != partner {
			f.send(peer, x.part(0, s.Bytes))
		}
		x.meet(peer, 0, s.Bytes, sides[i])
	}
	x.finish(0, s.Bytes)
	if partner >= 0 {
		f.Step(last)
		f.send(partner, s.result())
	}
}

// directAllreduce reduces from the highest rank down on every rank, so that rounding is
// the same on all.
func directAllreduce(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	for i := 1; i < s.Size; i++ {
		f.send(wrap(s.Rank+i, s.Size), s.data())
	}
	if s.Size == 2 && s.Commutes && !s.InPlace { // the order does not matter
		f.recv(1-s.Rank, s.result())
		f.reduce(s.result(), s.data())
		return
	}
	// The value begins with the last rank's data, which can be received or copied
	// directly to Out, unless Out still holds this rank's input.
	last := s.Size - 1
	acc := s.result()
	if s.InPlace && s.Rank != last {
		acc = b.Tmp(s.Bytes)
	}
	if s.Rank == last {
		f.copy(acc, s.data())
	} else {
		f.recv(last, acc)
	}
	for i := last - 1; i >= 0; i-- {
		next := s.data()
		if i != s.Rank {
			next = b.Tmp(s.Bytes)
			f.recv(i, next)
		}
		f.reduce(acc, next)
	}
	f.copy(s.result(), acc)
}

// combineInto receives a value that commutes with own and combines both in dst, which
// is own or unused.
func combineInto(f *flow, peer int, dst, own sched.Span) {
	if dst != own {
		f.recv(peer, dst)
		f.reduce(dst, own)
		return
	}
	other := f.Tmp(dst.Len)
	f.recv(peer, other)
	f.reduce(dst, other)
}

// rabenseifnerAllreduce reverses the halving: each rank receives the parts that it sent,
// reduced by all others.
func rabenseifnerAllreduce(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	h, _ := halving(f, s, -1)
	last := 1 + 2*log(power(s.Size), 2)
	partner := h.partner(s.Rank)
	if h.out {
		b.Step(last)
		f.recv(partner, s.result())
		return
	}
	for i := len(h.cuts) - 1; i >= 0; i-- {
		c := h.cuts[i]
		b.Step(h.step)
		h.step++
		f.send(c.peer, s.result().At(c.keep.off, c.keep.n))
		f.recv(c.peer, s.result().At(c.give.off, c.give.n))
	}
	if partner >= 0 {
		b.Step(last)
		f.send(partner, s.result())
	}
}

// reduceBcastAllreduce uses rank 0 as the root of both phases.
func reduceBcastAllreduce(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	x := reduceTree(f, s, 0)
	if s.Rank == 0 {
		x.finish(0, s.Bytes)
	}
	t, _ := knomial(b, s.Rank, s.Size, 2)
	steps := log(s.Size, 2)
	if t.parent >= 0 {
		b.Step(steps + t.step)
		f.recv(t.parent, s.result())
	}
	for _, c := range t.children {
		b.Step(steps + c.step)
		f.send(c.rank, s.result())
	}
}
