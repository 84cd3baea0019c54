package dgram

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The way in: takeIn divides what the kernel joined, arrive looks at a datagram and finds
// its queue pair, hear takes an RD one in, unstash delivers what waited, deliver brings a
// segment into its message and the message to the user.

// takeIn takes in what came into a slot. It is true if the slot is kept.
func (d *Device) takeIn(s *slot) (kept bool) {
	if s.each == 0 || s.n <= s.each {
		if s.most <= longSlot || s.n > pageSize || len(s.placed) > 0 || d.datagram > pageSize {
			return d.arrive(s)
		}
		s.each = s.n // a slot that runs have filled is not kept for one datagram
	}
	d.divide(s)
	return false
}

// divide takes in datagrams that the kernel joined, in their order, where they are: most are
// pieces of a message and are copied into it. One that is kept gets a slot of its own. All
// are of one length but the last.
func (d *Device) divide(s *slot) {
	d.store.fill(s)
	one := &d.part
	one.from, one.part = s.from, true
	for rest := s.data[:s.n]; len(rest) > 0; rest = rest[one.n:] {
		one.n = min(s.each, len(rest))
		one.data = rest[:one.n:one.n]
		d.arrive(one)
	}
	one.data = nil
}

// arrive takes in a datagram. Nothing is kept of one that does not come from a process
// of the job. It is true if the slot is kept.
func (d *Device) arrive(s *slot) (kept bool) {
	content, err := d.keys.check(s.data[:s.n])
	if err != nil {
		switch err {
		case errStranger:
			d.drops.Strangers++
		case errSecrecy:
			d.drops.Secrecy++
		default:
			d.drops.Corrupt++
		}
		return false
	}
	var h header
	segment, err := h.parse(content)
	if err != nil {
		d.drops.Malformed++
		return false
	}
	if h.toIncarnation != d.keys.incarnation || int(h.to) >= len(d.pairs) || d.pairs[h.to] == nil {
		d.drops.Astray++
		return false
	}
	q := d.pairs[h.to]
	if (q.kind == rdma.UD) != h.kind.unreliable() {
		d.drops.Malformed++
		return false
	}
	s.hi = len(content)
	s.lo = s.hi - len(segment)
	d.traffic.received++
	if !s.part {
		d.store.fill(s)
	}
	id := d.peerID(h.fromIncarnation, h.from, h.name, &s.from)
	if q.kind == rdma.UD {
		return q.receiveUD(s, id, &h)
	}
	d.tick()
	return q.receiveRD(s, q.peer(id), &h)
}

func isSend(op ddp.Opcode) bool { return op == ddp.Send || op == ddp.SendSolicited }

// hear takes in an RD datagram.
func (q *pair) receiveRD(s *slot, p *peer, h *header) (kept bool) {
	now := q.dev.now
	if p.barred {
		q.dev.drops.Barred++
		return false
	}
	if !p.serials.fresh(h.serial) {
		q.dev.drops.Replayed++
		return false
	}
	q.markBusy(p)
	p.lastReceived, p.rejected = now, false
	if h.hasAck {
		q.finish(p.acknowledge(now, &h.ack), p, rdma.StatusOK)
	}
	if h.kind == kindAck {
		if h.urgent { // it asks whether we live
			p.refuse(now, p.receiver.stamp)
		}
		return false
	}
	switch classification := p.classify(h.number); classification {
	case duplicate, beyond:
		if classification == duplicate {
			q.dev.traffic.duplicates++
		}
		p.refuse(now, h.left)
		return false
	case inOrder:
		taken, kept := q.deliver(s, p)
		if taken {
			p.accept(now, h.number, h.left, h.ackMode())
			p.markDelivered()
			q.deliverReordered(p)
			return kept
		}
	}
	if !q.dev.store.ample() {
		q.dev.drops.NoRoom++
		p.refuse(now, h.left)
		return false
	}
	if p.reorderBuffer == nil {
		p.reorderBuffer = q.dev.takeReorderBuffer()
	}
	p.reorderBuffer[h.number%window] = q.dev.store.own(s) // there is one
	p.accept(now, h.number, h.left, h.ackMode())
	return !s.part
}

// unstash delivers what waited and can be delivered now.
func (q *pair) deliverReordered(p *peer) {
	for p.waiting() && !p.barred {
		at := &p.reorderBuffer[p.nextUp%window]
		taken, kept := q.deliver(*at, p)
		if !taken {
			return
		}
		if !kept {
			q.dev.store.giveBack(*at)
		}
		*at = nil
		p.markDelivered()
	}
	if p.reorderBuffer != nil && p.seen == (receiveHistory{}) {
		q.dev.reorderBuffers = append(q.dev.reorderBuffers, p.reorderBuffer)
		p.reorderBuffer = nil
	}
}

// deliver takes the next segment of a peer. It is not taken if there is no buffer for
// the message; the slot is kept if the message is shown in it.
func (q *pair) deliver(s *slot, p *peer) (taken, kept bool) {
	var h ddp.Header
	n, fault := h.Decode(s.data[s.lo:s.hi], s.hi-s.lo+len(s.placed))
	if fault == ddp.NoFault && !isSend(h.Op) {
		payload := s.placed
		if payload == nil {
			payload = s.data[s.lo+n : s.hi]
		}
		return q.deliverAccess(p, &h, payload), false
	}
	got := 0
	if p.join != nil {
		got = p.join.got
	}
	if fault != ddp.NoFault || h.MSN != p.recvNumber || int(h.MO) != got {
		q.dev.drops.Malformed++
		return true, false
	}
	payload := s.data[s.lo+n : s.hi]
	if p.join == nil && h.Last {
		s.lo += n
		if taken, kept, _ = q.deliverWhole(s, p.id); taken {
			p.recvNumber++
		} else {
			s.lo -= n // it will be looked at again
		}
		return taken, kept
	}
	if p.join == nil {
		recv, ok := q.recv.take(q.recvCQ)
		if !ok {
			return false, false
		}
		p.join = q.dev.takeJoining()
		p.join.recv = recv
	}
	j := p.join
	if room := j.recv.Body.Bytes(); len(payload) > len(room)-j.got {
		j.tooLong = true
	} else if !j.tooLong {
		copy(room[j.got:], payload)
	}
	if j.got += len(payload); h.Last {
		q.deliverJoined(p)
	}
	return true, false
}

// deliverWhole gives the user a message that is all in one datagram. A lending queue
// shows it where it is.
func (q *pair) deliverWhole(s *slot, id rdma.PeerID) (taken, kept, tooLong bool) {
	payload := s.data[s.lo:s.hi]
	c := rdma.Completion{Op: rdma.OpRecv, Peer: id, Len: uint64(len(payload))}
	if q.recv.lends {
		if !q.recv.mayLend() {
			return false, false, false
		}
		own := q.dev.store.own(s)
		if own == nil {
			return false, false, false
		}
		c.Data = rdma.MemOf(own.data[own.lo:own.hi])
		q.recv.lent++
		q.recvCQ.push(c, loan{slot: own, from: q.recv})
		return true, own == s, false
	}
	recv, ok := q.recv.take(q.recvCQ)
	if !ok {
		return false, false, false
	}
	c.ID = recv.ID
	if len(payload) > recv.Body.Len() {
		c.Status = rdma.StatusTooLong
	} else {
		copy(recv.Body.Bytes(), payload)
		c.Data = recv.Body.Slice(0, len(payload))
	}
	q.recvCQ.push(c, loan{})
	return true, false, c.Status != rdma.StatusOK
}

// deliverJoined gives the user a message that came in several datagrams.
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
	if q.recv.lends {
		l = loan{join: j.recv.Body.Bytes(), from: q.recv}
	}
	q.recvCQ.push(c, l)
	q.dev.giveBackJoining(j)
}

// clear gives back what a queue pair that closes keeps of a peer.
func (q *pair) clear(p *peer) {
	d := q.dev
	if p.reorderBuffer != nil {
		for _, s := range p.reorderBuffer {
			if s != nil {
				d.store.giveBack(s)
			}
		}
		p.reorderBuffer = nil
	}
	if j := p.join; j != nil {
		if q.recv.lends {
			d.giveBack(&loan{join: j.recv.Body.Bytes(), from: q.recv})
		}
		d.giveBackJoining(j)
		p.join = nil
	}
}
