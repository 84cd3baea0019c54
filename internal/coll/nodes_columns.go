package coll

import "github.com/muster-mpi/muster/internal/sched"

// Reductions of long data by columns. The data is divided into columns, one for each
// rank of the largest node, and every node has a rank that holds a column:
//
//	phase 1   the ranks of a node send every column to its holder, which combines them
//	phase 2   the holders of a column on all nodes reduce it to the root's node, or
//	          among all nodes
//	phase 3   the holders of a node send the results to its root, or to its other ranks
//
// All ranks of a node take part in each phase, where algorithms with leaders keep one
// core and one connection busy. Every cable carries the data once in each direction for
// a reduce, and twice less two shares of the nodes for an allreduce.
//
// Columns are divided into segments, which depend on each other only where they share
// scratch: a segment is combined within the node while another is on the network. Every
// segment of a column has a stream of its own, so none waits behind an earlier phase of
// another.

func nodesColumnsAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Reduce, Name: "node-columns", Ref: "Träff, Hunold 2020; Watts, van de Geijn 1995, in reverse",
			About:  "Each rank of a node combines one column of the node's data, segments of which are pipelined along a chain of the nodes to the root: for long data.",
			Needs:  Needs{Nodes: true, Commutes: true},
			Params: []Param{segmentParam(64<<10, 32<<10, 128<<10, 256<<10)},
			Cost:   columnsReduceCost,
			Build:  columnsReduce,
		},
		{
			Kind: Allreduce, Name: "node-columns", Ref: "Träff, Hunold 2020; Rabenseifner 2004 or Träff 2024 between nodes",
			About:  "Each rank of a node combines one column of the node's data, exchanges ever smaller parts of it with other nodes, collects them again and gives the result to its node: for long data.",
			Needs:  Needs{Nodes: true, Commutes: true},
			Params: []Param{segmentParam(256<<10, 64<<10, 128<<10, 1<<20)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return columnsAllreduceCost(s, m, p[0], halvingExchange)
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { columnsAllreduce(b, s, p[0], halvingExchange) },
		},
		{
			Kind: Allreduce, Name: "node-columns-ring", Ref: "Träff, Hunold 2020; Patarasuk, Yuan 2009 between nodes",
			About:  "Like node-columns, with a ring of the nodes for each column: a rank communicates with two other nodes only.",
			Needs:  Needs{Nodes: true, Commutes: true},
			Params: []Param{segmentParam(256<<10, 64<<10, 128<<10, 1<<20)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return columnsAllreduceCost(s, m, p[0], ringExchange)
			},
			Build: func(b *sched.Builder, s *Shape, p []int) { columnsAllreduce(b, s, p[0], ringExchange) },
		},
	}
}

// columns is the division of the data of one rank's call.
type columns struct {
	f        *flow
	s        *Shape
	t        *Topology
	node     int
	local    []int
	count    int // columns
	segments int // of a column
	room     *room
}

// columnCount returns the number of columns: enough that every rank of every node has
// work, and that there is a message for every rail.
func (t *Topology) columnCount() int { return max(t.most, t.Rails) }

// columnSegments returns the number of segments of a column.
func (s *Shape) columnSegments(want int) int {
	const most = 64 // each adds operations of all ranks of a node
	n := s.Nodes.columnCount()
	return min(segments((s.Bytes+n-1)/n, s.Elem, want), most, max(sched.Streams/n, 1))
}

func newColumns(b *sched.Builder, s *Shape, segment int) *columns {
	t := s.Nodes
	node := t.NodeOf(s.Rank)
	c := &columns{f: &flow{Builder: b}, s: s, t: t, node: node, local: t.RanksOf(node), count: t.columnCount(), segments: s.columnSegments(segment)}
	// Scratch for the values of a few segments under way.
	each := s.Bytes/(c.count*c.segments) + max(s.Elem, 1)
	c.room = &room{f: c.f, most: 4 * each * (len(c.local) + 1)}
	return c
}

// holder returns the rank of a node that combines a column. Ranks of a node with fewer
// ranks than there are columns hold several.
func (c *columns) holder(node, column int) int {
	ranks := c.t.RanksOf(node)
	return ranks[column*len(ranks)/c.count]
}

// holders returns the holders of a column on all nodes.
func (c *columns) holders(column int) []int {
	list := make([]int, c.t.Nodes())
	for n := range list {
		list[n] = c.holder(n, column)
	}
	return list
}

// each calls do for every segment of every column, segment by segment. A rank begins
// with the columns that follow its own, so that the ranks of a node do not all send to
// the same one.
func (c *columns) each(do func(column, segment int, at reach)) {
	own := c.t.LocalRankOf(c.s.Rank) * c.count / len(c.local)
	for segment := range c.segments {
		for i := range c.count {
			column := wrap(own+i, c.count)
			off, n := part(c.s.Bytes, c.s.Elem, column, c.count)
			inside, length := part(n, c.s.Elem, segment, c.segments)
			c.f.Stream(segment*c.count + column)
			do(column, segment, reach{off + inside, length})
		}
	}
}

// combine is phase 1 for a segment of a column: it returns the value of the node at its
// holder, which will be combined with a number of further values, and nil elsewhere.
func (c *columns) combine(holder int, at reach, anywhere bool, further int) *accumulator {
	own := c.s.data().At(at.off, at.n)
	if holder != c.s.Rank {
		c.f.send(holder, own)
		return nil
	}
	others := len(c.local) - 1
	x := newAccumulator(c.f, true, own, c.s.result().At(at.off, at.n), anywhere, make([]side, others+further))
	x.room = c.room
	for i := range others {
		peer := c.local[wrap(c.t.LocalRankOf(holder)-1-i, len(c.local))]
		x.meet(peer, 0, at.n, left)
	}
	return x
}

// columnsReduce: the chain of a column begins at the node after the root's and ends at
// the root's. It has one direction, so that no cable carries the data twice.
func columnsReduce(b *sched.Builder, s *Shape, params []int) {
	c := newColumns(b, s, params[0])
	nodes, rootNode := c.t.Nodes(), c.t.NodeOf(s.Root)
	hops := wrap(c.node-rootNode-1, nodes) // from the beginning of the chain
	c.each(func(column, segment int, at reach) {
		b.Step(segment)
		holder := c.holder(c.node, column)
		before, last := min(hops, 1), hops == nodes-1
		x := c.combine(holder, at, s.Rank != s.Root, before)
		switch {
		case x == nil && s.Rank == s.Root:
			b.Step(segment + nodes)
			c.f.recv(holder, s.result().At(at.off, at.n))
			return
		case x == nil:
			return
		}
		if before > 0 {
			b.Step(segment + hops)
			x.meet(c.holder(wrap(c.node-1, nodes), column), 0, at.n, left)
		}
		b.Step(segment + hops + 1)
		switch {
		case !last:
			c.f.send(c.holder(wrap(c.node+1, nodes), column), x.part(0, at.n))
		case s.Rank == s.Root:
			x.finish(0, at.n)
		default:
			c.f.send(s.Root, x.part(0, at.n))
		}
	})
}

// columnsAllreduce uses an exchange between nodes.
func columnsAllreduce(b *sched.Builder, s *Shape, segment int, between groupAllreduce) {
	c := newColumns(b, s, segment)
	nodes := c.t.Nodes()
	c.each(func(column, segment int, at reach) {
		b.Restrict(nil, segment)
		holder, out := c.holder(c.node, column), s.result().At(at.off, at.n)
		x := c.combine(holder, at, false, 0)
		after := segment + 1 + 2*between.rounds(nodes)
		if x == nil {
			b.Restrict(nil, after)
			c.f.recv(holder, out)
			return
		}
		b.Restrict(c.holders(column), segment+1)
		between.build(c.f, group{c.node, nodes, s.Elem}, x.part(0, at.n), out)
		b.Restrict(nil, after)
		for i := 1; i < len(c.local); i++ {
			c.f.send(c.local[wrap(c.t.LocalRankOf(s.Rank)+i, len(c.local))], out)
		}
	})
}

// columnsCost holds the costs of a segment.
type columnsCost struct {
	m, far  *Model  // far: all holders of a node send at the same time
	ranks   int     // holders of a node
	bytes   float64 // of a rank
	count   int     // segments
	combine float64 // phase 1
	collect float64 // phase 3, if the whole node gets the result
}

func newColumnsCost(s *Shape, m *Model, segment int) *columnsCost {
	t := s.Nodes
	most, fewest, columns := t.most, t.fewest, t.columnCount()
	k := s.columnSegments(segment)
	held := (columns + fewest - 1) / fewest // columns of a rank of the smallest node
	c := &columnsCost{m: m, ranks: (columns + held - 1) / held, bytes: float64(s.Bytes*held) / float64(columns*k), count: k}
	far := m.amongNodes(c.ranks, 1)
	c.far = &far
	near, others, each := m.inNode(), most-1, float64(s.Bytes)/float64(columns*k)
	if m.TimeSlices { // two or more ranks of the node copy and reduce on each core
		near.PerByte *= max(float64(most)/2, 1)
		near.Reduce *= max(float64(most)/2, 1)
	}
	c.collect = near.together(others, each)
	c.combine = c.collect + float64(others)*near.Reduce*each
	return c
}

// round returns the time of a message of n bytes from every holder. With time slices the
// other holders run while the first message is on the cable.
func (c *columnsCost) round(n float64) float64 {
	bytes := c.far.bytes(1, 1, n)
	if c.m.TimeSlices {
		bytes = max(bytes, float64(c.ranks-1)*c.m.startup(n)+c.far.Message)
	}
	return c.m.startup(n) + bytes
}

// pipeline returns the time of all segments if one takes near within nodes and far
// between them, and occupies the network for hop. With time slices the cores that copy
// within nodes send as well.
func (c *columnsCost) pipeline(near, far, hop float64) float64 {
	next := max(near, hop)
	if c.m.TimeSlices {
		next = max(near+c.far.Startup+2*c.bytes*c.far.PerByte, hop)
	}
	return near + far + float64(c.count-1)*next
}

func columnsReduceCost(s *Shape, m *Model, params []int) float64 {
	c := newColumnsCost(s, m, params[0])
	hop := c.round(c.bytes) + m.Reduce*c.bytes
	return m.atLeast(c.pipeline(c.combine, float64(s.nodeCount()-1)*hop, hop) + c.collect)
}

func columnsAllreduceCost(s *Shape, m *Model, segment int, between groupAllreduce) float64 {
	c := newColumnsCost(s, m, segment)
	far, each := 0.0, c.bytes/float64(s.nodeCount())
	for i := range between.rounds(s.nodeCount()) {
		n := each
		if between.halves {
			n = c.bytes / float64(int(2)<<i)
		}
		far += 2*c.round(n) + m.Reduce*n
	}
	return m.atLeast(c.pipeline(c.combine+c.collect, far, far))
}
