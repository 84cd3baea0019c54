package mpi_test

// The calls of the matrix that transfer data without combining it.

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

func (k matrixCall) bcast(c *mpi.Comm) *matrixRun {
	r := buffers(0, k.count)
	if c.Rank() == k.root {
		k.load(r.out, k.root, 0)
	}
	k.load(r.given(), k.root, 0)
	r.blocking = func() error { return mpi.Bcast(c, r.out, k.root) }
	r.start = func() mpi.Request { return mpi.Ibcast(c, r.out, k.root) }
	r.prepare = func() *mpi.Persistent { return mpi.BcastInit(c, r.out, k.root) }
	return r
}

func (k matrixCall) gather(c *mpi.Comm) *matrixRun {
	me := c.Rank()
	b := k.draw(k.lengths(c.Size(), k.common()), k.own(k.root))
	r := buffers(b.lens[me], b.room)
	k.load(r.in, me, k.root)
	in, counts, displs := r.in, b.lens, b.at
	if k.inPlace(me) {
		in = nil
		k.load(b.of(r.out, me), me, k.root)
	}
	want := r.given()
	if me == k.root {
		for from := range c.Size() {
			k.load(b.of(want, from), from, k.root)
		}
	} else {
		counts, displs = nil, nil
	}
	if k.irregular {
		r.blocking = func() error { return mpi.Gatherv(c, in, r.out, counts, displs, k.root) }
		r.start = func() mpi.Request { return mpi.Igatherv(c, in, r.out, counts, displs, k.root) }
		r.prepare = func() *mpi.Persistent { return mpi.GathervInit(c, in, r.out, counts, displs, k.root) }
		return r
	}
	r.blocking = func() error { return mpi.Gather(c, in, r.out, k.root) }
	r.start = func() mpi.Request { return mpi.Igather(c, in, r.out, k.root) }
	r.prepare = func() *mpi.Persistent { return mpi.GatherInit(c, in, r.out, k.root) }
	return r
}

func (k matrixCall) scatter(c *mpi.Comm) *matrixRun {
	me := c.Rank()
	b := k.draw(k.lengths(c.Size(), k.common()), k.own(k.root))
	r := buffers(b.room, b.lens[me])
	out, counts, displs := r.out, b.lens, b.at
	if me == k.root {
		for to := range c.Size() {
			k.load(b.of(r.in, to), k.root, to)
		}
	} else {
		counts, displs = nil, nil
	}
	if want := r.given(); k.inPlace(me) {
		out = nil // the root's own block stays where it is
	} else {
		k.load(want, k.root, me)
	}
	if k.irregular {
		r.blocking = func() error { return mpi.Scatterv(c, r.in, counts, displs, out, k.root) }
		r.start = func() mpi.Request { return mpi.Iscatterv(c, r.in, counts, displs, out, k.root) }
		r.prepare = func() *mpi.Persistent { return mpi.ScattervInit(c, r.in, counts, displs, out, k.root) }
		return r
	}
	r.blocking = func() error { return mpi.Scatter(c, r.in, out, k.root) }
	r.start = func() mpi.Request { return mpi.Iscatter(c, r.in, out, k.root) }
	r.prepare = func() *mpi.Persistent { return mpi.ScatterInit(c, r.in, out, k.root) }
	return r
}

func (k matrixCall) allgather(c *mpi.Comm) *matrixRun {
	me := c.Rank()
	b := k.draw(k.lengths(c.Size(), k.common()), k.own(me))
	r := buffers(b.lens[me], b.room)
	k.load(r.in, me, 0)
	in := r.in
	if k.inPlace(me) {
		in = nil
		k.load(b.of(r.out, me), me, 0)
	}
	want := r.given()
	for from := range c.Size() {
		k.load(b.of(want, from), from, 0)
	}
	if k.irregular {
		r.blocking = func() error { return mpi.Allgatherv(c, in, r.out, b.lens, b.at) }
		r.start = func() mpi.Request { return mpi.Iallgatherv(c, in, r.out, b.lens, b.at) }
		r.prepare = func() *mpi.Persistent { return mpi.AllgathervInit(c, in, r.out, b.lens, b.at) }
		return r
	}
	r.blocking = func() error { return mpi.Allgather(c, in, r.out) }
	r.start = func() mpi.Request { return mpi.Iallgather(c, in, r.out) }
	r.prepare = func() *mpi.Persistent { return mpi.AllgatherInit(c, in, r.out) }
	return r
}

func (k matrixCall) alltoall(c *mpi.Comm) *matrixRun {
	me, size, rng := c.Rank(), c.Size(), k.common()
	lens := make([][]int, size)
	for i := range lens {
		lens[i] = k.lengths(size, rng)
		for j := range i {
			lens[i][j] = lens[j][i] // who is in place gets as much as it gives
		}
	}
	own := k.own(me)
	send, recv := k.draw(lens[me], own), k.draw(lens[me], own)
	r := buffers(send.room, recv.room)
	in, counts, displs := r.in, send.lens, send.at
	for to := range size {
		if k.inPlace(me) {
			k.load(recv.of(r.out, to), me, to)
		} else {
			k.load(send.of(r.in, to), me, to)
		}
	}
	if k.inPlace(me) {
		in, counts, displs = nil, nil, nil
	}
	want := r.given()
	for from := range size {
		k.load(recv.of(want, from), from, me)
	}
	if k.irregular {
		r.blocking = func() error { return mpi.Alltoallv(c, in, counts, displs, r.out, recv.lens, recv.at) }
		r.start = func() mpi.Request { return mpi.Ialltoallv(c, in, counts, displs, r.out, recv.lens, recv.at) }
		r.prepare = func() *mpi.Persistent {
			return mpi.AlltoallvInit(c, in, counts, displs, r.out, recv.lens, recv.at)
		}
		return r
	}
	r.blocking = func() error { return mpi.Alltoall(c, in, r.out) }
	r.start = func() mpi.Request { return mpi.Ialltoall(c, in, r.out) }
	r.prepare = func() *mpi.Persistent { return mpi.AlltoallInit(c, in, r.out) }
	return r
}

// matrixEdge is an edge of a graph and the length of the block that goes along it.
type matrixEdge struct{ from, to, length int }

// neighbors returns up to four random edges per rank; ranks may be their own neighbors,
// also several times.
func (k matrixCall) neighbors(t *testing.T, c *mpi.Comm) *matrixRun {
	me, size, rng := c.Rank(), c.Size(), k.common()
	shared := k.inPlaceAt == "shared"
	gives := k.lengths(size, rng) // if all neighbors of a rank get the same
	edges := make([]matrixEdge, rng.IntN(4*size+1))
	var sources, dests []mpi.Neighbor
	var recvLens, sendLens []int
	for i := range edges {
		e := matrixEdge{rng.IntN(size), rng.IntN(size), k.length(rng)}
		if shared {
			e.length = gives[e.from]
		}
		edges[i] = e
		if e.from == me {
			dests, sendLens = append(dests, mpi.Neighbor{Rank: e.to}), append(sendLens, e.length)
		}
		if e.to == me {
			sources, recvLens = append(sources, mpi.Neighbor{Rank: e.from}), append(recvLens, e.length)
		}
	}
	g, err := c.DistGraphCreateAdjacent(sources, dests, nil)
	noError(t, err, "DistGraphCreateAdjacent")

	own := k.own(me)
	send, recv := k.draw(sendLens, own), k.draw(recvLens, own)
	room := send.room
	if shared {
		room = gives[me]
	}
	r := buffers(room, recv.room)
	r.on = g.Comm
	if shared {
		k.load(r.in, me, 0)
	}
	for i, n := 0, 0; i < len(edges); i++ { // an edge has its number as the one it is for
		if edges[i].from == me && !shared {
			k.load(send.of(r.in, n), me, i)
			n++
		}
	}
	want := r.given()
	for i, n := 0, 0; i < len(edges); i++ {
		if edges[i].to != me {
			continue
		}
		to := i
		if shared {
			to = 0
		}
		k.load(recv.of(want, n), edges[i].from, to)
		n++
	}
	k.neighborForms(r, g, shared, &send, &recv)
	return r
}

func (k matrixCall) neighborForms(r *matrixRun, g *mpi.DistGraph, shared bool, send, recv *oddBlocks) {
	switch {
	case shared && k.irregular:
		r.blocking = func() error { return mpi.NeighborAllgatherv(g, r.in, r.out, recv.lens, recv.at) }
		r.start = func() mpi.Request { return mpi.IneighborAllgatherv(g, r.in, r.out, recv.lens, recv.at) }
		r.prepare = func() *mpi.Persistent { return mpi.NeighborAllgathervInit(g, r.in, r.out, recv.lens, recv.at) }
	case shared:
		r.blocking = func() error { return mpi.NeighborAllgather(g, r.in, r.out) }
		r.start = func() mpi.Request { return mpi.IneighborAllgather(g, r.in, r.out) }
		r.prepare = func() *mpi.Persistent { return mpi.NeighborAllgatherInit(g, r.in, r.out) }
	case k.irregular:
		r.blocking = func() error {
			return mpi.NeighborAlltoallv(g, r.in, send.lens, send.at, r.out, recv.lens, recv.at)
		}
		r.start = func() mpi.Request {
			return mpi.IneighborAlltoallv(g, r.in, send.lens, send.at, r.out, recv.lens, recv.at)
		}
		r.prepare = func() *mpi.Persistent {
			return mpi.NeighborAlltoallvInit(g, r.in, send.lens, send.at, r.out, recv.lens, recv.at)
		}
	default:
		r.blocking = func() error { return mpi.NeighborAlltoall(g, r.in, r.out) }
		r.start = func() mpi.Request { return mpi.IneighborAlltoall(g, r.in, r.out) }
		r.prepare = func() *mpi.Persistent { return mpi.NeighborAlltoallInit(g, r.in, r.out) }
	}
}
