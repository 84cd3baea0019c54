package coll

import (
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// TestFlow builds random programs and checks every pair of operations: if both access
// the same bytes and one of them writes, dependencies must order them; otherwise
// neither may wait directly for the other.
func TestFlow(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	const room = 24
	for range 300 {
		var b sched.Builder
		b.Reset(0, 3)
		f := &flow{Builder: &b}
		b.Tmp(room)
		for range 20 {
			n := 1 + rng.Intn(6)
			at := func(bufs ...sched.Buf) sched.Span {
				return sched.Span{Buf: bufs[rng.Intn(len(bufs))], Off: rng.Intn(room - n), Len: n}
			}
			switch rng.Intn(4) {
			case 0:
				f.send(1+rng.Intn(2), at(sched.In, sched.Out, sched.Tmp))
			case 1:
				f.recv(1+rng.Intn(2), at(sched.Out, sched.Tmp))
			case 2:
				f.copy(at(sched.Out), at(sched.In, sched.Tmp))
			case 3:
				f.reduce(at(sched.Tmp), at(sched.In, sched.Out))
			}
		}
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, g)
	}
}

// checkOrder compares the dependencies of a graph with the bytes of its operations.
func checkOrder(t *testing.T, g *sched.Graph) {
	t.Helper()
	n := len(g.Ops)
	reach := make([][]bool, n) // reach[i][j]: j waits for i, directly or indirectly
	for i := n - 1; i >= 0; i-- {
		reach[i] = make([]bool, n)
		for _, j := range g.Successors(i) {
			if !conflict(&g.Ops[i], &g.Ops[j]) {
				t.Fatalf("operation %d waits for %d unnecessarily:\n%v", j, i, g)
			}
			reach[i][j] = true
			for k, r := range reach[j] {
				reach[i][k] = reach[i][k] || r
			}
		}
	}
	for j := range n {
		for i := range j {
			if conflict(&g.Ops[i], &g.Ops[j]) && !reach[i][j] {
				t.Fatalf("operation %d does not wait for %d:\n%v", j, i, g)
			}
		}
	}
}

func conflict(a, b *sched.Op) bool {
	meet := func(x, y sched.Span) bool {
		return x.Buf == y.Buf && x.Off < y.Off+y.Len && y.Off < x.Off+x.Len
	}
	reads := func(op *sched.Op) bool { return op.Kind != sched.Recv }
	writes := func(op *sched.Op) bool { return op.Kind != sched.Send }
	return writes(a) && writes(b) && meet(a.Dst, b.Dst) ||
		writes(a) && reads(b) && meet(a.Dst, b.Src) ||
		reads(a) && writes(b) && meet(a.Src, b.Dst)
}

// TestPart checks that parts cover the data in order, do not split elements, and have
// nearly the same length.
func TestPart(t *testing.T) {
	for _, elem := range []int{0, 1, 3, 8} {
		for count := range 40 {
			for n := 1; n < 12; n++ {
				bytes := count * max(elem, 1)
				at, least, most := 0, bytes, 0
				for i := range n {
					off, length := part(bytes, elem, i, n)
					if off != at || off%max(elem, 1) != 0 {
						t.Fatalf("part %d of %d of %d bytes begins at %d, after %d", i, n, bytes, off, at)
					}
					at += length
					least, most = min(least, length), max(most, length)
				}
				if at != bytes || most-least > max(elem, 1) {
					t.Fatalf("%d parts of %d bytes: %d in all, from %d to %d", n, bytes, at, least, most)
				}
			}
		}
	}
}

// TestTwoRanks checks that schedules between two ranks stay minimal: every operation
// adds to the time of a short message.
func TestTwoRanks(t *testing.T) {
	for _, c := range []struct {
		kind     Kind
		name     string
		inPlace  bool
		commutes bool
		rank0    int // operations
		rank1    int
	}{
		{Barrier, "dissemination", false, true, 2, 2},
		{Bcast, "binomial", false, true, 1, 1},
		{Gather, "binomial", false, true, 2, 1},
		{Scatter, "binomial", false, true, 2, 1},
		{Reduce, "binomial", false, true, 2, 1},
		{Reduce, "binomial", false, false, 2, 1},
		{Allreduce, "recursive-doubling", false, true, 3, 3},
		{Allreduce, "recursive-doubling", true, true, 3, 3},
		{Allreduce, "recursive-doubling", false, false, 3, 4},
		{ReduceScatter, "circulant", false, true, 3, 3},
		{ReduceScatter, "recursive-halving", false, true, 3, 3},
		{ReduceScatter, "pairwise", false, true, 3, 3},
		{Scan, "recursive-doubling", false, true, 2, 2},
		{Exscan, "recursive-doubling", false, true, 1, 1},
	} {
		a, err := Find(c.kind, c.name)
		if err != nil {
			t.Fatal(err)
		}
		for rank, want := range []int{c.rank0, c.rank1} {
			s := Shape{Kind: c.kind, Rank: rank, Size: 2, Elem: 8, Bytes: 8, Commutes: c.commutes, InPlace: c.inPlace}
			s.Send.Each, s.Recv.Each = 8, 8
			var b sched.Builder
			g, err := a.Graph(&b, &s, a.Default())
			if err != nil {
				t.Fatal(err)
			}
			if len(g.Ops) > want {
				t.Errorf("%s by %s, in place %v, commutes %v: rank %d has %d operations, want %d:\n%v",
					c.kind, c.name, c.inPlace, c.commutes, rank, len(g.Ops), want, g)
			}
		}
	}
}
