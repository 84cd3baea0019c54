package coll

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// edge is one block from a rank to another.
type edge struct{ from, to, bytes int }

// neighborhood returns the shapes of all ranks for a list of edges, with gaps between
// blocks, and their task: the n-th edge from one rank to another is the n-th at both
// ends.
func neighborhood(size int, edges []edge) ([]Shape, *sched.Task) {
	shapes := make([]Shape, size)
	task := &sched.Task{Ranks: make([]sched.Memory, size)}
	for r := range shapes {
		shapes[r] = Shape{Kind: Neighbors, Rank: r, Size: size,
			Send: Blocks{Irregular: true, Lens: []int{}}, Recv: Blocks{Irregular: true, Lens: []int{}}}
	}
	add := func(b *Blocks, end *int, n int) (off int) {
		off = *end + 1
		b.Lens, b.Offs = append(b.Lens, n), append(b.Offs, off)
		*end = off + n
		return off
	}
	for i, e := range edges {
		from, to := &shapes[e.from], &shapes[e.to]
		from.Dests, to.Sources = append(from.Dests, e.to), append(to.Sources, e.from)
		in, out := &task.Ranks[e.from], &task.Ranks[e.to]
		src := sched.Span{Buf: sched.In, Off: add(&from.Send, &in.In, e.bytes), Len: e.bytes}
		dst := sched.Span{Buf: sched.Out, Off: add(&to.Recv, &out.Out, e.bytes), Len: e.bytes}
		in.Start = append(in.Start, sched.Piece{Span: src, From: e.from, To: e.from + 1, At: 1000 * i})
		out.End = append(out.End, sched.Piece{Span: dst, From: e.from, To: e.from + 1, At: 1000 * i})
	}
	return shapes, task
}

func proveNeighbors(t *testing.T, shapes []Shape, task *sched.Task) {
	t.Helper()
	for _, a := range neighborsAlgorithms() {
		a.EachParams(func(params []int) {
			graphs := make([]*sched.Graph, len(shapes))
			for r := range shapes {
				var b sched.Builder
				g, err := a.Graph(&b, &shapes[r], params)
				if err != nil {
					t.Fatal(err)
				}
				graphs[r] = g
			}
			if err := sched.Validate(graphs, task); err != nil {
				t.Fatalf("%s %v: %v", a.Name, params, err)
			}
		})
	}
}

// TestNeighborGraphs uses random graphs with repeated neighbors, ranks that are their own
// neighbors, and empty blocks.
func TestNeighborGraphs(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for size := 1; size <= 9; size++ {
		for range 20 {
			edges := make([]edge, rng.Intn(6*size))
			for i := range edges {
				edges[i] = edge{rng.Intn(size), rng.Intn(size), rng.Intn(5)}
			}
			shapes, task := neighborhood(size, edges)
			proveNeighbors(t, shapes, task)
		}
	}
}

// TestCartesianNeighbors orders neighbors as neighbors.go documents, and checks the rule
// of MPI-4.1 8.6: a block sent down is received from above.
func TestCartesianNeighbors(t *testing.T) {
	const each = 5
	for _, dims := range [][]int{{1}, {2}, {3}, {1, 1}, {2, 1}, {2, 2}, {3, 2, 1}} {
		t.Run(fmt.Sprint(dims), func(t *testing.T) {
			size := 1
			for _, d := range dims {
				size *= d
			}
			shapes := make([]Shape, size)
			task := &sched.Task{Ranks: make([]sched.Memory, size)}
			for r := range shapes {
				s, m := &shapes[r], &task.Ranks[r]
				*s = Shape{Kind: Neighbors, Rank: r, Size: size, Recv: Blocks{Each: each}}
				m.In, m.Out = 2*len(dims)*each, 2*len(dims)*each
				stride := 1
				for d, n := range dims {
					at := r / stride % n
					below := r + (wrap(at-1, n)-at)*stride
					above := r + (wrap(at+1, n)-at)*stride
					stride *= n
					s.Sources = append(s.Sources, below, above)
					s.Dests = append(s.Dests, above, below)
					s.Send.Offs = append(s.Send.Offs, (2*d+1)*each, 2*d*each)
					s.Send.Lens = append(s.Send.Lens, each, each)
					for side := range 2 {
						block := sched.Span{Off: (2*d + side) * each, Len: each}
						m.Start = append(m.Start, sched.Piece{Span: block, From: r, To: r + 1, At: block.Off})
						block.Buf = sched.Out
						// From below comes what the lower neighbor sends up, and vice versa.
						from := []int{below, above}[side]
						m.End = append(m.End, sched.Piece{Span: block, From: from, To: from + 1, At: (2*d + 1 - side) * each})
					}
				}
			}
			proveNeighbors(t, shapes, task)
		})
	}
}

func TestNeighborsUneven(t *testing.T) {
	a := neighborsAlgorithms()[0]
	for _, s := range []Shape{
		{Kind: Neighbors, Size: 2, Dests: []int{0}, Send: Blocks{Each: 1}},
		{Kind: Neighbors, Size: 2, Sources: []int{0}, Recv: Blocks{Each: 1}},
	} {
		var b sched.Builder
		if _, err := a.Graph(&b, &s, a.Default()); err == nil {
			t.Errorf("to itself %v, from itself %v: no error", s.Dests, s.Sources)
		}
	}
}
