package rdmatest

import (
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// refCopy is a cooperative copy: one OpPull and the matching OpPush, in whichever order
// they are posted. The k-th pull of a peer from a region matches the k-th push of that
// region to that peer. Each side copies one piece per Poll; the puller needs no push to
// begin.
type refCopy struct {
	region        *refRegion
	puller, owner *refQP
	pull, push    *rdma.SendWR // nil: not posted yet
	src, dst      []byte       // set with pull
	cursor        int
	pullDone      bool
	pushDone      bool
}

// refPiece is the number of bytes that one Poll copies. It is small, so that both sides
// get a share even of a short copy.
const refPiece = 4 << 10

func (q *refQP) pull(wr *rdma.SendWR, to *refQP) {
	if to.closed {
		q.finish(wr, to, rdma.StatusPeerGone, 0)
		return
	}
	region, src, ok := to.dev.reach(wr.RKey, wr.Remote, wr.Body.Len(), rdma.Cooperative)
	if !ok {
		q.finish(wr, to, rdma.StatusRemoteAccess, 0)
		return
	}
	cp := region.copyWith(q, to, func(cp *refCopy) bool { return cp.pull == nil })
	work := *wr
	cp.pull, cp.src, cp.dst = &work, src, wr.Body.Bytes()
	to.dev.signal() // the owner may help now
}

func (q *refQP) push(wr *rdma.SendWR, to *refQP) {
	region := q.dev.regions[wr.RKey]
	if region == nil || region.access&rdma.Cooperative == 0 {
		q.finish(wr, to, rdma.StatusRemoteAccess, 0)
		return
	}
	if to.closed {
		q.finish(wr, to, rdma.StatusPeerGone, 0)
		return
	}
	cp := region.copyWith(to, q, func(cp *refCopy) bool { return cp.push == nil })
	work := *wr
	cp.push = &work
	cp.report()
}

// copyWith returns the oldest copy of the pair that lacks this half, or a new one.
func (r *refRegion) copyWith(puller, owner *refQP, lacks func(*refCopy) bool) *refCopy {
	for _, cp := range r.copies {
		if cp.puller == puller && cp.owner == owner && lacks(cp) {
			return cp
		}
	}
	cp := &refCopy{region: r, puller: puller, owner: owner}
	r.copies = append(r.copies, cp)
	puller.dev.copies = append(puller.dev.copies, cp)
	if owner.dev != puller.dev {
		owner.dev.copies = append(owner.dev.copies, cp)
	}
	return cp
}

// movable reports whether a Poll of d would copy a piece.
func (cp *refCopy) movable(d *refDevice) bool {
	return cp.pull != nil && !cp.pullDone && (d == cp.puller.dev || cp.push != nil)
}

// advance copies a piece.
func (cp *refCopy) advance(d *refDevice) {
	if !cp.movable(d) {
		return
	}
	cp.cursor += copy(cp.dst[cp.cursor:min(cp.cursor+refPiece, len(cp.dst))], cp.src[cp.cursor:])
	cp.report()
}

// report completes each half once the last byte has arrived.
func (cp *refCopy) report() {
	if cp.pull == nil || cp.cursor < len(cp.dst) {
		return
	}
	if !cp.pullDone {
		cp.pullDone = true
		cp.puller.finish(cp.pull, cp.owner, rdma.StatusOK, len(cp.dst))
	}
	if cp.push != nil && !cp.pushDone {
		cp.pushDone = true
		cp.owner.finish(cp.push, cp.puller, rdma.StatusOK, len(cp.dst))
		cp.forget()
	}
}

// end completes the unfinished halves with an error status.
func (cp *refCopy) end(status rdma.Status) {
	if cp.pull != nil && !cp.pullDone {
		cp.pullDone = true
		cp.puller.finish(cp.pull, cp.owner, status, 0)
	}
	if cp.push != nil && !cp.pushDone {
		cp.pushDone = true
		cp.owner.finish(cp.push, cp.puller, status, 0)
	}
	cp.forget()
}

// closedBy ends the copy because one of its two queue pairs closed.
func (cp *refCopy) closedBy(q *refQP) {
	if q == cp.puller && cp.pull != nil && !cp.pullDone {
		cp.pullDone = true
		q.finish(cp.pull, cp.owner, rdma.StatusFlushed, 0)
	}
	if q == cp.owner && cp.push != nil && !cp.pushDone {
		cp.pushDone = true
		q.finish(cp.push, cp.puller, rdma.StatusFlushed, 0)
	}
	cp.end(rdma.StatusPeerGone)
}

func (cp *refCopy) forget() {
	is := func(other *refCopy) bool { return other == cp }
	cp.region.copies = slices.DeleteFunc(cp.region.copies, is)
	cp.puller.dev.copies = slices.DeleteFunc(cp.puller.dev.copies, is)
	cp.owner.dev.copies = slices.DeleteFunc(cp.owner.dev.copies, is)
}
