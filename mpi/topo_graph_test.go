package mpi_test

// Graphs, distributed graphs, and their reordering.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// reversed assigns the first position to the last rank; with it every rank changes its
// number.
func reversed(a *mpi.Arrangement) []int {
	out := make([]int, a.Positions)
	for p := range out {
		out[p] = len(a.Nodes) - 1 - p
	}
	return out
}

func TestReorderedCart(t *testing.T) {
	mpitest.Sizes(t, []int{2, 3, 6}, func(t *testing.T, c *mpi.Comm) {
		seen := -1
		look := func(a *mpi.Arrangement) []int {
			seen = len(a.Edges)
			return reversed(a)
		}
		size := c.Size() - c.Size()%2
		g, err := c.CartCreate([]int{2, size / 2}, nil, look)
		noError(t, err, "CartCreate")
		if (seen >= 0) != (c.Rank() == 0) {
			t.Errorf("the Reorder was called on rank %d", c.Rank())
		}
		if want := 2 * (2*(size/2-1) + size/2); c.Rank() == 0 && seen != want {
			t.Errorf("the Reorder was told of %d edges, want %d", seen, want)
		}
		if c.Rank() < c.Size()-size {
			if g != nil {
				t.Error("a rank that the Reorder left out has a place")
			}
			return
		}
		if want := c.Size() - 1 - c.Rank(); g.Rank() != want {
			t.Fatalf("rank %d has place %d, want %d", c.Rank(), g.Rank(), want)
		}
		all := make([]int, g.Size())
		noError(t, mpi.Allgather(g.Comm, []int{c.Rank()}, all), "Allgather")
		for p, r := range all {
			if r != c.Size()-1-p {
				t.Fatalf("the size are taken by %v", all)
			}
		}
	})
}

func TestGraph(t *testing.T) {
	mpitest.Sizes(t, []int{4, 5}, func(t *testing.T, c *mpi.Comm) {
		edges := [][]int{{1, 3}, {0}, {3}, {0, 2}} // the example of MPI-4.1 section 8.5.3
		g, err := c.GraphCreate(edges, nil)
		noError(t, err, "GraphCreate")
		if (g != nil) != (c.Rank() < 4) {
			t.Fatalf("rank %d got %v; the graph has four size", c.Rank(), g)
		}
		if g != nil {
			for r := range edges {
				got, err := g.NeighborsOf(r)
				noError(t, err, "NeighborsOf")
				if !slices.Equal(got, edges[r]) {
					t.Errorf("rank %d has the neighbors %v, want %v", r, got, edges[r])
				}
			}
			sources, dests := g.Neighborhood()
			if !slices.Equal(sources, edges[g.Rank()]) || !slices.Equal(dests, sources) {
				t.Errorf("the neighborhood is %v and %v, want %v", sources, dests, edges[g.Rank()])
			}
			d, err := g.Dup()
			noError(t, err, "Dup")
			if fmt.Sprint(d.Edges()) != fmt.Sprint(edges) {
				t.Errorf("the duplicate has the edges %v", d.Edges())
			}
			_, err = g.NeighborsOf(4)
			wantClass(t, err, mpi.ErrRank, "NeighborsOf a rank that is not there")
		}
		rank, err := c.GraphMap(edges, reversed)
		noError(t, err, "GraphMap")
		want := c.Size() - 1 - c.Rank()
		if want >= 4 {
			want = mpi.Undefined
		}
		if rank != want {
			t.Errorf("GraphMap gives rank %d the new rank %d, want %d", c.Rank(), rank, want)
		}
		_, err = c.GraphCreate([][]int{{1}, {2}}, nil)
		wantClass(t, err, mpi.ErrRank, "a neighbor that is no place")
		_, err = c.GraphCreate(make([][]int, c.Size()+1), nil)
		wantClass(t, err, mpi.ErrArg, "more size than ranks")
	})
}

// ladder returns a graph for tests: rank r sends to r+1 and r+2 with weights, twice to
// itself if r is even, and only the last rank itself sends to the last rank.
func ladder(n int) (edges []mpi.Edge) {
	for r := range n {
		for _, d := range []int{1, 2} {
			if r+d < n-1 {
				edges = append(edges, mpi.Edge{From: r, To: r + d, Weight: 10*r + d})
			}
		}
		if r%2 == 0 {
			edges = append(edges, mpi.Edge{From: r, To: r, Weight: 1}, mpi.Edge{From: r, To: r, Weight: 2})
		}
	}
	return edges
}

// ends returns the edges of one rank in the order of the list.
func ends(edges []mpi.Edge, rank int) (sources, dests []mpi.Neighbor) {
	for _, e := range edges {
		if e.To == rank {
			sources = append(sources, mpi.Neighbor{Rank: e.From, Weight: e.Weight})
		}
		if e.From == rank {
			dests = append(dests, mpi.Neighbor{Rank: e.To, Weight: e.Weight})
		}
	}
	return sources, dests
}

func TestDistGraph(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 6}, func(t *testing.T, c *mpi.Comm) {
		edges := ladder(c.Size())
		sources, dests := ends(edges, c.Rank())
		for _, reorder := range []mpi.Reorder{nil, reversed, mpi.Near} {
			g, err := c.DistGraphCreateAdjacent(sources, dests, reorder)
			checkDistGraph(t, g, err, edges, "adjacent")
			var given []mpi.Edge
			if c.Rank() == c.Size()-1 {
				given = edges
			}
			g, err = c.DistGraphCreate(given, reorder)
			checkDistGraph(t, g, err, edges, "all edges given by one rank")
			lo, hi := c.Rank()*len(edges)/c.Size(), (c.Rank()+1)*len(edges)/c.Size()
			g, err = c.DistGraphCreate(edges[lo:hi], reorder)
			checkDistGraph(t, g, err, edges, "edges given in pieces by all")
			d, err := g.Dup()
			checkDistGraph(t, d, err, edges, "a duplicate")
		}
		g, err := c.DistGraphCreate(nil, reversed)
		noError(t, err, "DistGraphCreate without edges")
		if g.Rank() != c.Size()-1-c.Rank() || len(g.Sources()) != 0 {
			t.Errorf("without edges: rank %d became %d with sources %v", c.Rank(), g.Rank(), g.Sources())
		}
	})
}

func checkDistGraph(t *testing.T, g *mpi.DistGraph, err error, edges []mpi.Edge, what string) {
	t.Helper()
	noError(t, err, what)
	sources, dests := ends(edges, g.Rank())
	if !slices.Equal(g.Sources(), sources) || !slices.Equal(g.Dests(), dests) {
		t.Fatalf("%s: rank %d has sources %v and destinations %v, want %v and %v", what, g.Rank(), g.Sources(), g.Dests(), sources, dests)
	}
	in, out := g.Neighborhood()
	for i, n := range sources {
		if in[i] != n.Rank {
			t.Fatalf("%s: the neighborhood has sources %v, want %v", what, in, sources)
		}
	}
	if len(in) != len(sources) || len(out) != len(dests) {
		t.Fatalf("%s: the neighborhood is %v and %v", what, in, out)
	}
}

// An invalid argument on one rank is an error on all; no rank hangs.
func TestDistGraphRefusesTogether(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		class := mpi.ErrArg // others are told that the last rank is to blame
		last := c.Rank() == c.Size()-1
		wrong := []mpi.Neighbor{{Rank: 0}}
		if last {
			class, wrong[0].Rank = mpi.ErrRank, c.Size()
		}
		_, err := c.DistGraphCreateAdjacent(nil, wrong, nil)
		wantClass(t, err, class, "a destination that is not there")
		_, err = c.DistGraphCreateAdjacent(wrong, nil, nil)
		wantClass(t, err, class, "a source that is not there")
		_, err = c.DistGraphCreate([]mpi.Edge{{From: wrong[0].Rank}}, nil)
		wantClass(t, err, class, "an edge from nowhere")
		_, err = c.DistGraphCreate([]mpi.Edge{{Weight: -1}}, nil)
		wantClass(t, err, mpi.ErrArg, "a negative weight")
		barrier(t, c)
	})
}
