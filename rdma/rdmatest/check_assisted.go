package rdmatest

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Writes into a region whose owner may help to copy. Such a Write differs from an ordinary
// one only in timing, so these checks apply to devices that ignore the right as well.

func assistedChecks() []check {
	write := rdma.Ops(rdma.OpWrite)
	return []check{
		{name: "assisted-write-moves", on: reliable, ops: write, run: assistedSizes(func(r *rig, tr *transfer) {}),
			rule: "a Write into an Assisted region has the same effect as any other, and completes once, at the writer only"},
		{name: "assisted-write-alone", on: reliable, ops: write, unless: needsTarget, run: assistedSizes(func(r *rig, tr *transfer) {
			r.pollUntil("the Write has completed while the owner does not poll", func() bool { return tr.w.done }, r.nodes[0])
		}), rule: "without Attr.RemoteCPU, OpWrite completes without a Poll of its target, even if the target could help"},
		{name: "assisted-write-again", on: reliable, ops: write, unless: needsTarget, run: assistedAgain,
			rule: "a Write into an Assisted region does not wait until the owner has seen the previous one"},
		{name: "assisted-write-parallel", on: reliable, ops: write, peers: 3, run: assistedParallel,
			rule: "the owner of an Assisted region may copy pieces while the writer copies"},
		{name: "assisted-write-deregister", on: reliable, ops: write, run: assistedDeregister,
			rule: "after Deregister an access transfers no byte and completes with StatusRemoteAccess, even if the region was Assisted"},
	}
}

func (n *node) prepareAssisted(to *node, off, size, rest, skew int) (*transfer, rdma.MR) {
	n.rig.t.Helper()
	tr := &transfer{there: newGuarded(off+size+rest, skew, n.rig.random.next()), lo: off, hi: off + size}
	mr := to.register(tr.there.mem, rdma.RemoteWrite|rdma.Assisted)
	tr.prepareWrite(n, to, mr, skew)
	return tr, mr
}

// prepareWrite prepares a Write of [lo, hi).
func (tr *transfer) prepareWrite(n, to *node, mr rdma.MR, skew int) {
	var lkey uint32
	tr.here, lkey = n.local(tr.hi-tr.lo, 7-skew, n.rig.random.next())
	tr.w = n.access(rdma.OpWrite, to.index, tr.here.mem, lkey, mr.Base+uint64(tr.lo), mr.RKey)
	tr.want = slices.Clone(tr.here.mem)
}

func assistedSizes(between func(*rig, *transfer)) func(*rig) {
	return func(r *rig) {
		for i, c := range []struct{ off, size, rest int }{
			{0, 1, 0}, {3, 4096, 5}, {0, 70000, 0}, {1, 100000, 200}, {0, 300000, 0}, {4096, 1 << 20, 1}, {0, 5<<20 + 7, 3},
		} {
			tr, mr := r.nodes[0].prepareAssisted(r.nodes[1], c.off, c.size, c.rest, i%8)
			r.post(r.nodes[0], tr.w)
			between(r, tr)
			r.pollUntil("the Write has completed", func() bool { return tr.w.done })
			r.checkSuccess(tr)
			r.settle()
			r.nodes[1].deregister(mr)
		}
	}
}

// assistedAgain writes several times into one region while its owner does not poll, and
// again after it has polled.
func assistedAgain(r *rig) {
	tr, mr := r.nodes[0].prepareAssisted(r.nodes[1], 11, 200000, 9, 3)
	for i := range 6 {
		r.post(r.nodes[0], tr.w)
		r.pollUntil(fmt.Sprintf("Write %d has completed while the owner does not poll", i), func() bool { return tr.w.done }, r.nodes[0])
		r.checkSuccess(tr)
		if i%3 == 2 {
			r.settle()
		}
		tr.there.mark()
		tr.prepareWrite(r.nodes[0], r.nodes[1], mr, 3)
	}
	r.nodes[1].deregister(mr)
}

func assistedParallel(r *rig) {
	type written struct {
		tr *transfer
		mr rdma.MR
		to *node
	}
	todo := make([][]*work, len(r.nodes))
	var list []written
	for i := range 18 {
		from, to := r.nodes[i%3], r.nodes[(i+1+i/3%2)%3]
		tr, mr := from.prepareAssisted(to, i, 1+r.random.intBelow(1<<(16+i%6)), 18-i, i%8)
		todo[from.index] = append(todo[from.index], tr.w)
		list = append(list, written{tr, mr, to})
	}
	r.offerInParallel(todo)
	for _, w := range list {
		r.checkSuccess(w.tr)
		w.to.deregister(w.mr)
	}
	r.settle()
}

func assistedDeregister(r *rig) {
	for _, size := range []int{100, 100000, 1 << 20} {
		tr, mr := r.nodes[0].prepareAssisted(r.nodes[1], 0, size, 0, 0)
		r.settle()
		r.nodes[1].deregister(mr)
		r.complete(r.nodes[0], tr.w, "the late Write has completed")
		if tr.w.status != rdma.StatusRemoteAccess {
			r.t.Errorf("a Write of %d bytes after Deregister completes with %v", size, tr.w.status)
		}
		if err := tr.there.checkUnchanged(); err != nil {
			r.t.Error(err)
		}
		r.settle()
	}
}
