package coll

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// Reductions by columns beyond the matrix: nodes of very different sizes, more rails
// than ranks on a node, and many short segments.

// columnTopologies are the nodes of these tests.
func columnTopologies() []*Topology {
	return []*Topology{
		Consecutive(2, 4, 4, 4, 4),
		Consecutive(2, 4, 4, 4, 2),
		Consecutive(1, 1, 3),
		Consecutive(1, 5, 1, 2),
		Consecutive(3, 1, 1, 1),
		Consecutive(3, 2, 1, 2, 2, 1),
		NewTopology([]int{0, 1, 2, 0, 1, 2, 0, 0}, 1),
		NewTopology([]int{3, 1, 1, 3, 2, 1}, 2),
	}
}

// columnAlgorithms are the algorithms of these tests.
func columnAlgorithms() (list []*Algorithm) {
	for _, a := range nodesColumnsAlgorithms() {
		list = append(list, &a)
	}
	return list
}

// columnShapes calls try with calls in place and not, for several roots.
func columnShapes(a *Algorithm, t *Topology, count int, rng *rand.Rand, try func(about string, shapes []Shape)) {
	size := t.Size()
	for _, p := range placements(a.Kind) {
		for _, root := range rootsOf(a.Kind, size) {
			shapes := make([]Shape, size)
			for r := range shapes {
				shapes[r] = Shape{Kind: a.Kind, Rank: r, Size: size, Root: root, Elem: 2, Commutes: true,
					InPlace: p.at(r, root, rng), Bytes: 2 * count, Nodes: t}
			}
			try(fmt.Sprintf("%s by %s on %v with %d rails, %d elements, in place %s, root %d",
				a.Kind, a.Name, t, t.Rails, count, p.name, root), shapes)
		}
	}
}

func TestColumns(t *testing.T) {
	rng := rand.New(rand.NewSource(18))
	for _, a := range columnAlgorithms() {
		for _, nodes := range columnTopologies() {
			for _, count := range []int{1, 7, 153} {
				columnShapes(a, nodes, count, rng, func(about string, shapes []Shape) {
					for _, segment := range []int{2, 10, 64} {
						if err := a.prove(shapes, []int{segment}); err != nil {
							t.Fatalf("%s, segments of %d: %v", about, segment, err)
						}
						for range 4 { // random delays
							if err := execute(a, shapes, []int{segment}, rng); err != nil {
								t.Fatalf("%s, segments of %d: %v", about, segment, err)
							}
						}
					}
				})
			}
		}
	}
}

// TestColumnsTraffic checks that no cable carries more than it must: the data once for a
// reduce, and a part for every other node twice for an allreduce.
func TestColumnsTraffic(t *testing.T) {
	const bytes = 1 << 20
	for _, a := range columnAlgorithms() {
		for _, nodes := range columnTopologies() {
			n := nodes.Nodes()
			most := bytes
			if a.Kind == Allreduce {
				most = 2*bytes*(n-1)/n + 64*nodes.columnCount()*n
			}
			s := Shape{Kind: a.Kind, Size: nodes.Size(), Root: 1, Elem: 4, Bytes: bytes, Commutes: true, Nodes: nodes}
			var graphs []*sched.Graph
			for _, s := range everyone(s) {
				var b sched.Builder
				g, err := a.Graph(&b, &s, a.Default())
				if err != nil {
					t.Fatal(err)
				}
				if limit := 3 * bytes; g.Tmp > limit {
					t.Errorf("%s by %s on %v: rank %d needs %d bytes of scratch, more than %d", a.Kind, a.Name, nodes, s.Rank, g.Tmp, limit)
				}
				graphs = append(graphs, g)
			}
			traffic, err := sched.TrafficOf(graphs, nodes.NodeList())
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range traffic {
				if c.Sent > most || c.Received > most {
					t.Errorf("%s by %s on %v: node %d sends %d and receives %d bytes, more than %d", a.Kind, a.Name, nodes, i, c.Sent, c.Received, most)
				}
			}
		}
	}
}

// TestAlltoallColumnsLengths checks an alltoall by columns with blocks of different
// lengths, some of them empty, whose lengths are exchanged by the call for that.
func TestAlltoallColumnsLengths(t *testing.T) {
	const elem = 4
	rng := rand.New(rand.NewSource(18))
	a, err := Find(Alltoall, "node-columns")
	if err != nil {
		t.Fatal(err)
	}
	lengths, err := Find(Neighbors, "direct")
	if err != nil {
		t.Fatal(err)
	}
	for _, nodes := range columnTopologies() {
		proofCases(Alltoall, nodes.Size(), []int{1, 40}, rng, func(c proofCase) {
			if !c.shapes[0].Recv.irregular() {
				return
			}
			if ok, why := Applicable(a, &c.shapes[0]); ok || why == "" {
				t.Fatalf("%s: applicable although ranks do not know the lengths", c.about)
			}
			c.onNodes(nodes)
			calls := make([]Shape, len(c.shapes))
			for r := range calls {
				calls[r] = *c.shapes[r].LengthsCall(elem)
				count, carried := 0, 0
				c.shapes[r].Lengths(func(int) { count++ })
				for _, b := range c.shapes[r].Carried {
					carried += len(b.Lens)
				}
				if in, out := sum(calls[r].Send.Lens), len(calls[r].Sources)*calls[r].Recv.Each; in != count*elem || out != carried*elem {
					t.Fatalf("%s: rank %d sends %d lengths in %d bytes and receives %d in %d", c.about, r, count, in, carried, out)
				}
			}
			if err := lengths.prove(calls, lengths.Default()); err != nil {
				t.Fatalf("%s: the exchange of lengths: %v", c.about, err)
			}
			if err := a.prove(c.shapes, nil); err != nil {
				t.Fatalf("%s: %v", c.about, err)
			}
			for range 4 { // random delays
				if err := execute(a, c.shapes, nil, rng); err != nil {
					t.Fatalf("%s: %v", c.about, err)
				}
			}
		})
	}
}

// TestCarriedRefused checks lengths that no block can have.
func TestCarriedRefused(t *testing.T) {
	for _, bad := range []int{-1, maxCarried + 1} {
		s := Shape{Kind: Alltoall, Size: 4, Nodes: Consecutive(1, 2, 2)}
		if err := s.SetCarried(func() int { return bad }); err == nil {
			t.Errorf("a block of %d bytes is accepted", bad)
		}
	}
}
