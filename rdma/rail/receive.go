package rail

import "github.com/muster-mpi/muster/rdma"

// The receive path: takeIn sorts the completions of a rail, sentOver processes the
// completion of a send, arrived processes a piece of a peer, and advance delivers the
// pieces that are next in order.

func (q *pair) takeIn(rail int, list []rdma.Completion) {
	for i := range list {
		switch c := &list[i]; c.Op {
		case rdma.OpRecv:
			q.arrived(rail, c)
		case rdma.OpSend:
			q.sentOver(rail, c)
		}
	}
}

// sentOver processes the completion of a send on a rail. An arrival is also evidence
// about the other paths.
func (q *pair) sentOver(rail int, c *rdma.Completion) {
	if c.ID>>32 >= uint64(len(q.flows)) {
		return
	}
	f := q.flows[c.ID>>32]
	p := &f.paths[rail]
	t, ok := p.close(uint32(c.ID))
	if !ok {
		return
	}
	p.helloInFlight, p.ackInFlight = p.helloInFlight && t.kind != kindHello, p.ackInFlight && t.kind != kindAck
	if c.Status != rdma.StatusOK {
		if t.epoch == f.epoch {
			f.lose(rail, gone)
		}
		return
	}
	now := q.dev.now
	f.lastReceived = now
	if lost := p.state >= left; p.delivered(now, &t) && lost {
		q.rails[rail].Back++
	}
	for i := range f.paths {
		if i != rail {
			f.paths[i].compare(now, t.at)
			f.lookAt = min(f.lookAt, f.paths[i].doubtEnds())
		}
	}
	if t.kind == kindHello || t.kind == kindAck || !f.out.has(t.number) {
		return
	}
	// A piece that was sent again is settled by the rail that has it last: until then
	// that rail may read the user's memory.
	if e := f.out.at(t.number); !e.again && int(e.rail) == rail && e.ticket == uint32(c.ID) {
		f.settle(t.number)
	}
}

// arrived processes a piece. It drops one that has arrived before, over this rail or
// another.
func (q *pair) arrived(rail int, c *rdma.Completion) {
	d := q.dev
	var h header
	rest, ok := h.parse(c.Data.Bytes())
	if !ok || c.Status != rdma.StatusOK {
		d.drops.Malformed++
		return
	}
	if h.kind == kindHello {
		q.receiveHello(rail, c.Peer, &h)
		return
	}
	r := &q.rails[rail]
	if int(c.Peer) >= len(r.known) || r.known[c.Peer] == nil {
		d.drops.Malformed++ // a hello must come first
		return
	}
	f := r.known[c.Peer]
	if f.barred {
		d.drops.Barred++
		return
	}
	f.lastReceived = d.now
	if h.epoch != f.peerEpoch {
		d.drops.Outdated++
		return
	}
	f.out.acknowledged(h.ack)
	for number, ok := f.out.taken(); ok; number, ok = f.out.taken() {
		f.settleTaken(number)
	}
	if h.again {
		f.in.want(h.number)
		f.markBusy()
	}
	if h.kind == kindAck {
		return
	}
	if !f.in.fresh(h.number) {
		d.drops.Doubles++
		return
	}
	a := arrival{kind: h.kind, last: h.last, request: h.request}
	switch h.kind {
	case kindMessage:
		a.message = rdma.MemOf(rest)
		f.preferred = rail
	case kindData:
		mem, ok := q.reach(f, &h, h.offset, len(rest), rdma.RemoteWrite)
		copy(mem, rest)
		a.refused = !ok
	case kindRequest:
		q.serve(f, &h)
	case kindResult:
		q.result(f, &h, rest)
	case kindAnswer:
		if op := f.findRequest(h.request); op != nil {
			f.completeRequest(op, h.status)
		}
	}
	if f.barred {
		f.fail(rdma.StatusPeerGone)
		return
	}
	if h.number == f.in.next && q.hand(f, &a) {
		f.in.taken(nil)
		f.advance()
		if f.in.ackDue() {
			f.markBusy()
		}
		return
	}
	if f.in.reorderBuffer == nil {
		f.in.reorderBuffer = d.takeReorderBuffer()
	}
	if e := f.in.keep(h.number, a); a.kind == kindMessage {
		q.borrowed = append(q.borrowed, e)
	}
	f.markBusy()
}

// receiveHello processes a hello: the identity and the epoch of the peer on this path.
func (q *pair) receiveHello(rail int, from rdma.PeerID, h *header) {
	d, r := q.dev, &q.rails[rail]
	id := d.peerID(h.incarnation, h.name)
	f := q.flow(id)
	for int(from) >= len(r.known) {
		r.known = append(r.known, nil)
	}
	r.known[from] = f
	f.lastReceived = d.now
	if p := &f.paths[rail]; !p.reached || p.state == gone {
		d.peers[id].inner[rail], d.peers[id].reached[rail] = from, true
		p.reached, p.state = true, untried
	}
	if f.met && int8(h.epoch-f.peerEpoch) <= 0 {
		return
	}
	// The peer starts, or starts anew: what is missing will not arrive any more.
	for i := 0; f.in.held > 0 && i < window; i++ {
		if e := &f.in.reorderBuffer[i]; e.present {
			d.giveBack(e.buffer)
			*e = arrival{}
			f.in.held--
		}
	}
	f.met, f.peerEpoch, f.in.next, f.in.lastAcked, f.refused = true, h.epoch, h.number, h.number, false
}

// serve queues the response to a Read.
func (q *pair) serve(f *flow, h *header) {
	_, ok := q.reach(f, h, 0, 0, rdma.RemoteRead)
	if !ok {
		q.answer(f, h.request, rdma.StatusRemoteAccess)
		return
	}
	op := q.dev.newOperation(kindResult)
	q.pendingReplies++
	op.request, op.key, op.address, op.left = h.request, h.key, h.address, int(h.total)
	f.push(op)
}

// reach returns the memory of an access. After too many refused accesses of a peer,
// arrived accepts nothing more from it.
func (q *pair) reach(f *flow, h *header, offset uint64, n int, need rdma.Access) ([]byte, bool) {
	d := q.dev
	resolved := d.peers[f.peer].resolved
	if d.soft.Guard.Bars(f.strikes, resolved) {
		return nil, false
	}
	mem, ok := d.reachMemory(h.key, h.address, h.total, offset, n, need)
	if !ok && d.soft.Guard.Strike(&f.strikes, resolved, h.key) {
		f.barred = true
		q.recvCQ.Push(rdma.Completion{Op: rdma.OpDisconnected, Peer: f.peer, Status: rdma.StatusRemoteAccess})
	}
	return mem, ok
}

// answer queues the result of a Write or Read of the peer.
func (q *pair) answer(f *flow, request uint32, status rdma.Status) {
	op := q.dev.newOperation(kindAnswer)
	q.pendingReplies++
	op.request, op.status = request, status
	f.push(op)
}

// result processes a piece of a Read response.
func (q *pair) result(f *flow, h *header, data []byte) {
	op := f.findRequest(h.request)
	if op == nil || op.kind != kindRequest {
		return // it was refused in between
	}
	size := uint64(op.body.Len())
	if h.offset > size || uint64(len(data)) > size-h.offset || len(data) > op.left {
		q.dev.drops.Malformed++
		f.completeRequest(op, rdma.StatusFault)
		return
	}
	copy(op.body.Bytes()[h.offset:], data)
	if op.left -= len(data); op.left == 0 {
		f.completeRequest(op, rdma.StatusOK)
	}
}

// advance delivers the pieces that are next in order.
func (f *flow) advance() {
	for e := f.in.ready(); e != nil && f.q.hand(f, e); e = f.in.ready() {
		f.in.taken(e)
	}
}

// hand delivers the next piece. It returns false if a message finds no buffer.
func (q *pair) hand(f *flow, a *arrival) bool {
	switch a.kind {
	case kindMessage:
		return q.deliver(f, a)
	case kindData:
		// All pieces before it have arrived, so with the last one its Write is
		// complete.
		f.refused = f.refused || a.refused
		if a.last {
			status := rdma.StatusOK
			if f.refused {
				status = rdma.StatusRemoteAccess
			}
			f.refused = false
			q.answer(f, a.request, status)
		}
	}
	return true
}

// deliver makes a completion of a message.
func (q *pair) deliver(f *flow, a *arrival) bool {
	c := rdma.Completion{Op: rdma.OpRecv, Peer: f.peer, Len: uint64(a.message.Len()), Data: a.message}
	if q.recv.Lends {
		if q.recvCQ.Len() >= lendDepth {
			return false
		}
		if q.copies && a.buffer == nil {
			q.dev.keep(a)
			c.Data = a.message
		}
		q.recvCQ.Lend(c, loan{a.buffer, a.buffer == nil})
		return true
	}
	recv, ok := q.recvCQ.Receive(&q.recv.SRQ)
	if !ok {
		return false
	}
	c.ID = recv.ID
	if a.message.Len() > recv.Body.Len() {
		c.Status, c.Data = rdma.StatusTooLong, rdma.Mem{}
	} else {
		c.Data = rdma.MemOf(recv.Body.Bytes()[:copy(recv.Body.Bytes(), a.message.Bytes())])
	}
	q.dev.giveBack(a.buffer)
	q.recvCQ.Push(c)
	return true
}

// copyBorrowed copies messages that were kept in this Poll and are still in a rail's
// buffer, which the rail takes back with the next Poll.
func (q *pair) copyBorrowed() {
	for _, e := range q.borrowed {
		if e.present && e.buffer == nil {
			q.dev.keep(e)
		}
	}
	clear(q.borrowed)
	q.borrowed = q.borrowed[:0]
}

// keep copies a message into memory of the device.
func (d *Device) keep(a *arrival) {
	a.buffer = d.takeBuffer(a.message.Len())
	a.message = rdma.MemOf(a.buffer[:copy(a.buffer, a.message.Bytes())])
}
