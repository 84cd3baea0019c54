package soft

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The tagged model over RD, which T1 left open. request sends a Write or a Read,
// deliverAccess processes those of peers, appendResponse writes the responses, and
// completeRequest completes a request.
//
// RD delivers in order, so a Write is visible when the Send behind it is delivered, as
// RFC 5040 section 5.5 requires. A Write ends with a zero-length Read Request: its
// response confirms that everything before it was placed. If something was refused, the
// response is a Terminate with the number of the request. It ends that request and not
// the conversation (T1 6.3: an error message instead of the end of the stream).

// maxRequests is the maximum number of Reads and Writes in flight to a peer (IRD and
// ORD).
const maxRequests = 64

// request is a Read or Write in flight.
type request struct {
	id     uint64
	sink   rdma.Mem // of a Read
	length int
	got    int
	number uint32
	tag    ddp.Tag // of the sink
	op     rdma.Op
	inline bool
}

// requests holds those to one peer, oldest first.
type requests struct {
	ring  [maxRequests]request
	first int
	n     int
}

func (a *requests) oldest() *request { return &a.ring[a.first] }

// streamOf identifies the peer in the table of tags.
func streamOf(p *peer) ddp.StreamID { return ddp.StreamID(p.id) + 1 }

// request sends a Write with the request that confirms it, or a Read.
func (q *pair) request(wr *rdma.SendWR) error {
	d, p := q.dev, q.peer(wr.Peer)
	if q.pending == q.depth || p.requests != nil && p.requests.n == maxRequests {
		return rdma.ErrAgain
	}
	if p.barred || p.gone {
		q.refusePost(p, wr)
		return nil
	}
	var tag ddp.Tag
	if wr.RKey>>32 == 0 {
		tag = ddp.Tag(wr.RKey) // no tag is longer, and tag 0 is refused
	}
	one := request{id: wr.ID, op: wr.Op, length: wr.Body.Len(), number: p.requestNumber, inline: wr.Flags&rdma.Inline != 0}
	read := ddp.ReadRequest{}
	if wr.Op == rdma.OpRead {
		var err error
		if one.tag, err = d.table.Draw(); err != nil {
			return err
		}
		one.sink = wr.Body
		read = ddp.ReadRequest{Sink: one.tag, Size: uint32(wr.Body.Len()), Source: tag, SourceTO: wr.Remote}
	} else {
		m := d.outgoing.newMessage()
		if !d.outgoing.attachBody(m, wr) {
			d.outgoing.freeMessage(m)
			return rdma.ErrAgain
		}
		m.Info.role, m.Info.opcode, m.Length, m.Info.headLen = roleWrite, ddp.Write, wr.Body.Len(), 0
		m.Overhead = taggedOverhead
		m.Info.tag, m.Info.address = tag, wr.Remote
		p.Push(m)
	}
	m := d.outgoing.newMessage()
	m.Info.role, m.Info.opcode, m.Info.number, m.Info.inline = roleRequest, ddp.ReadRequestOp, p.requestNumber, false
	m.Info.headLen = read.Put(m.Info.head[:])
	m.Length = m.Info.headLen
	p.Push(m)
	p.requestNumber++
	if p.requests == nil {
		p.lastReceived = d.clock.now
	}
	d.addRequest(p, &one)
	q.pending++
	q.markBusy(p)
	q.flushPeer(p)
	return nil
}

func (d *Device) addRequest(p *peer, one *request) {
	if p.requests == nil {
		p.requests = d.incoming.requests.take()
	}
	p.requests.ring[(p.requests.first+p.requests.n)%maxRequests] = *one
	p.requests.n++
	d.begins(one)
}

// deliverAccess processes a segment that is not a Send. It returns false if too many
// responses are pending already, or a packet of a run is corrupt.
func (q *pair) deliverAccess(p *peer, h *ddp.Header, s *slot, headers int) (taken bool) {
	switch h.Op {
	case ddp.Write:
		q.dev.note(h, s.length()-headers)
		return q.writeMemory(p, h, s, headers)
	case ddp.ReadRequestOp:
		return q.deliverRequest(p, h, s.data[s.lo+headers:s.hi])
	case ddp.ReadResponse:
		q.dev.note(h, s.length()-headers)
		return q.deliverResponse(p, h, s, headers)
	case ddp.TerminateOp:
		q.deliverRefusal(p, h, s.data[s.lo+headers:s.hi])
		return true
	}
	q.dev.drops.Malformed++
	return true
}

// writeMemory copies the payload of a Write to its target. After a refusal the rest of
// that Write is ignored. Tag and address of a zero-length Write are not checked (RFC
// 5040 5.1).
func (q *pair) writeMemory(p *peer, h *ddp.Header, s *slot, headers int) (taken bool) {
	length := s.length() - headers
	if length == 0 || p.refused != ddp.NoFault {
		return true
	}
	if q.dev.guard.Bars(p.strikes, q.dev.peers.list[p.id].resolved) {
		p.refused = ddp.FaultTag
		return true
	}
	mem, fault := q.dev.table.Placement(domain, streamOf(p), h.Tag, h.TO, uint64(length))
	if fault != ddp.NoFault {
		p.refused = fault
		q.strike(p, h.Tag)
		return true
	}
	return q.dev.put(mem, s, headers)
}

// strike counts a refused access. After too many, receiveRD accepts nothing more from
// the peer, and service ends what is in flight to it.
func (q *pair) strike(p *peer, tag ddp.Tag) {
	d := q.dev
	if p.barred || !d.guard.Strike(&p.strikes, d.peers.list[p.id].resolved, uint64(tag)) {
		return
	}
	p.barred = true
	q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: rdma.StatusRemoteAccess}, loan{})
}

// dropBarred ends what is in flight to and from a barred peer.
func (q *pair) dropBarred(p *peer) {
	q.abandon(p, rdma.StatusPeerGone)
	q.clear(p)
	p.DropAcks()
}

// deliverRequest queues the response to a request.
func (q *pair) deliverRequest(p *peer, h *ddp.Header, payload []byte) (taken bool) {
	var r ddp.ReadRequest
	if h.MSN != p.nextRequest || !r.Decode(payload) {
		q.dev.drops.Malformed++
		return true
	}
	if p.responses == maxRequests {
		return false
	}
	p.nextRequest++
	p.responses++
	m := q.dev.outgoing.newMessage()
	m.Info.role, m.Info.opcode, m.Info.number, m.Info.inline, m.Info.headLen = roleResponse, ddp.ReadResponse, h.MSN, false, 0
	m.Info.tag, m.Info.address, m.Info.source, m.Info.from, m.Length = r.Sink, r.SinkTO, r.Source, r.SourceTO, int(r.Size)
	m.Overhead = taggedOverhead
	// No order between responses and other messages is required (RFC 5040 section 5.5), and
	// behind megabytes of them our own requests would wait while the link to us is idle.
	m.Yields = true
	m.Info.fault = p.refused
	p.refused = ddp.NoFault
	if m.Info.fault == ddp.NoFault && r.Size > 0 { // RFC 5040 section 5.2: a zero-length Read is not checked
		if q.dev.guard.Bars(p.strikes, q.dev.peers.list[p.id].resolved) {
			m.Info.fault = ddp.FaultSourceTag
		} else if _, m.Info.fault = q.dev.table.Source(domain, streamOf(p), r.Source, r.SourceTO, uint64(r.Size)); m.Info.fault != ddp.NoFault {
			q.strike(p, r.Source)
		}
	}
	if m.Info.fault != ddp.NoFault {
		m.Length = 0
	}
	p.Push(m)
	return true
}

// appendResponse writes a segment of a response. It looks up the source for every
// datagram, also for retransmissions: after Deregister no byte of it may be sent (RFC
// 5042 section 6.3.3), and a refusal is sent instead.
func (d *Device) appendResponse(b []byte, p *peer, m *message, seg *transmission) (front, bytes []byte) {
	fault := m.Info.fault
	var mem []byte
	if fault == ddp.NoFault && seg.Length > 0 {
		mem, fault = d.table.Source(domain, streamOf(p), m.Info.source, m.Info.from+uint64(seg.Offset), uint64(seg.Length))
	}
	if fault == ddp.NoFault {
		b = appendDDP(b, &ddp.Header{Op: ddp.ReadResponse, Last: seg.Last, Tag: m.Info.tag, TO: m.Info.address + uint64(seg.Offset)})
		return b, mem
	}
	return appendTerminate(b, m.Info.number, fault, nil), nil
}

// deliverResponse processes a segment of a response. It ignores one whose request has
// ended.
func (q *pair) deliverResponse(p *peer, h *ddp.Header, s *slot, headers int) (taken bool) {
	if p.requests == nil || h.Tag != p.requests.oldest().tag {
		return true
	}
	one, length := p.requests.oldest(), s.length()-headers
	want := one.sink.Len()
	if h.TO != uint64(one.got) || length > want-one.got || h.Last != (one.got+length == want) {
		q.dev.drops.Malformed++
		q.completeRequest(p, rdma.StatusFault)
		return true
	}
	if !q.dev.put(one.sink.Bytes()[one.got:], s, headers) {
		return false
	}
	if one.got += length; h.Last {
		q.completeRequest(p, rdma.StatusOK)
	}
	return true
}

// deliverRefusal ends the request that the peer refused.
func (q *pair) deliverRefusal(p *peer, h *ddp.Header, payload []byte) {
	var t ddp.Terminate
	if !t.Decode(payload) {
		q.dev.drops.Malformed++
		return
	}
	if p.requests == nil || h.MSN != p.requests.oldest().number {
		return // several datagrams may refuse it
	}
	q.completeRequest(p, statusOf(t.Fault))
}

// completeRequest completes the oldest request.
func (q *pair) completeRequest(p *peer, status rdma.Status) {
	one := p.requests.oldest()
	q.dev.ends(one)
	q.complete(p, one.id, one.op, one.length, one.inline, status)
	*one = request{}
	p.requests.first = (p.requests.first + 1) % maxRequests
	if p.requests.n--; p.requests.n == 0 {
		q.dev.incoming.requests.giveBack(p.requests)
		p.requests = nil
	}
}
