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
func (m *message) ask(wr *rdma.SendWR) {
	m.asking = true
	m.place = place{address: wr.Remote, key: wr.RKey, length: uint32(wr.Body.Len())}
	m.kind = kindRead
	if wr.Op == rdma.OpWrite {
		m.kind = kindWrite
		m.room -= placeLen
	}
	p := m.peer
	if p.asks == nil {
		p.asks = m
	} else {
		p.lastAsk.asked = m
	}
	p.lastAsk = m
}

// placeAt is what is left of an access from a byte on.
func (m *message) placeAt(at int) place {
	p := m.place
	if m.kind == kindWrite {
		p.address += uint64(at)
		p.length -= uint32(at)
	}
	return p
}

// written takes a packet of a Write.
func (q *pair) written(p *peer, h *header) {
	_, mem, ok := q.reach(p, h.place, rdma.RemoteWrite)
	if ok && !p.refuses {
		copy(mem, h.contents)
	} else {
		p.refuses = true
	}
	if h.flags&flagLast != 0 {
		q.answer(p, nil, nil, p.refuses)
		p.refuses = false
	}
}

// readFrom takes what a Read asks for.
func (q *pair) readFrom(p *peer, h *header) {
	r, mem, ok := q.reach(p, h.place, rdma.RemoteRead)
	q.answer(p, r, mem, !ok)
}

// reach finds the memory of an access. A peer that is refused too often is given up: hear
// takes nothing more from it.
func (q *pair) reach(p *peer, at place, right rdma.Access) (*region, []byte, bool) {
	d := q.dev
	told := int(p.id) < len(d.told) && d.told[p.id]
	if d.guard.Bars(p.strikes, told) {
		return nil, nil, false
	}
	r, mem, ok := d.regions.reach(at, right)
	if !ok && d.guard.Strike(&p.strikes, told, at.key) {
		p.barred = true
		q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: rdma.StatusRemoteAccess}, loan{})
	}
	return r, mem, ok
}

// answer sends the answer to an access.
func (q *pair) answer(p *peer, r *region, mem []byte, refused bool) {
	m := q.dev.shelf.take(0)
	m.peer, m.pair, m.kind, m.sending = p, q, kindAnswer, true
	m.room = q.dev.cfg.Packet - headerLen
	if m.refused = refused; !refused {
		m.body, m.region = rdma.MemOf(mem), r
	}
	if m.region != nil {
		m.region.shown++
	}
	q.enqueue(p, m)
}

// refuseAnswers ends the reading of a region. Packets that leave again say so, and what
// is not cut yet is one packet that does.
func (q *pair) refuseAnswers(r *region) {
	for _, m := range q.dev.shelf.all {
		if m.region != r || m.pair != q || !m.sending {
			continue
		}
		m.refused = true
		if !m.whole {
			m.body = m.body.Slice(0, min(m.cut+1, m.body.Len()))
		}
	}
}

// answerCame takes a packet of an answer.
func (q *pair) answerCame(p *peer, h *header) {
	m := p.asks
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
	q.answered(p, status)
}

// answered ends the oldest access of a peer.
func (q *pair) answered(p *peer, status rdma.Status) {
	m := p.asks
	if p.asks = m.asked; p.asks == nil {
		p.lastAsk = nil
	}
	m.asked, m.asking = nil, false
	q.end(m, status)
}
