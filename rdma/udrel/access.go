package udrel

import (
	"github.com/muster-mpi/muster/rdma"
)

// Write and Read. The origin sends its request in its stream of packets. The target
// executes it when the packet is delivered, and responds in its own stream. Both
// streams are ordered, so a response belongs to the oldest access without one. An
// access that is not allowed changes nothing: every packet of a Write names the whole
// rest of the Write and is checked for all of it.

// setAccess turns a message into a Read or Write.
func (m *message) setAccess(wr *rdma.SendWR) {
	m.awaitsResponse = true
	m.target = target{address: wr.Remote, key: wr.RKey, length: uint32(wr.Body.Len())}
	m.kind = kindRead
	if wr.Op == rdma.OpWrite {
		m.kind = kindWrite
		m.room -= targetLen
	}
	p := m.peer
	if p.accesses == nil {
		p.accesses = m
	} else {
		p.lastAccess.nextAccess = m
	}
	p.lastAccess = m
}

// targetAt returns the rest of an access from a byte on.
func (m *message) targetAt(at int) target {
	p := m.target
	if m.kind == kindWrite {
		p.address += uint64(at)
		p.length -= uint32(at)
	}
	return p
}

// receiveWrite processes a packet of a Write.
func (q *pair) receiveWrite(p *peer, h *header) {
	_, mem, ok := q.reach(p, h.target, rdma.RemoteWrite)
	if ok && !p.refuses {
		copy(mem, h.contents)
	} else {
		p.refuses = true
	}
	if h.flags&flagLast != 0 {
		q.respond(p, nil, nil, p.refuses)
		p.refuses = false
	}
}

// receiveRead processes a Read request.
func (q *pair) receiveRead(p *peer, h *header) {
	r, mem, ok := q.reach(p, h.target, rdma.RemoteRead)
	q.respond(p, r, mem, !ok)
}

// reach returns the memory of an access. After too many refused accesses of a peer,
// receive accepts nothing more from it.
func (q *pair) reach(p *peer, at target, right rdma.Access) (*region, []byte, bool) {
	d := q.dev
	resolved := int(p.id) < len(d.resolved) && d.resolved[p.id]
	if d.guard.Bars(p.strikes, resolved) {
		return nil, nil, false
	}
	r, mem, ok := d.regions.reach(at, right)
	if !ok && d.guard.Strike(&p.strikes, resolved, at.key) {
		p.barred = true
		q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: rdma.StatusRemoteAccess}, loan{})
	}
	return r, mem, ok
}

// respond queues the response to an access.
func (q *pair) respond(p *peer, r *region, mem []byte, refused bool) {
	m := q.dev.messagePool.take(0)
	m.peer, m.pair, m.kind, m.sending = p, q, kindResponse, true
	m.room = q.dev.cfg.Packet - headerLen
	if m.refused = refused; !refused {
		m.body, m.region = rdma.MemOf(mem), r
	}
	if m.region != nil {
		m.region.shown++
	}
	q.enqueue(p, m)
}

// refuseResponses ends the reading of a region. Retransmitted packets report the
// refusal, and the part that is not segmented yet becomes one packet that does.
func (q *pair) refuseResponses(r *region) {
	for _, m := range q.dev.messagePool.all {
		if m.region != r || m.pair != q || !m.sending {
			continue
		}
		m.refused = true
		if !m.whole {
			m.body = m.body.Slice(0, min(m.cut+1, m.body.Len()))
		}
	}
}

// receiveResponse processes a packet of a response.
func (q *pair) receiveResponse(p *peer, h *header) {
	m := p.accesses
	if m == nil {
		q.dev.traffic.malformed++
		return
	}
	switch {
	case h.flags&flagRefused != 0:
		m.status = rdma.StatusRemoteAccess
	case m.kind == kindRead && m.status == rdma.StatusOK:
		if m.got+len(h.contents) > m.body.Len() {
			m.status = rdma.StatusFault
			break
		}
		m.got += copy(m.body.Bytes()[m.got:], h.contents)
	}
	if h.flags&flagLast == 0 {
		return
	}
	status := rdma.StatusOK
	if m.kind == kindRead && m.status == rdma.StatusOK && m.got != m.body.Len() {
		status = rdma.StatusFault
	}
	q.endAccess(p, status)
}

// endAccess ends the oldest access to a peer.
func (q *pair) endAccess(p *peer, status rdma.Status) {
	m := p.accesses
	if p.accesses = m.nextAccess; p.accesses == nil {
		p.lastAccess = nil
	}
	m.nextAccess, m.awaitsResponse = nil, false
	q.end(m, status)
}
