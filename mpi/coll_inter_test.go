package mpi_test

// Collectives on intercommunicators, blocking, nonblocking and persistent, against
// MPI-4.1 section 6.2.3 and the sections of the calls. Lengths differ between the groups
// where MPI allows it.

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// twoGroups is an intercommunicator and the world ranks of both groups.
type twoGroups struct {
	t            *testing.T
	what         string
	inter, world *mpi.Comm
	mine, theirs []int
}

// gift returns element i of the data of a world rank for another.
func gift(from, to, i int) int { return 1_000_000*(from+1) + 1000*(to+1) + i }

// length returns the length of the blocks of the group with this first rank: the groups
// differ.
func (g *twoGroups) length(first int) int { return 2 + first%3 }

// shares returns the length of a block in the forms with counts.
func shares(from, to int) int { return (2*from + to) % 4 }

func (g *twoGroups) want(form string, got, want []int) {
	g.t.Helper()
	wantSlice(g.t, got, want, fmt.Sprintf("%s: %s on rank %d of the world", g.what, form, g.world.Rank()))
	for i := range got {
		got[i] = -1
	}
}

// rootFor returns the root argument of a rank, and whether the rank is the root or in the
// other group.
func (g *twoGroups) rootFor(root int) (arg int, isRoot, isOther bool) {
	for r, w := range g.theirs {
		if w == root {
			return r, false, true
		}
	}
	if g.world.Rank() == root {
		return mpi.Root, true, false
	}
	return mpi.ProcNull, false, false
}

func TestCollectivesBetweenGroups(t *testing.T) {
	mpitest.Sizes(t, []int{2, 3, 4, 5, 6}, func(t *testing.T, c *mpi.Comm) {
		for _, p := range groupPairs {
			g := &twoGroups{t: t, what: p.what, world: c}
			g.inter, _, g.mine, g.theirs = p.join(t, c)
			g.barriers()
			for root := range c.Size() {
				g.bcast(root)
				g.gather(root)
				g.scatter(root)
				g.reduce(root)
			}
			g.allgather()
			g.alltoall()
			g.allreduce()
			g.reduceScatter()
			noError(t, g.inter.Free(), "Free")
		}
	})
}

func (g *twoGroups) barriers() {
	neighborForms(g.t, "Barrier", func(string) {},
		g.inter.Barrier,
		g.inter.Ibarrier,
		g.inter.BarrierInit)
}

func (g *twoGroups) bcast(root int) {
	arg, isRoot, isOther := g.rootFor(root)
	buf := make([]int, 5)
	var want []int
	for i := range buf {
		buf[i] = -1
		want = append(want, -1)
		if isRoot || isOther {
			want[i] = gift(root, 0, i)
		}
	}
	fill := func() {
		for i := range buf {
			if isRoot {
				buf[i] = gift(root, 0, i)
			}
		}
	}
	fill()
	neighborForms(g.t, "Bcast", func(form string) { g.want(form, buf, want); fill() },
		func() error { return mpi.Bcast(g.inter, buf, arg) },
		func() mpi.Request { return mpi.Ibcast(g.inter, buf, arg) },
		func() *mpi.Persistent { return mpi.BcastInit(g.inter, buf, arg) })
}

// block returns the n elements of a rank for another.
func (g *twoGroups) block(from, to, n int) (out []int) {
	for i := range n {
		out = append(out, gift(from, to, i))
	}
	return out
}

func (g *twoGroups) gather(root int) {
	arg, isRoot, isOther := g.rootFor(root)
	me := g.world.Rank()
	var in, out, want, vin, vout, vwant, counts []int
	if isOther {
		in, vin = g.block(me, root, g.length(g.mine[0])), g.block(me, root, shares(me, root))
	}
	if isRoot {
		for _, w := range g.theirs {
			want = append(want, g.block(w, root, g.length(g.theirs[0]))...)
			vwant = append(vwant, g.block(w, root, shares(w, root))...)
			counts = append(counts, shares(w, root))
		}
		out, vout = make([]int, len(want)), make([]int, len(vwant))
	}
	neighborForms(g.t, "Gather", func(form string) { g.want(form, out, want) },
		func() error { return mpi.Gather(g.inter, in, out, arg) },
		func() mpi.Request { return mpi.Igather(g.inter, in, out, arg) },
		func() *mpi.Persistent { return mpi.GatherInit(g.inter, in, out, arg) })
	neighborForms(g.t, "Gatherv", func(form string) { g.want(form, vout, vwant) },
		func() error { return mpi.Gatherv(g.inter, vin, vout, counts, nil, arg) },
		func() mpi.Request { return mpi.Igatherv(g.inter, vin, vout, counts, nil, arg) },
		func() *mpi.Persistent { return mpi.GathervInit(g.inter, vin, vout, counts, nil, arg) })
}

func (g *twoGroups) scatter(root int) {
	arg, isRoot, isOther := g.rootFor(root)
	me := g.world.Rank()
	var in, out, want, vin, vout, vwant, counts, displs []int
	if isRoot {
		for _, w := range g.theirs {
			in = append(in, g.block(root, w, g.length(g.mine[0]))...)
			counts, displs = append(counts, shares(root, w)), append(displs, len(vin)+1)
			vin = append(append(vin, -1), g.block(root, w, shares(root, w))...)
		}
	}
	if isOther {
		want, vwant = g.block(root, me, g.length(g.theirs[0])), g.block(root, me, shares(root, me))
		out, vout = make([]int, len(want)), make([]int, len(vwant))
	}
	neighborForms(g.t, "Scatter", func(form string) { g.want(form, out, want) },
		func() error { return mpi.Scatter(g.inter, in, out, arg) },
		func() mpi.Request { return mpi.Iscatter(g.inter, in, out, arg) },
		func() *mpi.Persistent { return mpi.ScatterInit(g.inter, in, out, arg) })
	neighborForms(g.t, "Scatterv", func(form string) { g.want(form, vout, vwant) },
		func() error { return mpi.Scatterv(g.inter, vin, counts, displs, vout, arg) },
		func() mpi.Request { return mpi.Iscatterv(g.inter, vin, counts, displs, vout, arg) },
		func() *mpi.Persistent { return mpi.ScattervInit(g.inter, vin, counts, displs, vout, arg) })
}

func (g *twoGroups) allgather() {
	me := g.world.Rank()
	in, vin := g.block(me, 0, g.length(g.mine[0])), g.block(me, 0, shares(me, 0))
	var want, vwant, counts []int
	for _, w := range g.theirs {
		want = append(want, g.block(w, 0, g.length(g.theirs[0]))...)
		vwant = append(vwant, g.block(w, 0, shares(w, 0))...)
		counts = append(counts, shares(w, 0))
	}
	out, vout := make([]int, len(want)), make([]int, len(vwant))
	neighborForms(g.t, "Allgather", func(form string) { g.want(form, out, want) },
		func() error { return mpi.Allgather(g.inter, in, out) },
		func() mpi.Request { return mpi.Iallgather(g.inter, in, out) },
		func() *mpi.Persistent { return mpi.AllgatherInit(g.inter, in, out) })
	neighborForms(g.t, "Allgatherv", func(form string) { g.want(form, vout, vwant) },
		func() error { return mpi.Allgatherv(g.inter, vin, vout, counts, nil) },
		func() mpi.Request { return mpi.Iallgatherv(g.inter, vin, vout, counts, nil) },
		func() *mpi.Persistent { return mpi.AllgathervInit(g.inter, vin, vout, counts, nil) })
}

func (g *twoGroups) alltoall() {
	me := g.world.Rank()
	var in, want, vin, vwant, sends, recvs []int
	var slay, rlay []*mpi.Layout[int]
	for _, w := range g.theirs {
		slay = append(slay, blockLayout(g.t, shares(me, w), len(vin)))
		rlay = append(rlay, blockLayout(g.t, shares(w, me), len(vwant)))
		in, want = append(in, g.block(me, w, g.length(g.mine[0]))...), append(want, g.block(w, me, g.length(g.theirs[0]))...)
		vin, vwant = append(vin, g.block(me, w, shares(me, w))...), append(vwant, g.block(w, me, shares(w, me))...)
		sends, recvs = append(sends, shares(me, w)), append(recvs, shares(w, me))
	}
	out, vout := make([]int, len(want)), make([]int, len(vwant))
	neighborForms(g.t, "Alltoall", func(form string) { g.want(form, out, want) },
		func() error { return mpi.Alltoall(g.inter, in, out) },
		func() mpi.Request { return mpi.Ialltoall(g.inter, in, out) },
		func() *mpi.Persistent { return mpi.AlltoallInit(g.inter, in, out) })
	neighborForms(g.t, "Alltoallv", func(form string) { g.want(form, vout, vwant) },
		func() error { return mpi.Alltoallv(g.inter, vin, sends, nil, vout, recvs, nil) },
		func() mpi.Request { return mpi.Ialltoallv(g.inter, vin, sends, nil, vout, recvs, nil) },
		func() *mpi.Persistent { return mpi.AlltoallvInit(g.inter, vin, sends, nil, vout, recvs, nil) })
	neighborForms(g.t, "Alltoallw", func(form string) { g.want(form, vout, vwant) },
		func() error { return mpi.Alltoallw(g.inter, vin, slay, vout, rlay) },
		func() mpi.Request { return mpi.Ialltoallw(g.inter, vin, slay, vout, rlay) },
		func() *mpi.Persistent { return mpi.AlltoallwInit(g.inter, vin, slay, vout, rlay) })
}

// leftmost keeps the left operand, so that the result shows the order of ranks: it must
// be that of the group's first rank.
func leftmost() func() mpi.Op[int] {
	return (&mpi.UserOp[int]{Name: "leftmost", NonCommutative: true, Combine: func(inout, in []int) { copy(inout, in) }}).Op
}

func (g *twoGroups) sum(n int) (out []int) {
	for i := range n {
		s := 0
		for _, w := range g.theirs {
			s += gift(w, 0, i)
		}
		out = append(out, s)
	}
	return out
}

func (g *twoGroups) reduce(root int) {
	arg, isRoot, isOther := g.rootFor(root)
	var in, out, want, first []int
	if isOther {
		in = g.block(g.world.Rank(), 0, 4)
	}
	if isRoot {
		out, want, first = make([]int, 4), g.sum(4), g.block(g.theirs[0], 0, 4)
	}
	for _, k := range []struct {
		op   func() mpi.Op[int]
		want []int
	}{{mpi.Sum[int], want}, {leftmost(), first}} {
		neighborForms(g.t, "Reduce", func(form string) { g.want(form+" "+k.op().Name(), out, k.want) },
			func() error { return mpi.Reduce(g.inter, in, out, k.op, arg) },
			func() mpi.Request { return mpi.Ireduce(g.inter, in, out, k.op, arg) },
			func() *mpi.Persistent { return mpi.ReduceInit(g.inter, in, out, k.op, arg) })
	}
}

func (g *twoGroups) allreduce() {
	in, out := g.block(g.world.Rank(), 0, 4), make([]int, 4)
	for _, k := range []struct {
		op   func() mpi.Op[int]
		want []int
	}{{mpi.Sum[int], g.sum(4)}, {leftmost(), g.block(g.theirs[0], 0, 4)}} {
		neighborForms(g.t, "Allreduce", func(form string) { g.want(form+" "+k.op().Name(), out, k.want) },
			func() error { return mpi.Allreduce(g.inter, in, out, k.op) },
			func() mpi.Request { return mpi.Iallreduce(g.inter, in, out, k.op) },
			func() *mpi.Persistent { return mpi.AllreduceInit(g.inter, in, out, k.op) })
	}
	// One slice for both.
	noError(g.t, mpi.Allreduce(g.inter, in, in, mpi.Sum), "Allreduce with one slice")
	g.want("Allreduce with one slice", in, g.sum(4))
}

func (g *twoGroups) reduceScatter() {
	n := len(g.mine) * len(g.theirs) * 2 // both groups can share it evenly
	in := g.block(g.world.Rank(), 0, n)
	me, each := g.inter.Rank(), n/len(g.mine)
	out := make([]int, each)
	neighborForms(g.t, "ReduceScatterBlock", func(form string) { g.want(form, out, g.sum(n)[me*each:(me+1)*each]) },
		func() error { return mpi.ReduceScatterBlock(g.inter, in, out, mpi.Sum) },
		func() mpi.Request { return mpi.IreduceScatterBlock(g.inter, in, out, mpi.Sum) },
		func() *mpi.Persistent { return mpi.ReduceScatterBlockInit(g.inter, in, out, mpi.Sum) })
	// The first rank of each group gets nothing, the last what is left.
	counts := make([]int, len(g.mine))
	start, left := 0, n
	for r := range counts {
		if counts[r] = min(r, 2); r == len(counts)-1 {
			counts[r] = left
		}
		if left -= counts[r]; r < me {
			start += counts[r]
		}
	}
	vout := make([]int, counts[me])
	want := g.sum(n)[start : start+counts[me]]
	neighborForms(g.t, "ReduceScatter", func(form string) { g.want(form, vout, want) },
		func() error { return mpi.ReduceScatter(g.inter, in, vout, counts, mpi.Sum) },
		func() mpi.Request { return mpi.IreduceScatter(g.inter, in, vout, counts, mpi.Sum) },
		func() *mpi.Persistent { return mpi.ReduceScatterInit(g.inter, in, vout, counts, mpi.Sum) })
}

// A rank that passes another length is named in the errors of the ranks that detect it.
func TestLengthsDifferBetweenGroups(t *testing.T) {
	mpitest.Run(t, 4, func(t *testing.T, c *mpi.Comm) {
		inter, _, _, _ := groupPairs[0].join(t, c)
		n := 3
		if c.Rank() == 3 {
			n = 4
		}
		err := mpi.Alltoall(inter, make([]int, 2*n), make([]int, 2*3))
		if c.Rank() < 2 {
			wantClass(t, err, mpi.ErrTruncate, "Alltoall with a rank that sends more")
		} else {
			noError(t, err, "Alltoall on the side that gives more")
		}
		barrier(t, c)
	})
}
