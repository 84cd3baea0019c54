package shm

import (
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Receiving: poll releases the buffers that the last poll lent, returns completions of
// requests, checks each open ring, then the shared queue, and finally copies a piece of
// the outstanding transfers. A check costs one load for each ring and one for the queue.

// inbox is where messages arrive: the rings of busy senders, and the queue that all share.
type inbox struct {
	queue   queueReader
	rings   []*ringReader
	next    int         // the ring that is polled next, less one
	skipped int         // polls that skipped the shared queue
	closing *ringReader // its sender has closed it: drop it at the next poll
}

// Poll is written out here instead of calling a method of the device, because a waiting
// rank does nothing else.
func (c *completionQueue) Poll(out []rdma.Completion) int {
	d := c.dev
	// A message from the only busy sender is the most common case: nothing else is checked
	// then, up to a few times.
	if len(d.inbox.rings) == 1 && d.inbox.skipped < maxSkipped && d.inbox.queue.freed == d.inbox.queue.pos {
		r := d.inbox.rings[0]
		if r.pause == 0 && r.await(d.traffic.sent) {
			d.inbox.skipped++
			r.release()
			if tag := r.cell.tag.Load(); len(out) > 0 && d.recv.lend && r.sent != d.traffic.sent && tag>>24&0xff == uint64(kindData) {
				// Something was sent since the last message: this is probably the answer,
				// with no message after it.
				n, cell := int(tag&0xffffff), r.cell
				o := &out[0]
				o.ID, o.Op, o.Status, o.Peer, o.Len = 0, rdma.OpRecv, rdma.StatusOK, rdma.PeerID(r.source), uint64(n)
				if n <= ringInline {
					o.Data = rdma.MemOf(cell.data[:n])
					r.pos++
					r.locate()
				} else if n <= maxSend {
					o.Data = rdma.MemOf(r.pop())
				} else {
					return d.pollAll(out) // which rejects it
				}
				r.sent, r.streak = d.traffic.sent, 0
				d.traffic.received++
				return 1
			} else if tag>>24&0xff != uint64(kindData) {
				return d.pollAll(out) // pieces of a copy: the other direction gets a share too
			}
			k := d.pollRing(r, out)
			r.saw(k, d.traffic.sent)
			d.traffic.received += uint64(k)
			return k
		}
		if r.pause == 0 && r.sent != d.traffic.sent {
			r.pause = 1 // an answer is awaited, and was just checked for
		}
	}
	return d.pollAll(out)
}

// maxSkipped is the number of polls that may check only the rings.
const maxSkipped = 8

func (d *Device) pollAll(out []rdma.Completion) int {
	if d.inbox.queue.freed != d.inbox.queue.pos {
		d.inbox.queue.release()
	}
	n := 0
	if !d.done.empty() {
		n = d.done.drain(out)
	}
	if d.recv.low {
		n += d.pollLowWater(out[n:])
	}
	if d.inbox.closing != nil {
		d.inbox.dropClosed(d.seg)
	}
	for range d.inbox.rings {
		// The next poll begins with the next ring, so that no sender starves when out is
		// too short for all.
		if d.inbox.next++; d.inbox.next >= len(d.inbox.rings) {
			d.inbox.next = 0
		}
		r := d.inbox.rings[d.inbox.next]
		r.release()
		if r.due() {
			moved := d.traffic.moved
			k := d.pollRing(r, out[n:])
			r.saw(k+int(d.traffic.moved-moved), d.traffic.sent)
			n += k
		}
	}
	// Busy senders have a ring: as long as rings have messages, the shared queue is
	// checked only now and then.
	if d.inbox.skipped++; n == 0 || d.inbox.skipped >= maxSkipped {
		d.inbox.skipped = 0
		if d.inbox.queue.ready() {
			n += d.pollShared(out[n:])
		}
	}
	if d.copies.busy() {
		d.copies.progress(d)
		n += d.done.drain(out[n:])
	}
	d.traffic.received += uint64(n)
	return n
}

// pollPieces is the number of messages for the device itself that one poll takes from one
// ring. A ring that a peer fills as fast as it is emptied must not hold up the caller.
const pollPieces = pieceBudget / messagePiece

func (d *Device) pollRing(r *ringReader, out []rdma.Completion) int {
	n, pieces := 0, 0
	for n < len(out) && r.ready() {
		tag := r.cell.tag.Load()
		switch k := kind(tag >> 24); {
		case k >= kindCount || tag&ringLength > maxSend:
			r.stop()
			d.rejectPeer(&out[n], r.source)
			return n + 1
		case k == kindData:
			if !d.recv.open() {
				return n
			}
			if n&(lookCells-1) == 0 && tag&ringLength <= ringInline {
				r.lookAhead()
			}
			d.recv.deliver(&out[n], r.source, r.pop())
			n++
		case k == kindRingClose:
			if d.inbox.closing == nil { // else at a later poll, after the other one
				r.pop()
				d.inbox.closing = r
			}
			return n
		case pieces == pollPieces:
			return n
		default:
			if !d.answer(k, r.source, r.take()) {
				r.stop()
				d.rejectPeer(&out[n], r.source)
				return n + 1
			}
			pieces++
			if n == 0 { // nothing is lent: the sender can have the room at once
				r.release()
			}
		}
	}
	return n
}

func (d *Device) pollShared(out []rdma.Completion) int {
	n := 0
	for n < len(out) && d.inbox.queue.ready() {
		source, k, data, ok := d.inbox.queue.message()
		switch {
		case !ok:
		case k == kindData && !d.recv.open():
			return n
		case k == kindData:
			d.recv.deliver(&out[n], source, data)
			n++
		case k == kindRingOpen:
			ok = d.openRingOf(source, data)
		default:
			ok = d.answer(k, source, data)
		}
		if !ok {
			d.rejectPeer(&out[n], source)
			n++
		}
		d.inbox.queue.advance()
	}
	return n
}

// openRingOf begins to read the ring that a sender has claimed. It returns false if the
// sender cannot have claimed it.
func (d *Device) openRingOf(source int, data []byte) bool {
	if len(data) != 1 || uint32(data[0]) >= d.seg.geo.rings {
		return false
	}
	i := int(data[0])
	if slices.ContainsFunc(d.inbox.rings, func(r *ringReader) bool { return r.number == i }) {
		return false
	}
	d.inbox.rings = append(d.inbox.rings, openRingReader(d, i, source))
	return true
}

// rejectPeer ends the traffic with a peer that has written invalid data into this rank's
// segment: a length that is too long, the number of a ring or block that does not exist,
// an answer without a request. Its requests end with StatusFault, and c becomes a failed
// receive, so that a caller that waits for the peer is notified.
func (d *Device) rejectPeer(c *rdma.Completion, source int) {
	if p := d.peer(rdma.PeerID(source)); p != nil && !p.gone {
		p.gone = true
		d.copies.peerGone(d, p, rdma.StatusFault)
	}
	if d.recv.open() {
		d.recv.deliver(c, source, nil)
	} else {
		*c = rdma.Completion{Op: rdma.OpRecv, Peer: rdma.PeerID(source)}
	}
	c.Status = rdma.StatusFault
}

// dropClosed makes the ring of a sender that has closed available to the next one.
func (b *inbox) dropClosed(s *segment) {
	r := b.closing
	r.publishPositions()
	clearBit(&s.head.ringUsed, r.number)
	i := slices.Index(b.rings, r)
	b.rings = slices.Delete(b.rings, i, i+1)
	r.stop() // the C front may have its address
	b.closing, b.next = nil, 0
}

func (d *Device) pollLowWater(out []rdma.Completion) int {
	if len(out) == 0 {
		return 0
	}
	d.recv.low = false
	d.traffic.lowWaters++
	out[0] = rdma.Completion{Op: rdma.OpLowWater, Len: uint64(d.recv.count())}
	return 1
}

// pending reports whether poll would find something.
func (d *Device) pending() bool {
	d.mu.Lock()
	local := d.inbox.closing != nil || !d.done.empty() || d.recv.low || d.copies.ready(d)
	d.mu.Unlock()
	return local || d.arrived()
}

// arrived reports whether a message has arrived and can be received.
func (d *Device) arrived() bool { return d.inbox.deliverable(d.recv.open()) }

// deliverable reports whether a message can be received. open reports whether those for the
// user can.
func (b *inbox) deliverable(open bool) bool {
	for _, r := range b.rings {
		if r.ready() && (open || r.kind() != kindData) {
			return true
		}
	}
	if !b.queue.ready() {
		return false
	}
	_, k, _, ok := b.queue.message()
	return open || !ok || k != kindData
}
