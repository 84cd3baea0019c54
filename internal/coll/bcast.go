package coll

import "github.com/muster-mpi/muster/internal/sched"

// Broadcasts (MPI-4.1 section 6.4). All work in Out and need no scratch. Ranks are
// counted from the root.

func bcastAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Bcast, Name: "binomial", Ref: "Johnsson, Ho 1989",
			About: "In every step each rank that has the data sends it to one that does not.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return m.atLeast(knomialCost(s.Size, m, 2, float64(s.Bytes)))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { treeBcast(&flow{Builder: b}, s, 2) },
		},
		{
			Kind: Bcast, Name: "knomial", Ref: "T2 3.4.1 with one block for all",
			About:  "A tree in which each rank that has the data sends it to k-1 others in a step.",
			Params: []Param{radixParam(4, 3, 8, 16)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return m.atLeast(knomialCost(s.Size, m, p[0], float64(s.Bytes)))
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { treeBcast(&flow{Builder: b}, s, p[0]) },
		},
		{
			Kind: Bcast, Name: "scatter-ring", Ref: "Barnett, Gupta, Payne, Shuler, van de Geijn, Watts 1994",
			About: "The data is scattered down a binomial tree, and the parts are forwarded around a ring.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				each := float64(s.Bytes) / float64(s.Size)
				return m.atLeast(scatterPartsCost(s, m) + float64(s.Size-1)*m.together(1, each))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { scatterBcast(b, s, collectRing) }, Ops: perRank,
		},
		{
			Kind: Bcast, Name: "scatter-doubling", Ref: "Barnett et al. 1994; for any number of ranks as Bruck, Ho, Kipnis, Upfal, Weathersby 1997",
			About: "The data is scattered down a binomial tree and collected in log2 N exchanges of doubling length.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				n := float64(s.Size)
				return m.atLeast(scatterPartsCost(s, m) + m.halves(s.Size, float64(s.Bytes)) + m.bytes(1, 1, float64(s.Bytes)*(n-1)/n))
			},
			Build: func(b *sched.Builder, s *Shape, _ []int) { scatterBcast(b, s, collectDoubling) },
		},
		{
			Kind: Bcast, Name: "chain", Ref: "Watts, van de Geijn 1995",
			Along:  true,
			About:  "Segments are pipelined along a chain of all ranks.",
			Params: []Param{segmentParam(64<<10, 8<<10, 16<<10, 32<<10, 128<<10, 256<<10)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				k := segments(s.Bytes, s.Elem, p[0])
				return pipelineCost(s, m, s.Size-1, k, 0)
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { chainBcast(&flow{Builder: b}, s, p[0]) },
		},
	}
}

// pipelineCost returns the time of k segments over a number of hops, with a reduction
// that takes reduce per byte after each hop: the first segment takes all hops, the
// others follow at the rate of the slowest part of a hop.
func pipelineCost(s *Shape, m *Model, hops, k int, reduce float64) float64 {
	if hops == 0 {
		return m.atLeast(0)
	}
	each := float64(s.Bytes) / float64(k)
	message := m.together(1, each)
	follow := message / float64(max(m.Ports, 1))
	if m.striped(each) { // a segment uses all ports; handshakes of later segments overlap
		follow = min(message, m.Startup+m.bytes(1, 1, each))
	}
	follow = max(follow, reduce*each)
	return float64(hops)*(message+reduce*each) + float64(k-1)*follow
}

func segmentParam(values ...int) Param {
	return Param{Name: "segment", Values: values, About: "bytes per message"}
}

// treeBcast sends the whole data down a k-nomial tree.
func treeBcast(f *flow, s *Shape, radix int) {
	t, ok := knomial(f.Builder, wrap(s.Rank-s.Root, s.Size), s.Size, radix)
	if !ok {
		return
	}
	t = t.rotate(s.Root, s.Size)
	whole := s.result()
	if t.parent >= 0 {
		f.Step(t.step)
		f.recv(t.parent, whole)
	}
	for _, c := range t.children {
		f.Step(c.step)
		f.send(c.rank, whole)
	}
}

// parted is data divided into a part for each rank, with ranks counted from the root.
type parted struct {
	f    *flow
	s    *Shape
	rank int // from the root
}

// span returns parts i to j-1.
func (d *parted) span(i, j int) sched.Span {
	from, _ := part(d.s.Bytes, d.s.Elem, i, d.s.Size)
	last, n := part(d.s.Bytes, d.s.Elem, j-1, d.s.Size)
	return d.s.result().At(from, last+n-from)
}

// peer returns the rank with index i, counted from the root.
func (d *parted) peer(i int) int { return wrap(i+d.s.Root, d.s.Size) }

// scatterBcast sends every rank the parts of its subtree in a binomial tree, and then
// collects the rest. A rank never receives a part that it has from the scatter, so the
// root receives nothing.
func scatterBcast(b *sched.Builder, s *Shape, collect func(d *parted, step int)) {
	d := &parted{&flow{Builder: b}, s, wrap(s.Rank-s.Root, s.Size)}
	t, _ := knomial(b, d.rank, s.Size, 2)
	if t.parent >= 0 {
		b.Step(t.step)
		d.f.recv(d.peer(t.parent), d.span(d.rank, d.rank+t.span))
	}
	for _, c := range t.children {
		b.Step(c.step)
		d.f.send(d.peer(c.rank), d.span(c.rank, c.rank+c.span))
	}
	collect(d, log(s.Size, 2))
}

func scatterPartsCost(s *Shape, m *Model) float64 {
	n := float64(s.Size)
	return m.halves(s.Size, float64(s.Bytes)) + m.bytes(1, 1, float64(s.Bytes)*(n-1)/n)
}

// has reports whether a rank has a part from the scatter.
func (d *parted) has(rank, i int) bool {
	span := d.s.Size
	if rank > 0 {
		span = rank & -rank
	}
	return i >= rank && i < rank+span
}

// collectRing forwards parts up the ring: in step i the part from i ranks below.
func collectRing(d *parted, step int) {
	n := d.s.Size
	up, down := wrap(d.rank+1, n), wrap(d.rank-1, n)
	for i := range n - 1 {
		d.f.Step(step + i)
		if p := wrap(d.rank-i, n); !d.has(up, p) {
			d.f.send(d.peer(up), d.span(p, p+1))
		}
		if p := wrap(d.rank-1-i, n); !d.has(d.rank, p) {
			d.f.recv(d.peer(down), d.span(p, p+1))
		}
	}
}

// collectDoubling: a rank with c parts, beginning with its own, receives the next c, or
// as many as are missing, from the rank c above.
func collectDoubling(d *parted, step int) {
	n := d.s.Size
	for c := 1; c < n; c *= 2 {
		d.f.Step(step)
		step++
		more := min(c, n-c)
		up, down := wrap(d.rank+c, n), wrap(d.rank-c, n)
		d.missing(down, d.rank, more, func(at sched.Span) { d.f.send(d.peer(down), at) })
		d.missing(d.rank, up, more, func(at sched.Span) { d.f.recv(d.peer(up), at) })
	}
}

// missing calls give with those of the count parts from first, around the ring, that a
// rank does not have from the scatter, in as few spans as possible.
func (d *parted) missing(rank, first, count int, give func(sched.Span)) {
	from, to := 0, 0
	for i := first; i < first+count; i++ {
		p := wrap(i, d.s.Size)
		if d.has(rank, p) {
			continue
		}
		if from < to && p == to {
			to++
			continue
		}
		if from < to {
			give(d.span(from, to))
		}
		from, to = p, p+1
	}
	if from < to {
		give(d.span(from, to))
	}
}

// chainBcast pipelines segments. Every segment is received at its final offset, so all
// receives are posted at once.
func chainBcast(f *flow, s *Shape, segment int) {
	rank := wrap(s.Rank-s.Root, s.Size)
	k := segments(s.Bytes, s.Elem, segment)
	for i := range k {
		off, n := part(s.Bytes, s.Elem, i, k)
		at := s.result().At(off, n)
		if rank > 0 {
			f.Step(i + rank - 1)
			f.recv(wrap(s.Rank-1, s.Size), at)
		}
		if rank < s.Size-1 {
			f.Step(i + rank)
			f.send(wrap(s.Rank+1, s.Size), at)
		}
	}
}
