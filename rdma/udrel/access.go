package udrel

import (
	"github.com/muster-mpi/muster/rdma"
)

// Write and Read. The origin sends what it wants in its stream of packets, the target
// does it when the packet's turn comes, and sends the answer in its own. Both streams are
// in order, so an answer belongs to the oldest access that has none. What is not allowed
// moves nothing: every packet of a Write tells all that is left of it, and is checked for
// that.

// ask makes an access of a message.
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

// targetAt is what is left of an access from a byte on.
func (m *message) targetAt(at int) target {
	p := m.target
	if m.kind == kindWrite {
		p.address += uint64(at)
		p.length -= uint32(at)
	}
	return p
}

// written takes a packet of a Write.
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

// receiveRead takes what a Read asks for.
func (q *pair) receiveRead(p *peer, h *header) {
	r, mem, ok := q.reach(p, h.target, rdma.RemoteRead)
	q.respond(p, r, mem, !ok)
}

// reach finds the memory of an access. A peer that is refused too often is given up: hear
// takes nothing more from it.
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

// answer sends the answer to an access.
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

// refuseResponses ends the reading of a region. Packets that leave again say so, and what
// is not cut yet is one packet that does.
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

// receiveResponse takes a packet of an answer.
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

// answered ends the oldest access of a peer.
func (q *pair) endAccess(p *peer, status rdma.Status) {
	m := p.accesses
	if p.accesses = m.nextAccess; p.accesses == nil {
		p.lastAccess = nil
	}
	m.nextAccess, m.awaitsResponse = nil, false
	q.end(m, status)
}
