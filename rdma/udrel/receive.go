package udrel

import (
	"github.com/muster-mpi/muster/rdma"
)

// The receive path: takeIn polls the device below, arrive parses a packet, receive
// processes it, deliver adds it to its message and completes the message, and
// deliverReordered delivers packets from the reorder buffer.

// reorderBuffer holds packets of a peer that arrived early or found no user buffer: the
// IDs of their buffers, plus one.
type reorderBuffer [window]parked

type parked struct {
	id     uint32
	length uint32
}

// joining is a message of several packets that is being reassembled.
type joining struct {
	recv    rdma.RecvWR
	got     int
	tooLong bool
}

// takeIn processes the completions that the device below has for a queue.
func (c *queue) takeIn() (came bool) {
	d := c.dev
	for range 4 {
		n := c.below.Poll(d.comps[:])
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
	q, id := d.pairs[number], c.ID&(1<<pairShift-1)
	q.pool.Took()
	kept := false
	var h header
	if c.Status == rdma.StatusOK && h.parse(c.Data.Bytes()) {
		d.traffic.received++
		kept = q.receive(q.peer(c.Peer), &h, uint32(id))
	} else {
		d.traffic.malformed++
	}
	if !kept {
		q.pool.Return(id)
	}
}

// receive processes a packet of a peer.
func (q *pair) receive(p *peer, h *header, id uint32) (kept bool) {
	d := q.dev
	if p.gone {
		return false
	}
	p.lastReceived = d.now
	q.markBusy(p)
	if h.flags&flagHeld != 0 {
		p.measure(stampOf(d.now).since(h.held))
	}
	var seen *receiveHistory
	if !h.kind.numbered() {
		seen = &h.history
	}
	q.ended(p.acknowledge(d.now, h.want, seen, &d.windowPool), rdma.StatusOK)
	switch {
	case h.kind == kindClose:
		q.abandon(p, rdma.StatusPeerGone)
		return false
	case h.kind == kindAck:
		if h.flags&flagUrgent != 0 {
			p.queueAck(d.now, h, true)
		}
		return false
	}
	switch p.classify(h.number) {
	case duplicate:
		d.traffic.duplicate++
		p.queueAck(d.now, h, true)
		return false
	case beyond:
		return false
	case inOrder:
		if taken, kept := q.deliver(p, h, id); taken {
			p.receiver.deliver()
			p.queueAck(d.now, h, false)
			q.deliverReordered(p)
			if p.barred {
				q.abandon(p, rdma.StatusPeerGone)
			}
			return kept
		}
		p.queueAck(d.now, h, false)
	case early:
		p.queueAck(d.now, h, true) // so that the missing packet is retransmitted soon
	}
	return q.hold(p, h, id)
}

// hold keeps a packet for later, if enough buffers are left for others.
func (q *pair) hold(p *peer, h *header, id uint32) bool {
	if q.held >= q.dev.cfg.Most/4 {
		q.dev.traffic.noRoom++
		return false
	}
	if p.reorderBuffer == nil {
		p.reorderBuffer = q.dev.takeReorderBuffer()
	}
	p.reorderBuffer[h.number%window] = parked{id + 1, uint32(headerLen + len(h.contents) + h.extra())}
	p.receiver.hold(h.number)
	q.held++
	return true
}

// extra returns the length of what is between the header and the contents.
func (h *header) extra() int {
	if h.kind == kindWrite || h.kind == kindRead {
		return targetLen
	}
	return 0
}

// deliverReordered delivers packets from the reorder buffer that have become
// deliverable.
func (q *pair) deliverReordered(p *peer) {
	if p.reorderBuffer == nil {
		return
	}
	for p.holds() && !p.barred {
		p.ackDelivered(q.dev.now)
		at := &p.reorderBuffer[p.want%window]
		id := at.id - 1
		var h header
		h.parse(q.pool.Buffer(uint64(id))[:at.length])
		taken, kept := q.deliver(p, &h, id)
		if !taken {
			return
		}
		*at = parked{}
		q.held--
		p.receiver.deliver()
		if !kept {
			q.pool.Return(uint64(id))
		}
	}
	if p.seen == (receiveHistory{}) {
		q.dev.reorderBuffers = append(q.dev.reorderBuffers, p.reorderBuffer)
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
		recv, ok := q.recv.take(q.recvCQ)
		if !ok {
			return false, false
		}
		p.join = q.dev.takeJoining(recv)
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
	if q.recv.lends {
		if !q.recv.mayLend() {
			return false, false
		}
		q.recv.lent++
		c.Data = rdma.MemOf(h.contents)
		q.recvCQ.push(c, loan{pair: q, id: id, from: q.recv})
		return true, true
	}
	recv, ok := q.recv.take(q.recvCQ)
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
	if q.recv.lends {
		l = loan{join: j.recv.Body.Bytes(), from: q.recv}
	}
	q.recvCQ.push(c, l)
	q.dev.joinings = append(q.dev.joinings, j)
}

func (d *Device) takeJoining(recv rdma.RecvWR) *joining {
	n := len(d.joinings)
	if n == 0 {
		return &joining{recv: recv}
	}
	j := d.joinings[n-1]
	d.joinings = d.joinings[:n-1]
	*j = joining{recv: recv}
	return j
}

// clear returns what a closing queue pair holds for a peer. Its buffers are freed with
// the pool.
func (q *pair) clear(p *peer) {
	if p.reorderBuffer != nil {
		*p.reorderBuffer = reorderBuffer{}
		q.dev.reorderBuffers = append(q.dev.reorderBuffers, p.reorderBuffer)
		p.reorderBuffer = nil
	}
	if j := p.join; j != nil && q.recv.lends {
		q.dev.giveBack(&loan{join: j.recv.Body.Bytes(), from: q.recv})
	}
	p.join = nil
}

func (d *Device) takeReorderBuffer() *reorderBuffer {
	if n := len(d.reorderBuffers); n > 0 {
		s := d.reorderBuffers[n-1]
		d.reorderBuffers = d.reorderBuffers[:n-1]
		return s
	}
	return new(reorderBuffer)
}
