package rdmatest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Permitted OpRead and OpWrite.

func memoryChecks() []check {
	read, write := rdma.Ops(rdma.OpRead), rdma.Ops(rdma.OpWrite)
	return []check{
		{name: "read-moves", on: reliable, ops: read, run: func(r *rig) { moves(r, rdma.OpRead) },
			rule: "OpRead copies the peer's bytes at Remote into Body, and no others"},
		{name: "write-moves", on: reliable, ops: write, run: func(r *rig) { moves(r, rdma.OpWrite) },
			rule: "OpWrite copies Body to the peer's memory at Remote, and nowhere else"},
		{name: "write-inline", on: reliable, ops: read | write, run: inlineWrites,
			rule: "Body of an inline Write needs no local key and belongs to the caller again when PostSend returns, and a successful one generates no completion"},
		{name: "transfer-limit", on: reliable, ops: read | write, unless: hugeTransfers, run: transferLimit,
			rule: "a Read or Write of Attr.MaxTransfer bytes succeeds; with one byte more it fails and transfers nothing"},
		{name: "read-alone", on: reliable, ops: read, unless: needsTarget, run: func(r *rig) { movesAlone(r, rdma.OpRead) },
			rule: "without Attr.RemoteCPU, OpRead completes without a Poll of its target"},
		{name: "write-alone", on: reliable, ops: write, unless: needsTarget, run: func(r *rig) { movesAlone(r, rdma.OpWrite) },
			rule: "without Attr.RemoteCPU, OpWrite completes without a Poll of its target"},
		{name: "read-write-many", on: reliable, ops: read | write, peers: 3, run: manyOutstanding,
			rule: "many Reads and Writes may be outstanding, and each completes once"},
		{name: "read-write-parallel", on: reliable, ops: read | write, peers: 3, run: manyParallel,
			rule: "many Reads and Writes may be outstanding, and each completes once"},
		{name: "read-after-message", on: reliable, ops: read, run: readAfterMessage,
			rule: "a Read that is posted after a message has arrived sees what its sender wrote before sending it"},
	}
}

func needsTarget(a *rdma.Attr) string {
	if a.RemoteCPU {
		return "the device needs its target's CPU (Attr.RemoteCPU)"
	}
	return ""
}

// local returns guarded memory for a Body, with its key.
func (n *node) local(size, skew int, seed uint64) (*guarded, uint32) {
	n.rig.t.Helper()
	g := newGuarded(size, skew, seed)
	if n.attr.LocalKeys && size > 0 {
		return g, n.register(g.mem, 0).LKey
	}
	return g, 0
}

// transfer is a Read or Write of one range, with guard areas around all memory.
type transfer struct {
	w           *work
	there, here *guarded // the target's memory and Body
	lo, hi      int      // the range of there
	want        []byte
}

// prepare prepares a Read or Write of [off, off+size) of a region that continues for rest
// bytes after it.
func (n *node) prepare(op rdma.Op, to *node, off, size, rest, skew int) *transfer {
	n.rig.t.Helper()
	tr := &transfer{there: newGuarded(off+size+rest, skew, n.rig.random.next()), lo: off, hi: off + size}
	mr := to.register(tr.there.mem, rdma.RemoteRead|rdma.RemoteWrite)
	var lkey uint32
	tr.here, lkey = n.local(size, 7-skew, n.rig.random.next())
	tr.w = n.access(op, to.index, tr.here.mem, lkey, mr.Base+uint64(off), mr.RKey)
	if op == rdma.OpRead {
		tr.want = slices.Clone(tr.there.mem[tr.lo:tr.hi])
	} else {
		tr.want = slices.Clone(tr.here.mem)
	}
	return tr
}

// check compares all memory after the transfer.
func (tr *transfer) check() error {
	if tr.w.op == rdma.OpRead {
		if err := tr.there.checkUnchanged(); err != nil {
			return err
		}
		return tr.here.changedOnly(0, len(tr.here.mem), tr.want)
	}
	if err := tr.here.checkUnchanged(); err != nil {
		return err
	}
	return tr.there.changedOnly(tr.lo, tr.hi, tr.want)
}

// checkSuccess checks the completion and the bytes.
func (r *rig) checkSuccess(tr *transfer) {
	r.t.Helper()
	size := tr.hi - tr.lo
	if tr.w.status != rdma.StatusOK || tr.w.length != uint64(size) {
		r.t.Fatalf("%v of %d bytes at offset %d completes with %v and Len %d", tr.w.op, size, tr.lo, tr.w.status, tr.w.length)
	}
	if err := tr.check(); err != nil {
		r.t.Fatalf("%v of %d bytes at offset %d: %v", tr.w.op, size, tr.lo, err)
	}
}

func moves(r *rig, op rdma.Op) {
	a, b := r.nodes[0], r.nodes[1]
	for _, size := range []int{0, 1, 3, 8, 63, 64, 65, 1000, 4095, 4096, 4097, 65537, 1<<20 + 13, 3<<20 + 1} {
		for i, off := range []int{0, 1, 7, 4093} {
			if size > 1<<20 && i != 1 {
				continue // the other skews add nothing
			}
			tr := a.prepare(op, b, off, size, 50, i*3%8)
			r.complete(a, tr.w, "the transfer has completed")
			r.checkSuccess(tr)
		}
	}
}

// inlineWrites posts inline Writes into adjacent ranges, from bodies that node.offer
// overwrites. Nothing reports their arrival, and the device may place them at any time, so
// the check reads them back until they are there.
func inlineWrites(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	there := newGuarded(8*a.attr.MaxInline, 3, r.random.next())
	mr := b.register(there.mem, rdma.RemoteRead|rdma.RemoteWrite)
	off := 0
	var want []byte
	for _, size := range []int{1, 44, 447, 449, 2048, a.attr.MaxInline / 2, a.attr.MaxInline} {
		if size > a.attr.MaxInline {
			continue
		}
		body := make([]byte, size)
		fill(body, r.random.next())
		want = append(want, body...)
		w := a.access(rdma.OpWrite, 1, body, 0, mr.Base+uint64(off), mr.RKey)
		w.inline, w.keep = true, false
		r.post(a, w)
		off += size
	}
	here, lkey := a.memory(off)
	for tries := 0; !bytes.Equal(here, want); tries++ {
		if tries == 1000 {
			r.t.Fatalf("after %d reads: inline bodies, overwritten after PostSend: %v", tries, differ(here, want))
		}
		w := a.access(rdma.OpRead, 1, here, lkey, mr.Base, mr.RKey)
		r.complete(a, w, "the read has completed")
	}
	r.settle() // node.take rejects a completion
	if err := there.changedOnly(0, off, want); err != nil {
		r.t.Error(err)
	}
}

func hugeTransfers(a *rdma.Attr) string {
	if a.MaxTransfer == 0 || a.MaxTransfer > 8<<20 {
		return "Attr.MaxTransfer is unlimited or more than a test should allocate"
	}
	return ""
}

func transferLimit(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	most := a.attr.MaxTransfer
	for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
		tr := a.prepare(op, b, 5, most, 50, 3)
		r.complete(a, tr.w, "the longest transfer has completed")
		r.checkSuccess(tr)

		long := a.prepare(op, b, 5, most+1, 50, 3)
		_, err := a.offer([]*work{long.w})
		if errors.Is(err, rdma.ErrAgain) {
			r.t.Fatalf("a %v of %d bytes can never be accepted, but PostSend returns ErrAgain", op, most+1)
		}
		if err == nil {
			r.pollUntil("the transfer that was accepted, but is too long, completes", func() bool { return long.w.done })
			if long.w.status == rdma.StatusOK {
				r.t.Errorf("a %v of %d bytes succeeds: Attr.MaxTransfer is %d", op, most+1, most)
			}
		}
		r.settle()
		for _, g := range []*guarded{long.there, long.here} {
			if err := g.checkUnchanged(); err != nil {
				r.t.Errorf("a %v of %d bytes is longer than Attr.MaxTransfer, %d, but: %v", op, most+1, most, err)
			}
		}
	}
}

func movesAlone(r *rig, op rdma.Op) {
	a, b := r.nodes[0], r.nodes[1]
	for _, size := range []int{1, 5000, 1 << 20} {
		tr := a.prepare(op, b, 3, size, 3, 1)
		r.post(a, tr.w)
		r.pollUntil("the transfer has completed while its target does not poll", func() bool { return tr.w.done }, a)
		r.checkSuccess(tr)
	}
}

// someTransfers prepares Reads and Writes of all sizes to all other nodes.
func someTransfers(r *rig, n *node, count int) []*transfer {
	var list []*transfer
	for i := range count {
		op := rdma.OpRead
		if i%2 == 1 {
			op = rdma.OpWrite
		}
		to := r.nodes[(n.index+1+i%(len(r.nodes)-1))%len(r.nodes)]
		list = append(list, n.prepare(op, to, r.random.intBelow(20), r.random.intBelow(1<<r.random.intBelow(15)), 9, i%8))
	}
	return list
}

func manyOutstanding(r *rig) {
	var list []*transfer
	for _, n := range r.nodes {
		mine := someTransfers(r, n, 150)
		for _, tr := range mine {
			r.post(n, tr.w)
		}
		list = append(list, mine...)
	}
	r.pollUntil("all transfers have completed", func() bool {
		return r.nodes[0].open+r.nodes[1].open+r.nodes[2].open == 0
	})
	for _, tr := range list {
		r.checkSuccess(tr)
	}
}

func manyParallel(r *rig) {
	var list []*transfer
	todo := make([][]*work, len(r.nodes))
	for i, n := range r.nodes {
		for _, tr := range someTransfers(r, n, 150) {
			list = append(list, tr)
			todo[i] = append(todo[i], tr.w)
		}
	}
	r.offerInParallel(todo)
	for _, tr := range list {
		r.checkSuccess(tr)
	}
}

// readAfterMessage makes the owner change its memory and then notify the reader, many
// times.
func readAfterMessage(r *rig) {
	reader, owner := r.nodes[0], r.nodes[1]
	mem := make([]byte, 3000)
	mr := owner.register(mem, rdma.RemoteRead)
	want := make([]byte, len(mem))
	here, lkey := reader.local(len(mem), 0, 0)
	for round := range 50 {
		fill(mem, uint64(round))
		fill(want, uint64(round))
		r.post(owner, owner.sendInline(0, 8, 0))
		r.pollUntil("the message has arrived", func() bool { return len(reader.arrived) == round+1 })
		w := reader.access(rdma.OpRead, 1, here.mem, lkey, mr.Base, mr.RKey)
		r.complete(reader, w, "the read has completed")
		if err := differ(here.mem, want); err != nil {
			r.t.Fatalf("round %d: the read returns stale data: %v", round, err)
		}
	}
}
