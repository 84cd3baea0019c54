package mpi_test

// Neighborhood collectives, blocking, started and prepared, against the
// definition (MPI-4.1 section 8.6): what each rank should get is computed from the
// topology alone.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// noNeighbor is what buffers hold where nothing may be written.
const noNeighbor = -7

// sentBlock is element i of the block that a rank sends to its destination number to.
func sentBlock(rank, to, i int) int { return 10000*rank + 100*to + i + 1 }

// arrival says, for source number j of a rank, which rank sends there and which of
// its blocks; from is ProcNull if nobody does.
type arrival func(j int) (from, block int)

// exchange is one neighborhood of the calling rank.
type exchange struct {
	t              mpi.Topology
	rank           int
	sources, dests int
	from           arrival
}

// neighborForms calls a collective in its three forms; the prepared one twice.
func neighborForms(t *testing.T, what string, check func(form string), blocking func() error, started func() mpi.Request, prepared func() *mpi.Persistent) {
	t.Helper()
	noError(t, blocking(), what)
	check(what)
	_, err := started().Wait()
	noError(t, err, "I"+what)
	check("I" + what)
	p := prepared()
	for range 2 {
		_, err := p.Start().Wait()
		noError(t, err, what+"Init")
		check(what + "Init")
	}
}

// run makes all calls and checks them.
func (x *exchange) run(t *testing.T, what string) {
	t.Helper()
	const n = 3
	// Regular: blocks of three.
	in, out := make([]int, n*x.dests), make([]int, n*x.sources)
	for i := range in {
		in[i] = sentBlock(x.rank, i/n, i%n)
	}
	check := func(form string) { x.check(t, what+": "+form, out, false, func(int) (int, int) { return n, 0 }) }
	clearBlocks(out)
	neighborForms(t, "NeighborAlltoall", check,
		func() error { return mpi.NeighborAlltoall(x.t, in, out) },
		func() mpi.Request { return mpi.IneighborAlltoall(x.t, in, out) },
		func() *mpi.Persistent { return mpi.NeighborAlltoallInit(x.t, in, out) })
	in = []int{sentBlock(x.rank, 0, 0), sentBlock(x.rank, 0, 1), sentBlock(x.rank, 0, 2)}
	check = func(form string) { x.check(t, what+": "+form, out, true, func(int) (int, int) { return n, 0 }) }
	clearBlocks(out)
	neighborForms(t, "NeighborAllgather", check,
		func() error { return mpi.NeighborAllgather(x.t, in, out) },
		func() mpi.Request { return mpi.IneighborAllgather(x.t, in, out) },
		func() *mpi.Persistent { return mpi.NeighborAllgatherInit(x.t, in, out) })
	x.runIrregular(t, what)
}

// blockWidth returns the length of the block that a rank sends as its number to, and the
// gap behind it.
func blockWidth(rank, to int) (n, gap int) { return (rank + to) % 3, to % 2 }

func (x *exchange) runIrregular(t *testing.T, what string) {
	t.Helper()
	var sendCounts, sendDispls, recvCounts, recvDispls, in []int
	var sends, recvs []*mpi.Layout[int]
	for i := range x.dests {
		n, gap := blockWidth(x.rank, i)
		sendCounts, sendDispls = append(sendCounts, n), append(sendDispls, len(in))
		sends = append(sends, blockLayout(t, n, len(in)))
		for j := range n + gap {
			in = append(in, sentBlock(x.rank, i, j))
		}
	}
	size := 0
	for j := range x.sources {
		n, gap := 1, j%2
		if from, b := x.from(j); from >= 0 {
			n, _ = blockWidth(from, b)
		}
		recvCounts, recvDispls = append(recvCounts, n), append(recvDispls, size)
		recvs = append(recvs, blockLayout(t, n, size))
		size += n + gap
	}
	out := make([]int, size)
	at := func(j int) (int, int) { return recvCounts[j], j % 2 }
	check := func(form string) { x.check(t, what+": "+form, out, false, at) }
	clearBlocks(out)
	neighborForms(t, "NeighborAlltoallv", check,
		func() error {
			return mpi.NeighborAlltoallv(x.t, in, sendCounts, sendDispls, out, recvCounts, recvDispls)
		},
		func() mpi.Request {
			return mpi.IneighborAlltoallv(x.t, in, sendCounts, sendDispls, out, recvCounts, recvDispls)
		},
		func() *mpi.Persistent {
			return mpi.NeighborAlltoallvInit(x.t, in, sendCounts, sendDispls, out, recvCounts, recvDispls)
		})
	// With layouts, the block of a source that is nobody is not even defined.
	for j := range recvs {
		if from, _ := x.from(j); from < 0 {
			recvs[j] = nil
		}
	}
	clearBlocks(out)
	neighborForms(t, "NeighborAlltoallw", check,
		func() error { return mpi.NeighborAlltoallw(x.t, in, sends, out, recvs) },
		func() mpi.Request { return mpi.IneighborAlltoallw(x.t, in, sends, out, recvs) },
		func() *mpi.Persistent { return mpi.NeighborAlltoallwInit(x.t, in, sends, out, recvs) })
	// Allgatherv: the block of a rank is as long as its number.
	size = 0
	for j := range recvCounts {
		if from, _ := x.from(j); from >= 0 {
			recvCounts[j] = from
		}
		recvDispls[j] = size
		size += recvCounts[j] + j%2
	}
	out = make([]int, size)
	mine := make([]int, x.rank)
	for i := range mine {
		mine[i] = sentBlock(x.rank, 0, i)
	}
	check = func(form string) { x.check(t, what+": "+form, out, true, at) }
	clearBlocks(out)
	neighborForms(t, "NeighborAllgatherv", check,
		func() error { return mpi.NeighborAllgatherv(x.t, mine, out, recvCounts, recvDispls) },
		func() mpi.Request { return mpi.IneighborAllgatherv(x.t, mine, out, recvCounts, recvDispls) },
		func() *mpi.Persistent { return mpi.NeighborAllgathervInit(x.t, mine, out, recvCounts, recvDispls) })
}

// check looks at what arrived and clears it. same: all destinations are sent block
// 0.
func (x *exchange) check(t *testing.T, what string, out []int, same bool, at func(j int) (n, gap int)) {
	t.Helper()
	want := make([]int, 0, len(out))
	for j := range x.sources {
		from, b := x.from(j)
		if same {
			b = 0
		}
		n, gap := at(j)
		for i := range n + gap {
			if i >= n || from < 0 {
				want = append(want, noNeighbor)
			} else {
				want = append(want, sentBlock(from, b, i))
			}
		}
	}
	if !slices.Equal(out, want) {
		t.Fatalf("%s: rank %d has %v, want %v", what, x.rank, out, want)
	}
	clearBlocks(out)
}

func clearBlocks(out []int) {
	for i := range out {
		out[i] = noNeighbor
	}
}

func blockLayout(t *testing.T, n, at int) *mpi.Layout[int] {
	t.Helper()
	l, err := mpi.Indexed[int]([]int{n}, []int{at})
	noError(t, err, "Indexed")
	return l
}

// On grids: dimension by dimension, negative direction first; what goes one way
// comes in from the other side, also in rings of one and two, where both sides are
// the same rank.
func TestNeighborsOnGrids(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5, 6}, func(t *testing.T, c *mpi.Comm) {
		for _, k := range gridCases {
			if k.size() > c.Size() {
				continue
			}
			g, err := c.CartCreate(k.dims, k.periods, nil)
			noError(t, err, "CartCreate")
			if g == nil {
				continue
			}
			x := &exchange{t: g, rank: g.Rank(), sources: 2 * len(k.dims), dests: 2 * len(k.dims), from: func(j int) (int, int) {
				step := 2*(j%2) - 1
				return k.beside(g.Rank(), j/2, step), j ^ 1
			}}
			x.run(t, fmt.Sprintf("grid %v periodic %v", k.dims, k.periods))
		}
	})
}

func TestNeighborsOnGraphs(t *testing.T) {
	mpitest.Sizes(t, []int{4, 6}, func(t *testing.T, c *mpi.Comm) {
		edges := [][]int{{1, 3, 3, 0}, {0}, {3}, {0, 2, 0}} // twice between 0 and 3; 0 with itself
		g, err := c.GraphCreate(edges, nil)
		noError(t, err, "GraphCreate")
		if g == nil {
			return
		}
		mine := edges[g.Rank()]
		x := &exchange{t: g, rank: g.Rank(), sources: len(mine), dests: len(mine), from: func(j int) (int, int) {
			return mine[j], nth(edges[mine[j]], g.Rank(), countOf(mine[:j], mine[j]))
		}}
		x.run(t, "graph")
	})
}

// nth returns the place of the n-th v in a list, counted from 0; countOf is how many
// there are.
func nth(list []int, v, n int) int {
	for i, w := range list {
		if w == v {
			if n == 0 {
				return i
			}
			n--
		}
	}
	panic(fmt.Sprintf("%v holds no such %d", list, v))
}

func countOf(list []int, v int) int {
	n := 0
	for _, w := range list {
		if w == v {
			n++
		}
	}
	return n
}

func TestNeighborsOnDistGraphs(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2, 3, 5, 6}, func(t *testing.T, c *mpi.Comm) {
		edges := ladder(c.Size())
		for _, reorder := range []mpi.Reorder{nil, reversed} {
			lo, hi := c.Rank()*len(edges)/c.Size(), (c.Rank()+1)*len(edges)/c.Size()
			g, err := c.DistGraphCreate(edges[lo:hi], reorder)
			noError(t, err, "DistGraphCreate")
			sources, dests := ends(edges, g.Rank())
			x := &exchange{t: g, rank: g.Rank(), sources: len(sources), dests: len(dests), from: func(j int) (int, int) {
				from := sources[j].Rank
				earlier := 0
				for _, s := range sources[:j] {
					if s.Rank == from {
						earlier++
					}
				}
				var theirs []int
				_, out := ends(edges, from)
				for _, d := range out {
					theirs = append(theirs, d.Rank)
				}
				return from, nth(theirs, g.Rank(), earlier)
			}}
			x.run(t, "distributed graph")
		}
	})
}

func TestNeighborsRefuse(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		g, err := c.CartCreate([]int{3}, []bool{true}, nil)
		noError(t, err, "CartCreate")
		four, three := make([]int, 4), make([]int, 3)
		for what, err := range map[string]error{
			"out too short":        mpi.NeighborAllgather(g, three, four),
			"in not even":          mpi.NeighborAlltoall(g, three, four),
			"counts too few":       mpi.NeighborAllgatherv(g, three, four, []int{1}, nil),
			"negative count":       mpi.NeighborAlltoallv(g, four, []int{1, -1}, nil, four, []int{1, 1}, nil),
			"started out short":    waitErr(mpi.IneighborAllgather(g, three, four)),
			"prepared in not even": waitErr(mpi.NeighborAlltoallInit(g, three, four).Start()),
		} {
			wantClass(t, err, mpi.ErrCount, what)
		}
		wantClass(t, mpi.NeighborAlltoallv(g, four, []int{1, 4}, nil, four, []int{1, 1}, nil), mpi.ErrBuffer, "a block beyond the buffer")
		wantClass(t, mpi.NeighborAlltoallw(g, four, nil, four, nil), mpi.ErrArg, "no layouts")
		wantClass(t, mpi.NeighborAllgather(g, []*int{nil}, []*int{nil, nil}), mpi.ErrType, "pointers")
		one, err := c.GraphCreate([][]int{{1}, {}, {}}, nil)
		noError(t, err, "GraphCreate of a graph with one edge")
		wantClass(t, mpi.NeighborAllgather(one, three, nil), mpi.ErrTopology, "a graph with an edge one way")
		noError(t, g.Free(), "Free")
		wantClass(t, mpi.NeighborAllgather(g, three, make([]int, 6)), mpi.ErrComm, "a freed grid")
	})
}

// The calls of the steady state allocate nothing.
func TestNeighborsAllocateNothing(t *testing.T) {
	unchecked(t)
	if race.Enabled {
		t.Skip("the race detector allocates itself")
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		g, err := c.CartCreate([]int{2}, []bool{true}, nil)
		noError(t, err, "CartCreate")
		in, out := make([]byte, 2*64), make([]byte, 2*64)
		p := mpi.NeighborAlltoallInit(g, in, out)
		mallocs(t, c, "persistent NeighborAlltoall", 64, 1000, func([]byte) {
			if _, err := p.Start().Wait(); err != nil {
				t.Error(err)
			}
		})
		mallocs(t, c, "NeighborAlltoall", 64, 1000, func([]byte) {
			if err := mpi.NeighborAlltoall(g, in, out); err != nil {
				t.Error(err)
			}
		})
	})
}
