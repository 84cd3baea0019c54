package dgram

import (
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The tagged model over RD, which T1 left open: ask sends a Write or a Read,
// deliverAccess takes in what peers send of theirs, appendAnswer makes the answers,
// answered ends a request.
//
// RD delivers in order, so a Write is visible when the Send behind it is delivered,
// as RFC 5040 section 5.5 wants it. A Write ends with a Read Request for no bytes: its
// answer says that all before it was placed. When something was refused, the answer
// is a Terminate that carries the number of the request; it ends that request and
// not the conversation (T1 6.3: an error message instead of the end of the stream).

// mostAsks is how many reads and writes may be under way to a peer (IRD and ORD).
const mostAsks = 64

// ask is a Read or Write under way.
type ask struct {
	id     uint64
	sink   rdma.Mem // of a Read
	length int
	got    int
	number uint32
	tag    ddp.Tag // of the sink
	op     rdma.Op
	inline bool
}

// asks are those to one peer, oldest first.
type asks struct {
	ring  [mostAsks]ask
	first int
	n     int
}

func (a *asks) oldest() *ask { return &a.ring[a.first] }

// streamOf names the peer to the table of tags.
func streamOf(p *peer) ddp.StreamID { return ddp.StreamID(p.id) + 1 }

// ask sends a Write with the request that confirms it, or a Read.
func (q *pair) ask(wr *rdma.SendWR) error {
	d, p := q.dev, q.peer(wr.Peer)
	if q.pending == q.depth || p.asks != nil && p.asks.n == mostAsks {
		return rdma.ErrAgain
	}
	if p.barred {
		q.refusePost(p, wr)
		return nil
	}
	var tag ddp.Tag
	if wr.RKey>>32 == 0 {
		tag = ddp.Tag(wr.RKey) // a longer key is nobody's, and 0 is refused
	}
	one := ask{id: wr.ID, op: wr.Op, length: wr.Body.Len(), number: p.askNumber, inline: wr.Flags&rdma.Inline != 0}
	request := ddp.ReadRequest{}
	if wr.Op == rdma.OpRead {
		var err error
		if one.tag, err = d.table.Draw(); err != nil {
			return err
		}
		one.sink = wr.Body
		request = ddp.ReadRequest{Sink: one.tag, Size: uint32(wr.Body.Len()), Source: tag, SourceTO: wr.Remote}
	} else {
		m := d.newMessage()
		if !d.carry(m, wr) {
			d.forget(m)
			return rdma.ErrAgain
		}
		m.role, m.opcode, m.length, m.headLen = roleWrite, ddp.Write, wr.Body.Len(), 0
		m.tag, m.address = tag, wr.Remote
		p.push(m)
	}
	m := d.newMessage()
	m.role, m.opcode, m.number, m.inline = roleAsk, ddp.ReadRequestOp, p.askNumber, false
	m.headLen = request.Put(m.head[:])
	m.length = m.headLen
	p.push(m)
	p.askNumber++
	if p.asks == nil {
		p.heard = d.now
	}
	d.noteAsk(p, &one)
	q.pending++
	q.occupy(p)
	q.pump(p)
	return nil
}

func (d *Device) noteAsk(p *peer, one *ask) {
	if p.asks == nil {
		if n := len(d.asking); n > 0 {
			p.asks = d.asking[n-1]
			d.asking = d.asking[:n-1]
		} else {
			p.asks = new(asks)
		}
	}
	p.asks.ring[(p.asks.first+p.asks.n)%mostAsks] = *one
	p.asks.n++
	d.begins(one)
}

// deliverAccess takes in a segment that is not a Send. It is not taken if too many
// answers are owed already.
func (q *pair) deliverAccess(p *peer, h *ddp.Header, payload []byte) (taken bool) {
	switch h.Op {
	case ddp.Write:
		q.dev.note(h, len(payload))
		q.place(p, h, payload)
		return true
	case ddp.ReadRequestOp:
		return q.deliverRequest(p, h, payload)
	case ddp.ReadResponse:
		q.dev.note(h, len(payload))
		q.deliverResponse(p, h, payload)
		return true
	case ddp.TerminateOp:
		q.deliverRefusal(p, h, payload)
		return true
	}
	q.dev.drops.Malformed++
	return true
}

// place puts the bytes of a Write where they belong. After a refusal nothing more of
// that Write is placed. Tag and address of no bytes are not checked (RFC 5040 5.1).
func (q *pair) place(p *peer, h *ddp.Header, payload []byte) {
	if len(payload) == 0 || p.refused != ddp.NoFault {
		return
	}
	if q.dev.guard.Bars(p.strikes, q.dev.peers[p.id].told) {
		p.refused = ddp.FaultTag
		return
	}
	mem, fault := q.dev.table.Placement(domain, streamOf(p), h.Tag, h.TO, uint64(len(payload)))
	if fault != ddp.NoFault {
		p.refused = fault
		q.strike(p, h.Tag)
		return
	}
	put(mem, payload)
}

// strike counts an access that was refused. A peer that makes too many of them is given up:
// hear takes nothing more from it, and tend ends what is under way to it.
func (q *pair) strike(p *peer, tag ddp.Tag) {
	d := q.dev
	if p.barred || !d.guard.Strike(&p.strikes, d.peers[p.id].told, uint64(tag)) {
		return
	}
	p.barred = true
	q.recvCQ.push(rdma.Completion{Op: rdma.OpDisconnected, Peer: p.id, Status: rdma.StatusRemoteAccess}, loan{})
}

// dropBarred ends what is under way to and from a peer that is barred.
func (q *pair) dropBarred(p *peer) {
	q.abandon(p, rdma.StatusPeerGone)
	q.clear(p)
	p.owed, p.given = 0, p.receiver.next
}

// deliverRequest queues the answer to a request.
func (q *pair) deliverRequest(p *peer, h *ddp.Header, payload []byte) (taken bool) {
	var r ddp.ReadRequest
	if h.MSN != p.nextAsked || !r.Decode(payload) {
		q.dev.drops.Malformed++
		return true
	}
	if p.answers == mostAsks {
		return false
	}
	p.nextAsked++
	p.answers++
	m := q.dev.newMessage()
	m.role, m.opcode, m.number, m.inline, m.headLen = roleAnswer, ddp.ReadResponse, h.MSN, false, 0
	m.tag, m.address, m.source, m.from, m.length = r.Sink, r.SinkTO, r.Source, r.SourceTO, int(r.Size)
	m.fault = p.refused
	p.refused = ddp.NoFault
	if m.fault == ddp.NoFault && r.Size > 0 { // RFC 5040 section 5.2: no bytes are not checked
		if q.dev.guard.Bars(p.strikes, q.dev.peers[p.id].told) {
			m.fault = ddp.FaultSourceTag
		} else if _, m.fault = q.dev.table.Source(domain, streamOf(p), r.Source, r.SourceTO, uint64(r.Size)); m.fault != ddp.NoFault {
			q.strike(p, r.Source)
		}
	}
	if m.fault != ddp.NoFault {
		m.length = 0
	}
	p.push(m)
	return true
}

// appendAnswer writes a piece of an answer. The source is looked up for every datagram
// anew, repeated ones too: after Deregister no byte of it may leave (RFC 5042 section
// 6.3.3), and a refusal goes in its place.
func (d *Device) appendAnswer(b []byte, p *peer, m *message, seg *segment) (front, bytes []byte) {
	fault := m.fault
	var mem []byte
	if fault == ddp.NoFault && seg.length > 0 {
		mem, fault = d.table.Source(domain, streamOf(p), m.source, m.from+uint64(seg.offset), uint64(seg.length))
	}
	if fault == ddp.NoFault {
		b = appendDDP(b, &ddp.Header{Op: ddp.ReadResponse, Last: seg.last, Tag: m.tag, TO: m.address + uint64(seg.offset)})
		return b, mem
	}
	return appendTerminate(b, m.number, fault, nil), nil
}

// deliverResponse takes in a piece of an answer. One whose request has ended is left.
func (q *pair) deliverResponse(p *peer, h *ddp.Header, payload []byte) {
	if p.asks == nil || h.Tag != p.asks.oldest().tag {
		return
	}
	one := p.asks.oldest()
	want := one.sink.Len()
	if h.TO != uint64(one.got) || len(payload) > want-one.got || h.Last != (one.got+len(payload) == want) {
		q.dev.drops.Malformed++
		q.answered(p, rdma.StatusFault)
		return
	}
	put(one.sink.Bytes()[one.got:], payload)
	if one.got += len(payload); h.Last {
		q.answered(p, rdma.StatusOK)
	}
}

// deliverRefusal ends the request that the peer refused.
func (q *pair) deliverRefusal(p *peer, h *ddp.Header, payload []byte) {
	var t ddp.Terminate
	if !t.Decode(payload) {
		q.dev.drops.Malformed++
		return
	}
	if p.asks == nil || h.MSN != p.asks.oldest().number {
		return // it was refused in several datagrams
	}
	q.answered(p, statusOf(t.Fault))
}

// answered ends the oldest request.
func (q *pair) answered(p *peer, status rdma.Status) {
	one := p.asks.oldest()
	q.dev.ends(one)
	q.complete(p, one.id, one.op, one.length, one.inline, status)
	*one = ask{}
	p.asks.first = (p.asks.first + 1) % mostAsks
	if p.asks.n--; p.asks.n == 0 {
		q.dev.asking = append(q.dev.asking, p.asks)
		p.asks = nil
	}
}
