package coll

import "github.com/muster-mpi/muster/internal/sched"

// Prefix reductions (MPI-4.1 sections 6.11.1 and 6.11.2). Values always come from lower
// ranks, so operands are in order.

func scanAlgorithms() []Algorithm {
	doubling := func(s *Shape, m *Model, reductions int) float64 {
		n := float64(s.Bytes)
		return m.atLeast(float64(log(s.Size, 2))*m.together(1, n) + float64(max(reductions, 0))*m.Reduce*n)
	}
	list := []Algorithm{
		{
			Kind: Scan, Name: "recursive-doubling", Ref: "Hillis, Steele 1986",
			About: "In round i every rank sends its value to the rank 2^i above, which combines it on the left of its own.",
			Far:   scanFar,
			Cost:  func(s *Shape, m *Model, _ []int) float64 { return doubling(s, m, log(s.Size, 2)) },
			Build: doublingScan,
		},
		{
			Kind: Exscan, Name: "recursive-doubling", Ref: "Hillis, Steele 1986",
			About: "Like the scan, with a second value that excludes the rank's own.",
			Far:   scanFar,
			Cost:  func(s *Shape, m *Model, _ []int) float64 { return doubling(s, m, 2*log(s.Size, 2)-2) },
			Build: doublingExscan,
		},
	}
	list = append(list, chainScans(Scan, "MPI-4.1 section 6.11.1", chainScan)...)
	return append(list, chainScans(Exscan, "MPI-4.1 section 6.11.2", chainExscan)...)
}

// chainScans are the algorithms of a kind whose value goes from rank to rank.
func chainScans(kind Kind, ref string, build func(b *sched.Builder, s *Shape, k int)) []Algorithm {
	return []Algorithm{
		{
			Kind: kind, Name: "linear", Ref: ref,
			About: "The value grows from rank to rank.",
			Along: true,
			Cost:  func(s *Shape, m *Model, _ []int) float64 { return chainScanCost(s, m, 1) },
			Build: func(b *sched.Builder, s *Shape, _ []int) { build(b, s, 1) },
		},
		{
			Kind: kind, Name: "chain", Ref: "Watts, van de Geijn 1995, with a reduction",
			About:  "The value grows from rank to rank, in segments one behind the other.",
			Along:  true,
			Params: []Param{segmentParam(64<<10, 8<<10, 16<<10, 32<<10, 128<<10, 256<<10)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return chainScanCost(s, m, segments(s.Bytes, s.Elem, p[0]))
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { build(b, s, segments(s.Bytes, s.Elem, p[0])) },
		},
	}
}

// chainScanCost: the first of k segments finds idle ranks, and leaves each node once if
// ranks are consecutive. The others follow as in any pipeline.
func chainScanCost(s *Shape, m *Model, k int) float64 {
	if m.hop == nil {
		return pipelineCost(s, m, s.Size-1, k, m.Reduce)
	}
	each := float64(s.Bytes) / float64(k)
	near, far := m.hop.inNode(), s.nodeCount()-1
	first := float64(far)*m.hop.together(1, each) + float64(s.Size-1-far)*near.together(1, each)
	all, one := pipelineCost(s, m, s.Size-1, k, m.Reduce), float64(s.Size-1)*m.together(1, each)
	return first + all - one
}

// doublingScan: after round i the value is that of the 2^(i+1) ranks up to this one, or
// of all lower ranks if there are fewer.
func doublingScan(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	x := newAccumulator(f, s.Commutes, s.data(), s.result(), false, make([]side, log(s.Rank+1, 2)))
	step := 0
	for d := 1; d < s.Size; d *= 2 {
		b.Step(step)
		step++
		if s.Rank+d < s.Size {
			f.send(s.Rank+d, x.part(0, s.Bytes))
		}
		if s.Rank >= d {
			x.meet(s.Rank-d, 0, s.Bytes, left)
		}
	}
	x.finish(0, s.Bytes)
}

func chainScan(b *sched.Builder, s *Shape, k int) {
	f := &flow{Builder: b}
	under := &room{f: f, most: 4 * ((s.Bytes + k - 1) / k)}
	for i := range k {
		off, n := part(s.Bytes, s.Elem, i, k)
		x := newAccumulator(f, s.Commutes, s.data().At(off, n), s.result().At(off, n), false, make([]side, min(s.Rank, 1)))
		x.room = under
		if s.Rank > 0 {
			b.Step(i + s.Rank - 1)
			x.meet(s.Rank-1, 0, n, left)
		}
		if s.Rank < s.Size-1 {
			b.Step(i + s.Rank)
			f.send(s.Rank+1, x.part(0, n))
		}
		x.finish(0, n)
	}
}

// doublingExscan combines a received value on the left of the value to send, which
// includes the rank's own, and of the result, which does not. The first received value
// is the initial result.
func doublingExscan(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	scratch := &room{f: f, most: 4 * s.Bytes}
	with := s.data() // the value to send
	step := 0
	for d := 1; d < s.Size; d *= 2 {
		b.Step(step)
		step++
		if s.Rank+d < s.Size {
			f.send(s.Rank+d, with)
		}
		if s.Rank < d {
			continue
		}
		sendsOn := s.Rank+2*d < s.Size
		if d == 1 {
			if sendsOn {
				with = b.Tmp(s.Bytes)
				f.copy(with, s.data())
			}
			f.recv(s.Rank-d, s.result())
			if sendsOn {
				f.reduce(with, s.result())
			}
			continue
		}
		below := scratch.get(s.Bytes, with)
		f.recv(s.Rank-d, below)
		f.reduce(s.result(), below)
		if sendsOn {
			f.reduce(with, below)
		}
	}
}

func chainExscan(b *sched.Builder, s *Shape, k int) {
	f := &flow{Builder: b}
	under := &room{f: f, most: 4 * ((s.Bytes + k - 1) / k)}
	last := s.Rank == s.Size-1
	for i := range k {
		off, n := part(s.Bytes, s.Elem, i, k)
		with, out := s.data().At(off, n), s.result().At(off, n)
		if s.Rank > 0 {
			if !last {
				with = under.get(n, sched.Span{})
				f.copy(with, s.data().At(off, n))
			}
			b.Step(i + s.Rank - 1)
			f.recv(s.Rank-1, out)
			if !last {
				f.reduce(with, out)
			}
		}
		if !last {
			b.Step(i + s.Rank)
			f.send(s.Rank+1, with)
		}
	}
}
