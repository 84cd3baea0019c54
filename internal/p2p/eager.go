package p2p

// Eager: the data travels with the envelope and waits at the receiver if there is no
// receive yet. The send completes when the device has copied the last packet, or has sent
// it if the device avoids the copy; a synchronous send completes when the receiver has
// matched it. A message larger than a segment is sent as several packets, so that copying
// in and copying out overlap.
//
//	sender                receiver
//	EAGER ───────────────▶ match, copy out      (or keep)
//	SEG   ───────────────▶ copy out
//	      ◀─────────────── ACK                  (synchronous only)

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

type eager struct{}

func (eager) Probe(k Key, l *Link) []Range {
	return []Range{{0, k.EagerLimit, l.Attr.SendCost}}
}

func (eager) Begin(m *Machine, x *Xfer) {
	x.stage = stagePost
	m.emitEager(x.Link, x.Ctx, x.Source, x.Tag, x.Buf, x.handle, x.Mode == Synchronous)
	m.useSource(x)
}

// emitEager creates the packets of an eager message. The last one carries id, so that
// HandleTaken reports when the device has accepted it; 0 for none.
func (m *Machine) emitEager(l *Link, ctx uint32, src, tag int32, buf []byte, id uint64, sync bool) {
	l.credit -= int64(len(buf)) + eagerCharge
	l.Stats.ByProtocol[protoEager]++
	m.sizes.add(protoEager, len(buf))
	l.announce(envelopeKey(ctx, tag))
	l.Stats.BytesSent += uint64(len(buf))
	wr := m.packet(l)
	first := l.sendSeq - 1
	h := wr.Head[:]
	put64(h[offKind:], uint64(kindEager)|uint64(m.Vote)<<(8*offVote)|uint64(first)<<32)
	put64(h[offContext:], uint64(ctx)|uint64(uint32(src))<<32)
	put64(h[offTag:], uint64(uint32(tag))|uint64(m.Sign)<<32)
	put64(h[offTotal:], uint64(len(buf)))
	wr.HeadLen = headLen
	if sync {
		h[offFlags] = flagSync
		put64(h[offExtra:], id)
		wr.HeadLen = headSync
	}
	if len(buf) <= l.segment {
		wr.Body = rdma.MemOf(buf)
		wr.ID = id
		if id != 0 && len(buf) >= l.copyMin {
			wr.Flags = 0 // the completion ends the send
		}
		return
	}
	wr.Body = rdma.MemOf(buf[:l.segment])
	wr.ID = 0
	for off := l.segment; off < len(buf); off += l.segment {
		end := min(off+l.segment, len(buf))
		wr = m.packet(l)
		h = wr.Head[:]
		m.packets[kindSeg]++
		put64(h[offKind:], uint64(kindSeg)|uint64(l.sendSeq-1)<<32)
		put64(h[offFirst:], uint64(first))
		put64(h[offTotal:], uint64(off))
		wr.HeadLen = headLen
		wr.Body = rdma.MemOf(buf[off:end])
		wr.ID = 0
	}
	wr.ID = id
}

func (eager) Step(m *Machine, x *Xfer, ev Event) bool {
	sync := x.Send && x.Mode == Synchronous
	switch {
	case ev.Kind == EvTaken && x.stage == stagePost && sync:
		x.stage = stageAck
	case ev.Kind == EvACK && x.stage == stagePost && sync:
		x.stage = stageAcked // matched by its first segment; the device has not accepted the rest yet
	case ev.Kind == EvTaken && (x.stage == stagePost || x.stage == stageAcked),
		ev.Kind == EvACK && x.stage == stageAck:
		m.complete(x)
	case ev.Kind == EvDone && x.Send && ev.Status != rdma.StatusOK && x.lease != leaseNone && x.Link.HasRing():
		// The slot will never be complete, and the packets behind it never read.
		m.FailLink(x.Link, fmt.Errorf("%w: write into the ring of rank %d on %s: %s", ErrTransport, x.Link.Rank, x.Link.Host, ev.Status))
	case ev.Kind == EvDone && x.Send && ev.Status != rdma.StatusOK:
		m.failTransfer(x, ev.Status) // an inline request has a completion only if it failed
	case ev.Kind == EvDone && x.Send && (x.lease != leaseNone || len(x.Buf) >= x.Link.copyMin):
		m.release(x)
		return eager{}.Step(m, x, Event{Kind: EvTaken}) // sent without a copy
	default:
		return false
	}
	return true
}

func (eager) Abort(m *Machine, x *Xfer) { m.release(x) }

// arriveEager handles the first, and usually only, packet of an eager message.
func (m *Machine) arriveEager(l *Link, pkt []byte) {
	w := get64(pkt[offContext:])
	p := pattern{ctx: uint32(w), src: int32(w >> 32), tag: int32(get32(pkt[offTag:]))}
	total := int(get64(pkt[offTotal:]))
	data := pkt[headLen:]
	sync := pkt[offFlags]&flagSync != 0
	var peer uint64
	if sync {
		peer = get64(pkt[offExtra:])
		data = pkt[headSync:]
	}
	if pkt[offFlags]&flagNote != 0 {
		m.arriveNote(l, p, total, data)
		return
	}
	sign, vote := get32(pkt[offSign:]), pkt[offVote]
	l.Stats.Received++
	l.Stats.BytesRx += uint64(total)
	x := m.takePosted(p)
	if x == nil {
		m.keepEager(l, p, sign, vote, total, data, sync, peer)
		return
	}
	x.Source, x.Tag, x.Link = p.src, p.tag, l
	x.compare(sign, vote)
	x.total = total
	if sync {
		m.emitACK(l, peer)
	}
	copy(x.Buf, data)
	m.consume(l, total)
	if len(data) == total {
		m.finishRecv(x)
		return
	}
	x.stage = stagePartial
	l.partial = append(l.partial, partial{first: l.recvSeq - 1, filled: len(data), total: total, x: x})
}

// keepAhead bounds the memory that is allocated on the strength of a header. Beyond that,
// memory is allocated as the data arrives.
const keepAhead = 64 << 10

// keepEager holds a message until its receive is posted.
func (m *Machine) keepEager(l *Link, p pattern, sign uint32, vote uint8, total int, data []byte, sync bool, peer uint64) {
	g := m.getMsgFor(total)
	g.Link, g.Ctx, g.Source, g.Tag, g.Total = l, p.ctx, p.src, p.tag, total
	g.sync, g.peer, g.sign, g.vote = sync, peer, sign, vote
	if want := max(len(data), min(total, keepAhead)); cap(g.data) < want {
		if want <= keepAhead {
			want = smallMsg << msgClass(want)
		}
		g.data = make([]byte, 0, want)
	}
	g.data = append(g.data[:0], data...)
	if len(data) < total {
		l.partial = append(l.partial, partial{first: l.recvSeq - 1, filled: len(data), total: total, msg: g})
	}
	l.Stats.Unexpected++
	m.kept.add(total)
	m.file(g)
}

// claimEager passes a kept message to a receive.
func (m *Machine) claimEager(x *Xfer, g *Msg) {
	l := g.Link
	x.Source, x.Tag, x.Link = g.Source, g.Tag, l
	x.total = g.Total
	x.compare(g.sign, g.vote)
	copy(x.Buf, g.data)
	if l.Err == nil {
		m.consume(l, g.Total)
		if g.sync {
			m.emitACK(l, g.peer)
		}
	}
	if len(g.data) < g.Total {
		x.stage = stagePartial
		for i := range l.partial {
			if l.partial[i].msg == g {
				l.partial[i].msg, l.partial[i].x = nil, x
			}
		}
	} else {
		m.finishRecv(x)
	}
	m.putMsg(g)
}

// arriveSeg handles a further segment.
func (m *Machine) arriveSeg(l *Link, pkt []byte) {
	first, off, data := get32(pkt[offFirst:]), int(get64(pkt[offTotal:])), pkt[headLen:]
	i := 0
	for i < len(l.partial) && l.partial[i].first != first {
		i++
	}
	if i == len(l.partial) {
		m.failPeer(l, FormatPacket(pkt)+" arrived without the start of its message")
		return
	}
	part := &l.partial[i]
	if off != part.filled || len(data) == 0 || len(data) > part.total-off {
		m.failPeer(l, fmt.Sprintf("%s does not continue a message of which %d of %d bytes have arrived",
			FormatPacket(pkt), part.filled, part.total))
		return
	}
	part.filled += len(data)
	x := part.x
	switch {
	case x != nil && off < len(x.Buf):
		copy(x.Buf[off:], data)
	case part.msg != nil:
		part.msg.data = append(part.msg.data, data...)
	} // else the segment lies beyond the buffer, or its receive was aborted
	if part.filled == part.total {
		last := len(l.partial) - 1
		l.partial[i] = l.partial[last]
		l.partial[last] = partial{}
		l.partial = l.partial[:last]
		if x != nil {
			m.finishRecv(x)
		}
	}
}

// finishRecv completes a receive whose data has all arrived.
func (m *Machine) finishRecv(x *Xfer) {
	x.Len = x.total
	if x.total > len(x.Buf) {
		x.Len = len(x.Buf)
		x.Err = &TruncatedError{x.total, len(x.Buf)}
	}
	m.complete(x)
}

func (m *Machine) emitACK(l *Link, handle uint64) {
	wr := m.packet(l)
	m.control(wr, l, kindACK, handle, 0, 0)
}
