package shm

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Sending: PostSend → post → transmit → a ring's push, or the peer's shared queue until it
// has a ring → wake, if the peer sleeps.

// PostSend accepts a prefix of wrs. The most common case is handled here without calls: a
// single message that fits into a cell of a ring that is known to have room.
func (q *queuePair) PostSend(wrs []rdma.SendWR) (int, error) {
	d := q.dev
	if len(wrs) != 1 || q.closed || d.closed || !d.fences.unneeded.Load() {
		return q.postAll(wrs)
	}
	wr := &wrs[0]
	p := d.peer(wr.Peer)
	if p == nil || p.ring == nil || p.gone || p.fenced || wr.Op != rdma.OpSend || wr.Flags != rdma.Inline {
		return q.postAll(wrs)
	}
	w, body := p.ring, wr.Body.Bytes()
	n := int(wr.HeadLen) + len(body)
	if n > ringInline || w.pos-w.cellsSeen >= uint64(len(w.cells)) {
		return q.postAll(wrs)
	}
	c := &w.cells[w.pos&uint64(len(w.cells)-1)]
	copyHead(&c.data, &wr.Head)
	if len(body) == 8 && wr.HeadLen <= ringInline-8 { // common enough to save a call
		*(*[8]byte)(c.data[wr.HeadLen:]) = [8]byte(body)
	} else {
		copy(c.data[wr.HeadLen:], body)
	}
	c.tag.Publish(ringTag(uint32(w.pos>>(w.shift&63))+1, kindData, n))
	// Nothing may come between the publication and this load, see wait.go.
	state := p.seg.head.sleeper.Load()
	w.pos++
	d.traffic.sent++
	if w.note(d.traffic.received); w.streak > reachAfter {
		w.reach()
	} else if w.streak == 0 {
		w.claimNext()
	}
	if state == awakeWord {
		return 1, nil
	}
	if state == closedWord { // the peer is gone: postAll reports it
		p.gone = true
		return q.postAll(wrs)
	}
	d.wakePeer(p, false)
	return 1, nil
}

func (q *queuePair) postAll(wrs []rdma.SendWR) (int, error) {
	if q.closed || q.dev.closed {
		return 0, rdma.ErrClosed
	}
	n := 0
	var err error
	for n < len(wrs) && err == nil {
		if err = q.dev.post(&wrs[n]); err == nil {
			n++
		}
	}
	if len(q.dev.copies.opened) > 0 {
		q.dev.copyOpened()
	}
	return n, err
}

// copyOpened copies for the pulls that a post has opened.
func (d *Device) copyOpened() {
	d.mu.Lock()
	d.copies.copyOpened(d)
	d.mu.Unlock()
}

func (d *Device) post(wr *rdma.SendWR) error {
	p := d.peer(wr.Peer)
	if p == nil {
		return errUnknownPeer(wr.Peer)
	}
	if p.seg.head.sleeper.Load() == closedWord {
		p.gone = true
	}
	inline := wr.Flags&rdma.Inline != 0
	if wr.Op != rdma.OpSend || p.gone || !inline {
		return d.postReserved(p, wr)
	}
	if int(wr.HeadLen)+wr.Body.Len() > maxSend || wr.HeadLen > rdma.HeadMax {
		return errTooLong(wr)
	}
	if !d.transmit(p, kindData, wr) {
		d.starved.Store(true)
		return rdma.ErrAgain
	}
	return nil
}

// postReserved handles requests that generate a completion.
func (d *Device) postReserved(p *peer, wr *rdma.SendWR) error {
	d.mu.Lock()
	err := d.accept(p, wr)
	d.mu.Unlock()
	if d.seg.head.sleeper.Load() == asleepWord {
		d.seg.unpark() // a Wait is in progress, and now there is something to do
	}
	if err == rdma.ErrAgain {
		d.starved.Store(true)
	}
	return err
}

func (d *Device) accept(p *peer, wr *rdma.SendWR) error {
	if !d.attr.Ops.Has(wr.Op) {
		return fmt.Errorf("shm: %v to peer %d: %w", wr.Op, wr.Peer, rdma.ErrUnsupported)
	}
	if wr.Op == rdma.OpSend && (int(wr.HeadLen)+wr.Body.Len() > maxSend || wr.HeadLen > rdma.HeadMax) {
		return errTooLong(wr)
	}
	if !d.done.reserve(wr.Op) {
		return rdma.ErrAgain
	}
	c := rdma.Completion{ID: wr.ID, Op: wr.Op, Peer: wr.Peer}
	switch {
	case p.gone:
		c.Status = rdma.StatusPeerGone
	case wr.Op != rdma.OpSend:
		return d.copies.start(d, p, wr)
	case !d.transmit(p, kindData, wr):
		d.done.release(wr.Op)
		return rdma.ErrAgain
	default:
		// The message was copied, so the send is complete.
		c.Len = uint64(wr.HeadLen) + uint64(wr.Body.Len())
	}
	d.done.add(c)
	return nil
}

func errTooLong(wr *rdma.SendWR) error {
	return fmt.Errorf("shm: a message of %d + %d bytes to peer %d is longer than Attr.MaxSend, %d, or its head than %d; send it in pieces",
		wr.HeadLen, wr.Body.Len(), wr.Peer, maxSend, rdma.HeadMax)
}

// transmit copies a message into the peer's segment and reports whether there
// was room.
func (d *Device) transmit(p *peer, k kind, wr *rdma.SendWR) bool {
	urgent := k != kindData || wr.Flags&rdma.Solicited != 0
	fenced := p.fenced || urgent || !d.fences.unneeded.Load() // see beside.go
	d.traffic.sent++
	if p.ring != nil {
		p.ring.note(d.traffic.received)
		if !p.ring.push(k, wr, fenced) {
			return false
		}
	} else if !d.sendShared(p, k, wr, fenced) {
		return false
	}
	// Nothing may come between the publication and this load, see wait.go.
	if p.seg.head.sleeper.Load() != awakeWord {
		d.wakePeer(p, urgent)
	}
	return true
}

// sendShared uses the peer's shared queue, and opens a ring once enough messages went that
// way.
func (d *Device) sendShared(p *peer, k kind, wr *rdma.SendWR, fenced bool) bool {
	if !p.seg.appendShared(d.index, k, wr, fenced) {
		return false
	}
	if p.sent++; p.sent >= p.ringAt {
		d.openRing(p, fenced)
	}
	return true
}

// openRing claims a ring in the peer's segment and announces it with the last message that
// goes through its shared queue.
func (d *Device) openRing(p *peer, fenced bool) {
	i := claimBit(&p.seg.head.ringUsed, p.seg.geo.rings)
	if i < 0 {
		p.ringAt = 2 * p.sent // one may become free
		return
	}
	w := openRingWriter(p.seg, i)
	marker := rdma.SendWR{HeadLen: 1}
	marker.Head[0] = byte(i)
	if !p.seg.appendShared(d.index, kindRingOpen, &marker, fenced) {
		clearBit(&p.seg.head.ringUsed, i)
		p.ringAt = p.sent + 1
		return
	}
	p.ring = w
}
