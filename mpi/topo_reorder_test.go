package mpi

// The results of Near, counted in edges between nodes. It must always return a valid
// order.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// dealt assigns ranks to nodes: in blocks, or round-robin.
func dealt(nodes, each int, round bool) []int {
	out := make([]int, nodes*each)
	for r := range out {
		if out[r] = r / each; round {
			out[r] = r % nodes
		}
	}
	return out
}

// Directed edges: an undirected pair counts twice.
func TestNearOnGrids(t *testing.T) {
	for _, k := range []struct {
		what    string
		dims    []int
		periods []bool
		nodes   []int
		before  int // edges between nodes with ranks in their order
		after   int // at most so many with Near
	}{
		// 4 nodes take rows of 2 × 8: 3 walls of 8. Blocks of 4 × 4: 2 walls of 8.
		{"8 × 8 on 4 nodes", []int{8, 8}, nil, dealt(4, 16, false), 48, 32},
		{"8 × 8 on 4 nodes, dealt round", []int{8, 8}, nil, dealt(4, 16, true), 112, 32},
		{"ring of 8 × 8", []int{8, 8}, []bool{true, true}, dealt(4, 16, false), 64, 64},
		{"ring of 12 × 12 on 9 nodes", []int{12, 12}, []bool{true, true}, dealt(9, 16, false), 240, 144},
		{"4 × 4 × 4 on 8 nodes", []int{4, 4, 4}, nil, dealt(8, 8, false), 128, 96},
		{"a line", []int{24}, nil, dealt(4, 6, true), 46, 6},
		{"a line in order", []int{24}, nil, dealt(4, 6, false), 6, 6},
		{"one node", []int{4, 4}, nil, dealt(1, 16, false), 0, 0},
		{"a node for each rank", []int{3, 3}, nil, dealt(9, 1, false), 24, 24},
		{"7 ranks a node do not divide 6 × 7 squarely", []int{6, 7}, nil, dealt(6, 7, true), 142, 62},
		{"nodes of 5, 9 and 2", []int{4, 4}, nil, []int{0, 1, 2, 1, 0, 1, 1, 0, 1, 2, 1, 0, 1, 1, 0, 1}, 34, 14},
		{"more ranks than places", []int{3, 4}, nil, dealt(4, 6, true), 18, 6},
	} {
		t.Run(k.what, func(t *testing.T) {
			a := gridArrangement(k.dims, k.periods, k.nodes)
			order := Near(a)
			wantOrder(t, a, order)
			before, after := a.Crossing(nil), a.Crossing(order)
			t.Logf("%d of %d edges between nodes, with Near %d", before, len(a.Edges), after)
			if before != k.before || after > k.after {
				t.Errorf("%d edges between nodes before, %d after; want %d, and at most %d", before, after, k.before, k.after)
			}
			if before == after && len(a.Nodes) == a.Positions && !slices.IsSorted(order) {
				t.Errorf("ranks change places without a gain: %v", order)
			}
		})
	}
}

func wantOrder(t *testing.T, a *Arrangement, order []int) {
	t.Helper()
	if wrong, ok := distinct(order, a.Positions, len(a.Nodes)); !ok {
		t.Fatalf("order %v for %d places and %d ranks: element %d is wrong", order, a.Positions, len(a.Nodes), wrong)
	}
	if after, before := a.Crossing(order), a.Crossing(nil); after > before && len(a.Nodes) == a.Positions {
		t.Fatalf("%d edges between nodes have become %d", before, after)
	}
}

// Communities whose members are spread over all nodes are brought together.
func TestNearOnGraphs(t *testing.T) {
	const nodes, each = 8, 12
	rng := rand.New(rand.NewPCG(1, 2))
	a := &Arrangement{Positions: nodes * each, Nodes: dealt(nodes, each, false)}
	where := rng.Perm(a.Positions) // member i of the communities sits at place where[i]
	for c := range nodes {
		for i := range each {
			for j := range each {
				if i != j && (i+1 == j || rng.IntN(3) == 0) {
					a.Edges = append(a.Edges, Edge{From: where[c*each+i], To: where[c*each+j], Weight: 5})
				}
			}
		}
		a.Edges = append(a.Edges, Edge{From: where[c*each], To: where[(c+1)%nodes*each]})
	}
	order := Near(a)
	wantOrder(t, a, order)
	before, after := a.Crossing(nil), a.Crossing(order)
	t.Logf("weight between nodes: %d, with Near %d", before, after)
	if after != nodes { // the ring that joins the communities
		t.Errorf("the weight between nodes is %d, want %d: one edge from each community to the next", after, nodes)
	}
}

// For any graph and nodes the result is a permutation, and never worse.
func TestNearIsNeverWorse(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		a := &Arrangement{Positions: 1 + rng.IntN(24)}
		for range a.Positions + rng.IntN(3) {
			a.Nodes = append(a.Nodes, rng.IntN(1+rng.IntN(6))*7)
		}
		for range rng.IntN(60) {
			a.Edges = append(a.Edges, Edge{rng.IntN(a.Positions), rng.IntN(a.Positions), rng.IntN(4)})
		}
		order := Near(a)
		wantOrder(t, a, order)
		if again := Near(a); !slices.Equal(order, again) {
			t.Fatalf("asked twice, Near answers %v and %v", order, again)
		}
	}
}

// A real job of eight ranks, two on each of four hosts, in pairs on different hosts: after
// reordering, both ranks of a pair are on one host.
func TestNearMovesRanks(t *testing.T) {
	runOnHosts(t, 8, 2, false, &wire{}, func(c *Comm) error {
		// Place p and place p+4 talk to each other and to nobody else.
		partner := []Neighbor{{Rank: (c.rank + 4) % 8}}
		g, err := c.DistGraphCreateAdjacent(partner, partner, Near)
		if err != nil {
			return err
		}
		nodes := g.nodes()
		if other := g.Dests()[0].Rank; len(g.Dests()) != 1 || other != (g.rank+4)%8 || nodes[other] != nodes[g.rank] {
			return fmt.Errorf("place %d on node %d talks to %v, nodes are %v", g.rank, nodes[g.rank], g.Dests(), nodes)
		}
		in := []int{-1}
		if _, err := Sendrecv(g.Comm, []int{g.rank}, g.Dests()[0].Rank, 0, in, g.Sources()[0].Rank, 0); err != nil {
			return err
		}
		if in[0] != (g.rank+4)%8 {
			return fmt.Errorf("place %d received from %d", g.rank, in[0])
		}
		return nil
	})
}
