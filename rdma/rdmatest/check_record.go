package rdmatest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Write-Records: exactly the reported ranges have arrived, and refusals are reported to
// the origin.

func recordChecks() []check {
	ops := rdma.Ops(rdma.OpWriteRecord)
	return []check{
		{name: "record-moves", on: rdma.UD, ops: ops, peers: 3, run: recordMoves,
			rule: "OpRecord reports the ranges of a Write-Record that have arrived: they hold its bytes, and nothing else is modified"},
		{name: "record-refused", on: rdma.UD, ops: ops, run: recordRefused,
			rule: "a Write-Record outside a registered region, with a wrong key or without the access right transfers no byte, and its origin gets OpRefused with StatusRemoteAccess"},
	}
}

// placed is a range of a Write-Record that has arrived.
type placed struct {
	from int
	id   uint64
	at   uint64 // address of its first byte
	size int
	of   uint64 // length of the whole record
}

// takeRecord records a range.
func (n *node) takeRecord(c *rdma.Completion) error {
	from, known := n.names[c.Peer]
	switch {
	case !known:
		return errors.New("Resolve never returned the handle of its origin")
	case c.Status != rdma.StatusOK:
		return errors.New("the status of a range must be OK")
	case uint64(c.Data.Len()) > c.Len:
		return errors.New("the range is longer than the record")
	}
	n.records = append(n.records, placed{from, c.ID, c.Data.Addr(), c.Data.Len(), c.Len})
	return nil
}

// takeRefusal records a refusal by a peer.
func (n *node) takeRefusal(c *rdma.Completion) error {
	w := n.works[c.ID]
	switch {
	case w == nil || !w.posted:
		return errors.New("no request was posted with this ID")
	case w.op != rdma.OpSend && w.op != rdma.OpWriteRecord:
		return fmt.Errorf("the request was a %v, which fails in its own completion", w.op)
	case c.Peer != n.peers[w.to]:
		return fmt.Errorf("the request was for node %d, whose handle is %d", w.to, n.peers[w.to])
	case c.Status == rdma.StatusOK || w.refused != rdma.StatusOK:
		return errors.New("a refusal must have a reason and occur once")
	}
	w.refused = c.Status
	return nil
}

// lossTimeout is the time after which a datagram is assumed lost and sent again.
const lossTimeout = 100 * time.Millisecond

// recordMoves writes to a peer until every record has arrived whole. Lost ones are
// repeated.
func recordMoves(r *rig) {
	a, b := r.nodes[0], r.nodes[2]
	for i, size := range []int{0, 1, 8, 63, 1000, 4097, 8000} {
		limit := time.Now().Add(r.hangTimeout)
		for whole := false; !whole; {
			if time.Now().After(limit) {
				r.t.Fatalf("no write-record of %d bytes has arrived whole in %v", size, r.hangTimeout)
			}
			off := 5 * i
			tr := a.prepare(rdma.OpWriteRecord, b, off, size, 50, i%8)
			first := len(b.records)
			r.post(a, tr.w)
			sent := time.Now()
			r.pollUntil("the write-record has completed and arrived, or is lost", func() bool {
				return tr.w.done && (len(b.records) > first || time.Since(sent) > lossTimeout)
			})
			if tr.w.status != rdma.StatusOK || tr.w.length != uint64(size) {
				r.t.Fatalf("a write-record of %d bytes completes with %v and Len %d", size, tr.w.status, tr.w.length)
			}
			whole = r.checkRecords(tr, b.records[first:], a.index)
		}
	}
}

// checkRecords checks the reports of one Write-Record and returns whether they cover all
// of it.
func (r *rig) checkRecords(tr *transfer, list []placed, from int) (whole bool) {
	r.t.Helper()
	start := rdma.MemOf(tr.there.mem).Addr() + uint64(tr.lo)
	size := tr.hi - tr.lo
	for _, p := range list {
		if earlier := r.nodes[from].works[p.id]; earlier != nil && earlier != tr.w {
			continue // it was assumed lost
		}
		if p.id != tr.w.id || p.from != from || p.of != uint64(size) {
			r.t.Fatalf("request %d, a write-record of %d bytes by node %d, is reported as %+v", tr.w.id, size, from, p)
		}
		if p.size == size {
			whole = true
			if err := tr.check(); err != nil {
				r.t.Fatalf("a write-record of %d bytes: %v", size, err)
			}
		}
		if p.size == 0 {
			continue
		}
		lo := int(p.at - start)
		if p.at < start || lo+p.size > size {
			r.t.Fatalf("a write-record of %d bytes has arrived at %d of it, %d bytes", size, lo, p.size)
		}
		if err := differ(tr.there.mem[tr.lo+lo:tr.lo+lo+p.size], tr.want[lo:lo+p.size]); err != nil {
			r.t.Fatalf("bytes %d to %d of a write-record have arrived: %v", lo, lo+p.size, err)
		}
	}
	return whole
}

// recordRefused attempts forbidden writes, each until its refusal has arrived.
func recordRefused(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	region := newGuarded(1000, 3, 1)
	mr := b.register(region.mem, rdma.RemoteWrite)
	readable := b.register(slices.Clone(region.mem), rdma.RemoteRead)
	gone := b.register(region.mem, rdma.RemoteWrite)
	b.deregister(gone)
	for _, c := range []struct {
		how          string
		remote, rkey uint64
	}{
		{"beyond the end", mr.Base + mr.Len - 39, mr.RKey},
		{"before the start", mr.Base - 1, mr.RKey},
		{"across the end of the address space", ^uint64(0) - 10, mr.RKey},
		{"with a wrong key", mr.Base, mr.RKey ^ 1<<20},
		{"with a key that is too long", mr.Base, mr.RKey | 1<<63},
		{"without the access right", readable.Base, readable.RKey},
		{"after Deregister", gone.Base, gone.RKey},
	} {
		limit := time.Now().Add(r.hangTimeout)
		for refused := false; !refused; {
			if time.Now().After(limit) {
				r.t.Fatalf("a write-record %s: no refusal has arrived in %v", c.how, r.hangTimeout)
			}
			here, lkey := a.local(40, 1, 2)
			w := a.access(rdma.OpWriteRecord, 1, here.mem, lkey, c.remote, c.rkey)
			r.post(a, w)
			sent := time.Now()
			r.pollUntil("the write-record has completed and is refused, or lost", func() bool {
				return w.done && (w.refused != rdma.StatusOK || time.Since(sent) > lossTimeout)
			})
			if refused = w.refused != rdma.StatusOK; refused && w.refused != rdma.StatusRemoteAccess {
				r.t.Fatalf("a write-record %s is refused with %q; it should be %q", c.how, w.refused, rdma.StatusRemoteAccess)
			}
			if err := region.checkUnchanged(); err != nil {
				r.t.Fatalf("a write-record %s is refused, but the region: %v", c.how, err)
			}
			if len(b.records) > 0 {
				r.t.Fatalf("a write-record %s is reported as arrived: %+v", c.how, b.records)
			}
		}
	}
}
