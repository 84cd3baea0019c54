package udrel

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// The receive path: takeIn polls the device below, arrive parses a packet, receive
// passes it to package reliable, deliver adds it to its message and completes the
// message, and deliverReordered delivers packets from the reorder buffer.

// reorderBuffer holds packets of a peer that arrived early or found no user buffer: the
// IDs of their buffers, plus one.
type reorderBuffer [reliable.Window]parked

type parked struct {
	id     uint32
	length uint32
}

// joining is a message of several packets that is being reassembled.
type joining struct {
	recv    rdma.RecvWR
	lent    *joinBuffer // the memory of recv, if the receive queue lends
	got     int
	tooLong bool
}

// joinBuffer is memory in which a message is reassembled.
type joinBuffer [maxSend]byte

// takeIn processes the completions of the device below. It takes at most a few batches,
// so that a flood does not keep the caller from its own work.
func (d *Device) takeIn() (came bool) {
	for range 4 {
		n := d.cq.Poll(d.comps[:])
		if n > 0 {
			d.tick()
		}
		for i := range d.comps[:n] {
			done := &d.comps[i]
			switch {
			case done.Op == rdma.OpLowWater:
				d.ranLow()
			case done.Op == rdma.OpRecv:
				d.arrive(done)
			case done.ID&sendSign != 0 && done.Op == rdma.OpSend:
				d.sent(done)
			}
			*done = rdma.Completion{}
		}
		if came = came || n > 0; n < len(d.comps) {
			break
		}
	}
	return came
}

// ranLow lets the pools of all queue pairs grow. The completion does not name the queue
// pair.
func (d *Device) ranLow() {
	for _, q := range d.pairs {
		if q != nil {
			q.pool.RanLow(d.now)
		}
	}
}

// arrive processes a packet. Its buffer is returned unless it is kept.
func (d *Device) arrive(c *rdma.Completion) {
	number := int(c.ID >> pairShift)
	if number >= len(d.pairs) || d.pairs[number] == nil {
		return // closed meanwhile
	}
	q, id, data := d.pairs[number], uint32(c.ID), c.Data.Bytes()
	q.pool.Took()
	h := &d.header
	if c.Status != rdma.StatusOK || !h.parse(data) {
		d.traffic.malformed++
	} else if q.receive(q.peer(c.Peer), h, parked{id + 1, uint32(len(data))}) {
		return
	}
	q.pool.Return(uint64(id))
}

// receive processes a packet of a peer. It returns true if the buffer is kept.
func (q *pair) receive(p *peer, h *header, at parked) (kept bool) {
	now := q.dev.now
	if p.gone || p.barred {
		return false
	}
	p.lastReceived = now
	q.markBusy(p)
	if h.flags&flagAck != 0 {
		q.ended(p.Acknowledge(now, &h.ack), rdma.StatusOK)
	}
	if h.kind == kindClose {
		q.abandon(p, rdma.StatusPeerGone)
	}
	if !h.kind.numbered() {
		return false
	}
	switch p.Classify(h.sequence) {
	case reliable.Beyond:
		p.Refuse(now, 0)
		return false
	case reliable.Duplicate: // its ack was lost, or came late
		q.dev.traffic.duplicate++
		p.Received(now, 0, h.number, 1, reliable.AckNow)
		return false
	case reliable.InOrder:
		if taken, kept := q.deliver(p, h, at.id-1); taken {
			p.Accept(h.sequence)
			p.Received(now, 0, h.number, 1, h.ackMode())
			p.MarkDelivered()
			q.deliverReordered(p)
			return kept
		}
	}
	if q.held >= q.dev.cfg.Most/4 { // the others need buffers too
		q.dev.traffic.noRoom++
		p.Refuse(now, 0)
		return false
	}
	if p.reorderBuffer == nil {
		p.reorderBuffer = q.dev.reorderBuffers.take()
	}
	p.reorderBuffer[h.sequence%reliable.Window] = at
	q.held++
	p.Accept(h.sequence)
	p.Received(now, 0, h.number, 1, h.ackMode())
	return true
}

// deliverReordered delivers packets from the reorder buffer that have become
// deliverable.
func (q *pair) deliverReordered(p *peer) {
	if p.reorderBuffer == nil {
		return
	}
	for p.Waiting() && !p.barred {
		at := &p.reorderBuffer[p.NextUp()%reliable.Window]
		h, id := &q.dev.header, at.id-1
		h.parse(q.pool.Buffer(uint64(id))[:at.length])
		taken, kept := q.deliver(p, h, id)
		if !taken {
			return
		}
		*at = parked{}
		q.held--
		p.MarkDelivered()
		if !kept {
			q.pool.Return(uint64(id))
		}
	}
	if p.Complete() && !p.barred {
		q.dev.reorderBuffers.put(p.reorderBuffer)
		p.reorderBuffer = nil
	}
}

// deliver processes the next packet in order. taken is false if there is no buffer for
// the message. kept is true if the completion refers to the packet's own buffer.
func (q *pair) deliver(p *peer, h *header, id uint32) (taken, kept bool) {
	switch h.kind {
	case kindWrite:
		q.receiveWrite(p, h)
		return true, false
	case kindRead:
		q.receiveRead(p, h)
		return true, false
	case kindResponse:
		q.receiveResponse(p, h)
		return true, false
	}
	last := h.flags&flagLast != 0
	if p.join == nil && last {
		return q.deliverWhole(p, h, id)
	}
	if p.join == nil {
		j, ok := q.recv.take(q.recvCQ)
		if !ok {
			return false, false
		}
		p.join = q.dev.joinings.take()
		*p.join = j
	}
	j := p.join
	if room := j.recv.Body.Bytes(); len(h.contents) > len(room)-j.got {
		j.tooLong = true
	} else if !j.tooLong {
		copy(room[j.got:], h.contents)
	}
	if j.got += len(h.contents); last {
		q.deliverJoined(p)
	}
	return true, false
}

// deliverWhole completes a message of one packet. A lending queue shows it in its
// buffer, without a copy.
func (q *pair) deliverWhole(p *peer, h *header, id uint32) (taken, kept bool) {
	c := rdma.Completion{Op: rdma.OpRecv, Peer: p.id, Len: uint64(len(h.contents))}
	if q.recv.Lends {
		if !q.recv.MayLend() {
			return false, false
		}
		q.recv.Lent++
		c.Data = rdma.MemOf(h.contents)
		q.recvCQ.push(c, loan{pair: q, id: id, from: q.recv})
		return true, true
	}
	recv, ok := q.recvCQ.Receive(&q.recv.SRQ)
	if !ok {
		return false, false
	}
	c.ID = recv.ID
	if len(h.contents) > recv.Body.Len() {
		c.Status = rdma.StatusTooLong
	} else {
		copy(recv.Body.Bytes(), h.contents)
		c.Data = recv.Body.Slice(0, len(h.contents))
	}
	q.recvCQ.push(c, loan{})
	return true, false
}

// deliverJoined completes a message of several packets.
func (q *pair) deliverJoined(p *peer) {
	j := p.join
	p.join = nil
	c := rdma.Completion{ID: j.recv.ID, Op: rdma.OpRecv, Peer: p.id, Len: uint64(j.got)}
	if j.tooLong {
		c.Status = rdma.StatusTooLong
	} else {
		c.Data = j.recv.Body.Slice(0, j.got)
	}
	var l loan
	if j.lent != nil {
		l = loan{join: j.lent, from: q.recv}
	}
	q.recvCQ.push(c, l)
	q.dev.joinings.put(j)
}

// freeList keeps memory of a peer that is idle for the next busy one.
type freeList[T any] struct{ list []*T }

func (f *freeList[T]) take() *T {
	n := len(f.list)
	if n == 0 {
		return new(T)
	}
	t := f.list[n-1]
	f.list = f.list[:n-1]
	return t
}

func (f *freeList[T]) put(t *T) { f.list = append(f.list, t) }
