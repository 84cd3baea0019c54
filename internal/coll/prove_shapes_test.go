package coll

import (
	"fmt"
	"math/rand"
	"slices"
)

// The calls that algorithms are proved for. Elements have three bytes, so that nothing is
// aligned by chance. Blocks of the irregular forms have random lengths, some of them
// zero, and are in random order with gaps between them, differently on each rank where
// MPI allows it (MPI-4.1 6.5 to 6.8).

const proveElem = 3

// proofCase is one call.
type proofCase struct {
	about  string
	shapes []Shape
}

// proofCases calls try with the calls of one kind among a number of ranks.
func proofCases(kind Kind, ranks int, counts []int, rng *rand.Rand, try func(proofCase)) {
	if kind == Barrier {
		counts = []int{0}
	}
	for _, count := range counts {
		for _, irregular := range choice(hasBlocks(kind) || kind == Neighbors) {
			for _, ordered := range choice(kind.Combines()) {
				for _, p := range placements(kind) {
					for _, root := range rootsOf(kind, ranks) {
						shapes := make([]Shape, ranks)
						for r := range shapes {
							shapes[r] = Shape{Kind: kind, Rank: r, Size: ranks, Root: root, Elem: proveElem, Commutes: !ordered,
								InPlace: p.at(r, root, rng), Bytes: count * proveElem}
						}
						drawBlocks(shapes, count, irregular, rng)
						try(proofCase{fmt.Sprintf("%d elements, irregular %v, ordered %v, in place %s, root %d", count, irregular, ordered, p.name, root), shapes})
					}
				}
			}
		}
	}
}

// onNodes puts the ranks of a call on nodes. The ranks of an alltoall have exchanged the
// lengths of their blocks.
func (c *proofCase) onNodes(t *Topology) {
	c.about += fmt.Sprintf(", on nodes %v", t)
	for r := range c.shapes {
		c.shapes[r].Nodes = t
	}
	if s := &c.shapes[0]; t != nil && s.Kind == Alltoall && s.Recv.irregular() {
		exchangeLengths(c.shapes)
	}
}

// exchangeLengths makes every rank know the blocks that it may have to hand on.
func exchangeLengths(shapes []Shape) {
	for r := range shapes {
		s := &shapes[r]
		var lens []int
		for _, from := range s.CarriedFrom() {
			for _, to := range s.Nodes.RanksOf(s.Nodes.NodeOf(r)) {
				lens = append(lens, shapes[from].sentTo(to).Len)
			}
		}
		err := s.SetCarried(func() (n int) {
			n, lens = lens[0], lens[1:]
			return n
		})
		if err != nil {
			panic(err)
		}
	}
}

// drawNodes assigns ranks to nodes: in equal parts, round-robin, one on each, or at
// random. It returns nil if all are on one node.
func drawNodes(ranks int, rng *rand.Rand) *Topology {
	nodes := 2 + rng.Intn(5)
	form := rng.Intn(5)
	nodeOf := make([]int, ranks)
	for r := range nodeOf {
		switch form {
		case 0:
			nodeOf[r] = r * nodes / ranks
		case 1:
			nodeOf[r] = r % nodes
		case 2:
			nodeOf[r] = r
		default:
			nodeOf[r] = rng.Intn(nodes)
		}
	}
	if form == 3 {
		slices.Sort(nodeOf)
	}
	return NewTopology(nodeOf, 1+rng.Intn(2))
}

// put returns the topology for an algorithm that needs nodes, and nil for others: two
// nodes, or one for three ranks.
func put(a *Algorithm, ranks int) *Topology {
	if !a.Needs.Nodes {
		return nil
	}
	nodeOf := make([]int, ranks)
	for r := range nodeOf {
		nodeOf[r] = r * max(2, ranks/3) / ranks
	}
	return NewTopology(nodeOf, 1)
}

// choice returns false, and also true if can is set.
func choice(can bool) []bool {
	if can {
		return []bool{false, true}
	}
	return []bool{false}
}

// placement defines which ranks are in place.
type placement struct {
	name string
	at   func(rank, root int, rng *rand.Rand) bool
}

func placements(kind Kind) []placement {
	all := []placement{{"nobody", func(int, int, *rand.Rand) bool { return false }}}
	switch {
	case kind == Barrier || kind == Bcast || kind == Neighbors:
		return all
	case kind.Rooted():
		return append(all, placement{"the root", func(rank, root int, _ *rand.Rand) bool { return rank == root }})
	}
	return append(all,
		placement{"all", func(int, int, *rand.Rand) bool { return true }},
		placement{"some", func(_, _ int, rng *rand.Rand) bool { return rng.Intn(2) == 0 }})
}

// rootsOf returns the roots to test: every rank, or, of many in a sample, the first, the
// second, one in the middle and the last.
func rootsOf(kind Kind, ranks int) []int {
	if !kind.Rooted() {
		return []int{0}
	}
	if ranks > 9 && !*proveFull {
		return []int{0, 1, ranks / 2, ranks - 1}
	}
	roots := make([]int, ranks)
	for i := range roots {
		roots[i] = i
	}
	return roots
}

// drawBlocks sets the blocks of the shapes: of count elements each, or, if irregular, of
// about as many.
func drawBlocks(shapes []Shape, count int, irregular bool, rng *rand.Rand) {
	n, kind, root := len(shapes), shapes[0].Kind, shapes[0].Root
	if kind == Neighbors {
		drawNeighbors(shapes, count, irregular, rng)
		return
	}
	if !irregular {
		for r := range shapes {
			shapes[r].Send.Each, shapes[r].Recv.Each = count*proveElem, count*proveElem
		}
		return
	}
	lens := make([][]int, n) // from, to
	for i := range lens {
		lens[i] = make([]int, n)
		for j := range lens[i] {
			lens[i][j] = rng.Intn(count+3) * proveElem
			if kind == Alltoall && j < i {
				lens[i][j] = lens[j][i] // in place, blocks sent and received have the same length
			}
		}
	}
	common, cut := lens[0], layOut(lens[0], rng)
	for r := range shapes {
		s := &shapes[r]
		switch kind {
		case Alltoall:
			s.Send, s.Recv = layOut(lens[r], rng), layOut(lens[r], rng)
		case Gather, Allgather:
			s.Recv = layOut(common, rng)
		case Scatter, ReduceScatter: // all ranks divide the data alike
			s.Send = cut
		}
	}
	if kind.Rooted() {
		for r, s := range everyone(shapes[root]) {
			shapes[r].Send, shapes[r].Recv = s.Send, s.Recv
		}
	}
}

// layOut assigns offsets to blocks.
func layOut(lens []int, rng *rand.Rand) Blocks {
	b := Blocks{Lens: slices.Clone(lens), Offs: make([]int, len(lens)), Irregular: true}
	end := 0
	for _, i := range rng.Perm(len(lens)) {
		b.Offs[i] = end + proveElem*rng.Intn(2)
		end = b.Offs[i] + lens[i]
	}
	return b
}

// drawNeighbors generates up to four edges per rank; ranks may be their own neighbors,
// also several times.
func drawNeighbors(shapes []Shape, count int, irregular bool, rng *rand.Rand) {
	n := len(shapes)
	type block struct{ send, recv []int }
	blocks := make([]block, n)
	for range rng.Intn(4*n + 1) {
		from, to, bytes := rng.Intn(n), rng.Intn(n), count*proveElem
		if irregular {
			bytes = rng.Intn(count+3) * proveElem
		}
		shapes[from].Dests = append(shapes[from].Dests, to)
		shapes[to].Sources = append(shapes[to].Sources, from)
		blocks[from].send = append(blocks[from].send, bytes)
		blocks[to].recv = append(blocks[to].recv, bytes)
	}
	for r := range shapes {
		s := &shapes[r]
		if irregular {
			s.Send, s.Recv = layOut(blocks[r].send, rng), layOut(blocks[r].recv, rng)
		} else {
			s.Send.Each, s.Recv.Each = count*proveElem, count*proveElem
		}
	}
}

// everyone returns the shapes of all ranks, derived from that of the root, or of any
// rank if there is no root. If there is one, only the root is in place. It cannot
// derive blocks that differ from rank to rank (alltoallv, neighbors).
func everyone(s Shape) []Shape {
	shapes := make([]Shape, s.Size)
	for r := range shapes {
		shapes[r] = s
		shapes[r].Rank = r
		if !s.Kind.Rooted() || r == s.Root {
			continue
		}
		shapes[r].InPlace = false
		for _, b := range []*Blocks{&shapes[r].Send, &shapes[r].Recv} {
			if b.Lens != nil {
				*b = Blocks{Each: b.Lens[r], Irregular: true}
			}
		}
	}
	return shapes
}

// prove builds the graphs of all ranks of a call and proves them.
func (a *Algorithm) prove(shapes []Shape, params []int) error {
	graphs, err := a.Graphs(shapes, params)
	if err != nil {
		return err
	}
	if err := Prove(shapes, graphs); err != nil {
		return fmt.Errorf("%s by %s %v among %d ranks: %w", a.Kind, a.Name, params, len(shapes), err)
	}
	return nil
}
