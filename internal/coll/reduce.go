package coll

import "github.com/muster-mpi/muster/internal/sched"

// Reductions to a root (MPI-4.1 section 6.9.1). Ranks are not counted from the root:
// every value combines consecutive ranks, so operations that do not commute are correct
// with any root, and no additional message to the root is needed.

func reduceAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Reduce, Name: "binomial", Ref: "Johnsson, Ho 1989; halves in the order of ranks",
			About: "The ranks are halved recursively; the half without the root sends its value to the other.",
			Far:   treeFar,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return m.atLeast(reduceTreeCost(s, m))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) {
				x := reduceTree(&flow{Builder: b}, s, s.Root)
				x.finish(0, s.Bytes)
			},
		},
		{
			Kind: Reduce, Name: "rabenseifner", Ref: "Rabenseifner 2004",
			About: "Halves of the data are exchanged and reduced, then quarters, and so on; the root collects the parts.",
			Far:   halvingFar,
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				n := float64(power(s.Size))
				return m.atLeast(foldedCost(s, m, false) + halvingCost(s, m) + m.halves(power(s.Size), float64(s.Bytes)) + m.bytes(1, 1, (n-1)/n*float64(s.Bytes)))
			},
			Build: rabenseifnerReduce,
		},
		{
			Kind: Reduce, Name: "chain", Ref: "Watts, van de Geijn 1995, in reverse",
			Along:  true,
			About:  "Segments are pipelined from both ends of the ranks to the root.",
			Params: []Param{segmentParam(64<<10, 8<<10, 16<<10, 32<<10, 128<<10, 256<<10)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				k := segments(s.Bytes, s.Elem, p[0])
				if s.Root > 0 && s.Root < s.Size-1 { // the root receives from both sides
					both := *m
					both.Ports = max(m.Ports/2, 1)
					return pipelineCost(s, &both, max(s.Root, s.Size-1-s.Root), k, 2*m.Reduce)
				}
				return pipelineCost(s, m, s.Size-1, k, m.Reduce)
			},
			Build: chainReduce,
		},
	}
}

// meeting is one step of a rank in a recursive reduction: it receives the value of the
// other half from a peer, or sends its own.
type meeting struct {
	peer int
	send bool
	step int
}

// meetings returns the steps of a rank in order. Ranks are halved recursively; the part
// without the root is led by its lowest rank; a leader sends or receives when it has the
// value of its part.
func meetings(rank, size, root int) (list []meeting) {
	for from, to := 0, size; to-from > 1; {
		middle := from + (to-from+1)/2
		step := log(to-from, 2) - 1
		other := middle // leader of the part without the root
		if root >= middle {
			other = from
		}
		switch rank {
		case root:
			list = append(list, meeting{other, false, step})
		case other:
			list = append(list, meeting{root, true, step})
		}
		if rank < middle {
			to = middle
		} else {
			from = middle
		}
		if (rank < middle) == (other < middle) {
			root = other
		}
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// reduceTree leaves the value of all ranks in the accumulator of the root.
func reduceTree(f *flow, s *Shape, root int) *accumulator {
	return reduceTreeFrom(f, s, root, s.data(), s.Rank != root)
}

// reduceTreeFrom is reduceTree with the rank's own value in any span. If anywhere is
// set, the result may be left in any span.
func reduceTreeFrom(f *flow, s *Shape, root int, own sched.Span, anywhere bool) *accumulator {
	list := meetings(s.Rank, s.Size, root)
	var sides []side
	for _, m := range list {
		if !m.send {
			sides = append(sides, sideOf(m.peer, s.Rank))
		}
	}
	x := newAccumulator(f, s.Commutes, own, s.result(), anywhere, sides)
	for _, m := range list {
		f.Step(m.step)
		if m.send {
			f.send(m.peer, x.part(0, s.Bytes))
		} else {
			x.meet(m.peer, 0, s.Bytes, sideOf(m.peer, s.Rank))
		}
	}
	return x
}

func reduceTreeCost(s *Shape, m *Model) float64 {
	return float64(log(s.Size, 2)) * (m.together(1, float64(s.Bytes)) + m.Reduce*float64(s.Bytes))
}

// rabenseifnerReduce: after the halving every participating rank has a part. The parts
// are joined in reverse order, each time at the side of the root.
func rabenseifnerReduce(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	h, x := halving(f, s, s.Root)
	if h.out {
		return
	}
	goal := h.index(s.Root)
	for i := len(h.cuts) - 1; i >= 0; i-- {
		c := h.cuts[i]
		b.Step(h.step)
		h.step++
		if h.rank&c.distance != goal&c.distance {
			f.send(c.peer, x.part(c.keep.off, c.keep.n))
			return
		}
		f.recv(c.peer, x.part(c.give.off, c.give.n))
	}
}

// chainReduce: ranks below the root combine the value from below with their own and send
// it up; ranks above the root do the same downwards.
func chainReduce(b *sched.Builder, s *Shape, params []int) {
	f := &flow{Builder: b}
	k := segments(s.Bytes, s.Elem, params[0])
	var from []int
	to, last := -1, s.Size-1
	if s.Rank <= s.Root && s.Rank > 0 {
		from = append(from, s.Rank-1)
	}
	if s.Rank >= s.Root && s.Rank < last {
		from = append(from, s.Rank+1)
	}
	hops := s.Rank // of a segment until it arrives here
	switch {
	case s.Rank < s.Root:
		to = s.Rank + 1
	case s.Rank > s.Root:
		to = s.Rank - 1
		hops = last - s.Rank
	default:
		hops = max(s.Root, last-s.Root)
	}
	var sides []side
	for _, peer := range from {
		sides = append(sides, sideOf(peer, s.Rank))
	}
	under := &room{f: f, most: 4 * ((s.Bytes + k - 1) / k)} // shared by the segments under way
	for i := range k {
		off, n := part(s.Bytes, s.Elem, i, k)
		x := newAccumulator(f, s.Commutes, s.data().At(off, n), s.result().At(off, n), s.Rank != s.Root, sides)
		x.room = under
		for _, peer := range from {
			b.Step(i + hops - 1)
			x.meet(peer, 0, n, sideOf(peer, s.Rank))
		}
		if to >= 0 {
			b.Step(i + hops)
			f.send(to, x.part(0, n))
		}
		x.finish(0, n)
	}
}
