package udrel

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Write and Read. The origin sends its request in its stream of packets. The target
// executes it when the packet is delivered, and responds in its own stream. Both
// streams are ordered, so a response belongs to the oldest access without one. An
// access that is not allowed changes nothing: every packet of a Write names the whole
// rest of the Write and is checked for all of it.

// access turns a message into a Read or Write.
func (q *pair) access(p *peer, one *message, wr *rdma.SendWR) {
	m := &one.Info
	m.awaitsResponse = true
	m.kind = kindWrite
	if wr.Op == rdma.OpRead {
		m.kind, one.Length = kindRead, 0 // the body is filled, not sent
	}
	m.target = target{address: wr.Remote, length: uint32(wr.Body.Len())}
	if wr.RKey>>32 == 0 {
		m.target.tag = ddp.Tag(wr.RKey) // no tag is longer, and tag 0 is refused
	}
	if p.accesses == nil {
		p.accesses, p.lastReceived = one, q.dev.now // the peer timeout starts now
	} else {
		p.lastAccess.Info.nextAccess = one
	}
	p.lastAccess = one
}

// receiveWrite processes a packet of a Write.
func (q *pair) receiveWrite(p *peer, h *header) {
	mem, ok := q.reach(p, h.target, rdma.RemoteWrite)
	if ok && !p.refuses {
		copy(mem, h.contents)
	} else {
		p.refuses = true
	}
	if h.flags&flagLast != 0 {
		q.respond(p, target{}, p.refuses)
		p.refuses = false
	}
}

// receiveRead processes a Read request.
func (q *pair) receiveRead(p *peer, h *header) {
	_, ok := q.reach(p, h.target, rdma.RemoteRead)
	q.respond(p, h.target, !ok)
}

// reach returns the memory of an access. After too many refused accesses of a peer,
// receive accepts nothing more from it. Tag and address of an empty access are not
// checked (RFC 5040 section 5).
func (q *pair) reach(p *peer, at target, right rdma.Access) ([]byte, bool) {
	d := q.dev
	resolved := int(p.id) < len(d.resolved) && d.resolved[p.id]
	if d.soft.Guard.Bars(p.strikes, resolved) {
		return nil, false
	}
	if at.length == 0 {
		return nil, true
	}
	reach := d.soft.Table.Placement
	if right == rdma.RemoteRead {
		reach = d.soft.Table.Source
	}
	mem, fault := reach(soft.Domain, streamOf(p), at.tag, at.address, uint64(at.length))
	if fault == ddp.NoFault {
		return mem, true
	}
	if d.soft.Guard.Strike(&p.strikes, resolved, uint64(at.tag)) && !p.barred {
		p.barred = true
		q.disconnected(p, rdma.StatusRemoteAccess)
	}
	return nil, false
}

// respond queues the response to an access.
func (q *pair) respond(p *peer, at target, refused bool) {
	m := q.dev.messages.take(0)
	m.Info.peer, m.Info.pair, m.Info.kind, m.Info.sending = p, q, kindResponse, true
	if m.Info.target, m.Length = at, int(at.length); refused {
		m.Info.flags, m.Length = flagRefused, 0
	}
	p.Push(m)
	q.markBusy(p)
}

// receiveResponse processes a packet of a response.
func (q *pair) receiveResponse(p *peer, h *header) {
	if p.accesses == nil {
		q.dev.traffic.malformed++
		return
	}
	m := &p.accesses.Info
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
	if m.kind == kindRead && m.got != m.body.Len() {
		status = rdma.StatusFault
	}
	q.endAccess(p, status)
}

// endAccess ends the oldest access to a peer.
func (q *pair) endAccess(p *peer, status rdma.Status) {
	m := p.accesses
	if p.accesses = m.Info.nextAccess; p.accesses == nil {
		p.lastAccess = nil
	}
	m.Info.nextAccess, m.Info.awaitsResponse = nil, false
	q.end(m, status)
}
