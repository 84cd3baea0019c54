package soft

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// The receive path: takeIn splits what the kernel coalesced, arrive checks a datagram
// and finds its queue pair, receiveRD processes an RD datagram, deliverReordered
// delivers datagrams from the reorder buffer, and deliver adds a segment to its message
// and completes the message.

// receiveSide is the memory of what the device receives.
type receiveSide struct {
	store  store            // slots for received datagrams
	batch  []*slot          // to be filled next
	part   slot             // one of several coalesced datagrams, while it is processed
	opened header           // of the datagram that is processed
	tokens map[uint32]owner // of peers that may send runs
	// partFrom is the sender of the packets of encrypted runs in part.
	partFrom incarnation
	partials int // slots with incomplete segments

	reorderBuffers freeList[reorderBuffer]
	joinBuffers    freeList[joinBuffer]
	joined         freeList[joining]
	requests       freeList[requests]
}

// fillBatch takes slots for n datagrams and reports whether there is at least one.
func (r *receiveSide) fillBatch(n int) bool {
	for len(r.batch) < n {
		s := r.store.take()
		if s == nil {
			break
		}
		r.batch = append(r.batch, s)
	}
	return len(r.batch) > 0
}

// takeIn processes the contents of a slot. It returns true if the slot is kept.
func (d *Device) takeIn(s *slot) (kept bool) {
	s.run, s.wire = 0, 0
	joined := s.each > 0 && s.n > s.each
	switch {
	case isRun(s.data[:s.n]):
		if !joined {
			s.each = s.n
		}
	case !joined:
		if s.most <= longSlot || s.n > pageSize || d.datagram > pageSize {
			return d.arrive(s)
		}
		s.each = s.n // a slot that coalesced datagrams have filled is not kept for a single one
	}
	d.divide(s)
	return false
}

// divide processes datagrams that the kernel coalesced, in order and without copying:
// most are pieces of a message and are copied into it. A datagram that is kept gets its
// own slot. All have the same length except the last.
func (d *Device) divide(s *slot) {
	d.incoming.store.fill(s)
	one := &d.incoming.part
	one.from, one.part = s.from, true
	for rest := s.data[:s.n]; len(rest) > 0; {
		n := min(s.each, len(rest))
		if one.spoiled = false; isRun(rest) {
			n = d.takeRun(one, rest, s.each)
		} else {
			one.n, one.run, one.wire = n, 0, 0
			one.data = rest[:n:n]
			d.arrive(one)
		}
		rest = rest[n:]
	}
	one.data = nil
}

// arrive processes a datagram. Nothing is kept of a datagram that was not sent by a
// process of the job. It returns true if the slot is kept.
func (d *Device) arrive(s *slot) (kept bool) {
	h, ok := d.open(s)
	if !ok {
		return false
	}
	d.traffic.received += uint64(max(s.run, 1))
	if !s.part {
		d.incoming.store.fill(s)
	}
	q := d.pairs[h.to]
	id := d.peers.id(h.fromIncarnation, h.from, h.name, &s.from)
	if q.kind == rdma.UD {
		return q.receiveUD(s, id, h)
	}
	d.clock.tick()
	return q.receiveRD(s, q.peer(id), h)
}

// open checks the seal of a datagram and parses its header.
func (d *Device) open(s *slot) (h *header, ok bool) {
	var content []byte
	var err error
	if s.run > 0 {
		var from int
		from, s.hi = s.front()
		content, err = d.keys.checkRun(s.data[from:s.hi], s.run)
	} else {
		content, err = d.keys.check(s.data[:s.n])
		s.hi = len(content)
	}
	if err != nil {
		switch err {
		case errStranger:
			if s.wire > 0 { // a CRC in an index may be corrupt: its packets will show
				s.spoiled = true
				return nil, false
			}
			d.drops.Strangers++
		case errSecrecy:
			d.drops.Secrecy++
		default:
			d.drops.Corrupt++
		}
		return nil, false
	}
	h = &d.incoming.opened
	segment, err := h.parse(content)
	if err != nil {
		d.drops.Malformed++
		return nil, false
	}
	if h.toIncarnation != d.keys.incarnation || int(h.to) >= len(d.pairs) || d.pairs[h.to] == nil {
		d.drops.Astray++
		return nil, false
	}
	if (d.pairs[h.to].kind == rdma.UD) != h.kind.unreliable() {
		d.drops.Malformed++
		return nil, false
	}
	s.lo = s.hi - len(segment)
	return h, true
}

func isSend(op ddp.Opcode) bool { return op == ddp.Send || op == ddp.SendSolicited }

// receiveRD processes an RD datagram. If s is a run with a corrupt packet, it is marked as
// spoiled and nothing of it is accepted.
func (q *pair) receiveRD(s *slot, p *peer, h *header) (kept bool) {
	now := q.dev.clock.now
	if p.barred {
		q.dev.drops.Barred++
		return false
	}
	if !p.serials.fresh(h.serial) {
		q.dev.drops.Replayed++
		return false
	}
	q.markBusy(p)
	if !p.tokenKnown {
		q.learnToken(p)
	}
	p.lastReceived, p.rejected = now, false
	q.recordPath(p, &s.from, h.path)
	if h.hasAck {
		q.finish(p.Acknowledge(now, &h.ack), p, rdma.StatusOK)
	}
	if h.kind == kindClose {
		p.gone = true
		q.abandon(p, rdma.StatusPeerGone)
	}
	if h.kind.alone() {
		if h.urgent { // a probe: the peer requests an ack
			p.Refuse(now, int(h.path))
		}
		return false
	}
	if p.partials > 0 {
		q.dropPartial(p, h.sequence)
	}
	return q.accept(s, p, h)
}

// accept delivers a segment that has arrived, or keeps it for later.
func (q *pair) accept(s *slot, p *peer, h *header) (kept bool) {
	now, on, packets := q.dev.clock.now, int(h.path), max(s.run, 1)
	switch p.Classify(h.sequence) {
	case reliable.Beyond:
		p.Refuse(now, on)
		return false
	case reliable.Duplicate: // its ack was lost, or came late
		q.dev.traffic.duplicates++
		p.RecordPackets(now, on, h.number, packets, reliable.AckNow)
		return false
	case reliable.InOrder:
		taken, kept := q.deliver(s, p)
		if taken {
			p.Accept(h.sequence)
			p.RecordPackets(now, on, h.number, packets, h.ackMode())
			p.MarkDelivered()
			q.deliverReordered(p)
			return kept
		}
	}
	var own *slot
	if !s.spoiled && q.dev.incoming.store.ample() {
		own = q.dev.own(s)
	}
	switch {
	case s.spoiled:
		return false
	case own == nil:
		q.dev.drops.NoRoom++
		p.Refuse(now, on)
		return false
	}
	if p.reorderBuffer == nil {
		p.reorderBuffer = q.dev.incoming.reorderBuffers.take()
	}
	p.reorderBuffer[h.sequence%reliable.Window] = own
	p.Accept(h.sequence)
	p.RecordPackets(now, on, h.number, packets, h.ackMode())
	return !s.part
}

// deliverReordered delivers datagrams from the reorder buffer that have become
// deliverable.
func (q *pair) deliverReordered(p *peer) {
	for p.Waiting() && !p.barred {
		at := &p.reorderBuffer[p.NextUp()%reliable.Window]
		taken, kept := q.deliver(*at, p)
		if !taken {
			return
		}
		if !kept {
			q.dev.incoming.store.giveBack(*at)
		}
		*at = nil
		p.MarkDelivered()
	}
	if p.reorderBuffer != nil && !p.Waiting() && p.Complete() && p.partials == 0 {
		q.dev.incoming.reorderBuffers.giveBack(p.reorderBuffer)
		p.reorderBuffer = nil
	}
}

// deliver processes the next segment of a peer. taken is false if there is no buffer
// for the message. kept is true if the completion refers to the slot.
func (q *pair) deliver(s *slot, p *peer) (taken, kept bool) {
	var h ddp.Header
	n, fault := h.Decode(s.data[s.lo:s.hi], s.length())
	if fault == ddp.NoFault && !isSend(h.Op) {
		return q.deliverAccess(p, &h, s, n), false
	}
	got := 0
	if p.join != nil {
		got = p.join.got
	}
	if fault != ddp.NoFault || h.MSN != p.recvNumber || int(h.MO) != got {
		q.dev.drops.Malformed++
		return true, false
	}
	if p.join == nil && h.Last && (q.recv.Lends || s.wire == 0) {
		s.lo += n
		if taken, kept, _ = q.deliverWhole(s, p.id); taken {
			p.recvNumber++
		} else {
			s.lo -= n // it will be parsed again
		}
		return taken, kept
	}
	if p.join == nil {
		recv, ok := q.recv.take(q.recvCQ)
		if !ok {
			return false, false
		}
		p.join = q.dev.incoming.joined.take()
		*p.join = joining{recv: recv}
	}
	j, length := p.join, s.length()-n
	if room := j.recv.Body.Bytes(); length > len(room)-j.got {
		j.tooLong = true
	} else if !j.tooLong && !q.dev.put(room[j.got:], s, n) {
		return false, false
	}
	if j.got += length; h.Last {
		q.deliverJoined(p)
	}
	return true, false
}

// deliverWhole completes a message that fits into one datagram. A lending queue shows
// it in its slot, without a copy.
func (q *pair) deliverWhole(s *slot, id rdma.PeerID) (taken, kept, tooLong bool) {
	c := rdma.Completion{Op: rdma.OpRecv, Peer: id, Len: uint64(s.length())}
	if q.recv.Lends {
		if !q.recv.MayLend() {
			return false, false, false
		}
		own := q.dev.own(s)
		if own == nil {
			return false, false, false
		}
		c.Data = rdma.MemOf(own.data[own.lo:own.hi])
		q.recv.Lent++
		q.recvCQ.push(c, loan{slot: own, from: q.recv})
		return true, own == s, false
	}
	recv, ok := q.recv.take(q.recvCQ)
	if !ok {
		return false, false, false
	}
	c.ID = recv.ID
	if payload := s.data[s.lo:s.hi]; len(payload) > recv.Body.Len() {
		c.Status = rdma.StatusTooLong
	} else {
		copy(recv.Body.Bytes(), payload)
		c.Data = recv.Body.Slice(0, len(payload))
	}
	q.recvCQ.push(c, loan{})
	return true, false, c.Status != rdma.StatusOK
}

// deliverJoined completes a message of several datagrams.
func (q *pair) deliverJoined(p *peer) {
	j := p.join
	p.join = nil
	p.recvNumber++
	c := rdma.Completion{ID: j.recv.ID, Op: rdma.OpRecv, Peer: p.id, Len: uint64(j.got)}
	if j.tooLong {
		c.Status = rdma.StatusTooLong
	} else {
		c.Data = j.recv.Body.Slice(0, j.got)
	}
	var l loan
	if q.recv.Lends {
		l = loan{join: j.recv.Body.Bytes(), from: q.recv}
	}
	q.recvCQ.push(c, l)
	q.dev.incoming.joined.giveBack(j)
}

// clear returns the memory that a closing queue pair holds for a peer.
func (q *pair) clear(p *peer) {
	d := q.dev
	q.dropPartials(p)
	if p.reorderBuffer != nil {
		for _, s := range p.reorderBuffer {
			if s != nil {
				d.incoming.store.giveBack(s)
			}
		}
		p.reorderBuffer = nil
	}
	if j := p.join; j != nil {
		if q.recv.Lends {
			d.giveBack(loan{join: j.recv.Body.Bytes(), from: q.recv})
		}
		d.incoming.joined.giveBack(j)
		p.join = nil
	}
}
