package p2p

// Incoming packets. A link's packets are processed in the order in which they were sent:
// an early one is held, a duplicate is dropped. On devices that keep order the check is
// one comparison.

import (
	"fmt"
	"sort"

	"github.com/muster-mpi/muster/rdma"
)

// HandlePacket processes a packet, which is valid only during the call. Packets of a failed
// peer are ignored.
func (m *Machine) HandlePacket(l *Link, pkt []byte) {
	// Fast path: a complete eager message, next in sequence, for the oldest receive of
	// the most recently used envelope. It does the same as arriveOther with one
	// comparison per word and no call.
	e := m.match.last
	n := len(pkt) - headLen
	if n < 0 || e == nil || e.posted.head == nil || e.posted.head.stage != stagePosted || m.match.wildcards > 0 || len(l.held) > 0 || l.Err != nil ||
		get64(pkt)&^voteMask != uint64(kindEager)|uint64(l.recvSeq)<<32 ||
		get64(pkt[offContext:]) != uint64(e.ctx)|uint64(uint32(e.src))<<32 ||
		get64(pkt[offTag:]) != uint64(uint32(e.tag))|uint64(e.posted.head.Sign)<<32 || get64(pkt[offTotal:]) != uint64(n) {
		m.arriveOther(l, pkt)
		return
	}
	x := e.posted.head
	if x.next == nil {
		e.posted.head, e.posted.tail = nil, nil
	} else {
		e.posted.remove(x)
	}
	l.recvSeq++
	l.Stats.Received++
	l.Stats.BytesRx += uint64(n)
	x.entry, x.Link, x.total, x.Vote = nil, l, n, pkt[offVote]
	if n == 8 && len(x.Buf) >= 8 {
		*(*[8]byte)(x.Buf) = [8]byte(pkt[headLen:])
	} else {
		copy(x.Buf, pkt[headLen:])
	}
	if l.consumed += int64(n) + eagerCharge; l.consumed >= l.granted>>2 {
		m.giveCredit(l)
	}
	if n > len(x.Buf) {
		m.finishRecv(x)
		return
	}
	x.Len, x.stage = n, stageDone
	if x.Owner != nil {
		m.Out.Done = append(m.Out.Done, x)
	}
}

// arriveOther processes any packet.
func (m *Machine) arriveOther(l *Link, pkt []byte) {
	if l.Err != nil {
		return
	}
	if err := checkPacket(pkt); err != nil {
		m.failPeer(l, err.Error())
		return
	}
	if seq := get32(pkt[offSeq:]); seq != l.recvSeq {
		m.outOfOrder(l, seq, pkt)
		return
	}
	l.recvSeq++
	m.dispatch(l, pkt)
	for len(l.held) > 0 && l.held[0].seq == l.recvSeq {
		h := l.held[0].pkt
		l.held = l.held[1:]
		l.recvSeq++
		m.dispatch(l, h)
	}
}

// outOfOrder holds a packet that arrived early, sorted by sequence number, and drops a
// duplicate.
func (m *Machine) outOfOrder(l *Link, seq uint32, pkt []byte) {
	if int32(seq-l.recvSeq) < 0 {
		l.Stats.Duplicates++
		return
	}
	at := sort.Search(len(l.held), func(i int) bool { return int32(l.held[i].seq-seq) >= 0 })
	if at < len(l.held) && l.held[at].seq == seq {
		l.Stats.Duplicates++
		return
	}
	l.Stats.Held++
	l.held = append(l.held, heldPacket{})
	copy(l.held[at+1:], l.held[at:])
	l.held[at] = heldPacket{seq, append([]byte(nil), pkt...)}
}

func (m *Machine) dispatch(l *Link, pkt []byte) {
	switch packetKind(pkt[offKind]) {
	case kindEager:
		m.arriveEager(l, pkt)
	case kindSeg:
		m.arriveSeg(l, pkt)
	case kindRTS:
		m.arriveRTS(l, pkt)
		m.needsCredit(l, int(get64(pkt[offTotal:])))
	case kindCTS:
		m.step(l, pkt, Event{Kind: EvCTS, Peer: get64(pkt[offPeer:]),
			Len: int(get64(pkt[offTotal:])), Addr: get64(pkt[offCTSAddr:]), Key: get64(pkt[offCTSKey:])})
	case kindFIN:
		m.step(l, pkt, Event{Kind: EvFIN, Len: int(get64(pkt[offTotal:])), Status: statusOf(pkt)})
	case kindACK:
		m.step(l, pkt, Event{Kind: EvACK})
	case kindRTR:
		m.arriveRTR(l, pkt)
	case kindRevoke:
		m.arriveRevoke(l, get64(pkt[offHandle:]))
	case kindRevoked:
		m.arriveRevoked(l, get64(pkt[offHandle:]))
	case kindRing:
		m.arriveRing(l, pkt)
	case kindSlots:
		m.arriveSlots(l, pkt)
	case kindCredit:
		l.credit += int64(get64(pkt[offTotal:]))
		if l.credit > m.cfg.Credit {
			m.failPeer(l, "it returns more credit than was used")
		}
	}
}

func statusOf(pkt []byte) rdma.Status { return rdma.Status(pkt[offStatus]) }

// step passes a control packet to the operation it names. Packets for an operation that
// has ended, by failure or abort, are ignored.
func (m *Machine) step(l *Link, pkt []byte, ev Event) {
	x := m.find(get64(pkt[offHandle:]))
	if x == nil || x.stage == stageDone || x.stage == stageIdle {
		return
	}
	if x.Link != l || !m.advance(x, ev) {
		m.failPeer(l, FormatPacket(pkt)+" does not fit the operation it names")
	}
}

func (m *Machine) arriveRTS(l *Link, pkt []byte) {
	proto := pkt[offProto]
	if proto >= protoOneSided || proto == protoEager {
		m.failPeer(l, fmt.Sprintf("it proposes rendezvous number %d, which this version does not have", proto))
		return
	}
	if need := protocols[proto].needs; !l.Attr.Ops.Has(need) {
		m.failPeer(l, fmt.Sprintf("it proposes %s, but the device here has no %s", protocolName(proto), need))
		return
	}
	w := get64(pkt[offContext:])
	p := pattern{ctx: uint32(w), src: int32(w >> 32), tag: int32(get32(pkt[offTag:]))}
	g := m.getMsg()
	g.Link, g.Ctx, g.Source, g.Tag = l, p.ctx, p.src, p.tag
	g.Total, g.rts, g.proto = int(get64(pkt[offTotal:])), true, proto
	g.peer, g.remote, g.rkey = get64(pkt[offExtra:]), get64(pkt[offAddr:]), get64(pkt[offKey:])
	g.sign, g.vote = get32(pkt[offSign:]), pkt[offVote]
	l.Stats.Received++
	l.Stats.BytesRx += uint64(g.Total)
	if proto == protoSpec {
		m.arriveSpec(l, p, g, get64(pkt[offNamed:]))
		return
	}
	if x := m.takePosted(p); x != nil {
		m.matchRTS(x, l, g)
		m.putMsg(g)
		return
	}
	l.Stats.Unexpected++
	m.file(g)
}

// matchRTS joins a receive and an RTS.
func (m *Machine) matchRTS(x *Xfer, l *Link, g *Msg) {
	x.Source, x.Tag, x.Link = g.Source, g.Tag, l
	x.total, x.proto = g.Total, g.proto
	x.compare(g.sign, g.vote)
	x.remoteBuffer = g.remoteBuffer
	x.stage = stageMatched
	m.advance(x, Event{Kind: EvMatched})
}
