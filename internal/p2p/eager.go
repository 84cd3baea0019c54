package p2p

// Eager: the data travels with the envelope and waits at the receiver if nobody
// has asked for it. The send ends when the device has copied the last packet; a
// synchronous one when the receiver has matched it. A message larger than a
// segment goes as several packets, so that copying in and copying out overlap.
//
//	sender                receiver
//	EAGER ───────────────▶ match, copy out      (or keep)
//	SEG   ───────────────▶ copy out
//	      ◀─────────────── ACK                  (synchronous only)

import "github.com/muster-mpi/muster/rdma"

type eager struct{}

func (eager) Name() string { return "eager" }

func (eager) Probe(k Key, l *Link) []Range {
	hi := k.EagerLimit
	if !l.Attr.Ops.Has(rdma.OpRead) && !l.Attr.Ops.Has(rdma.OpWrite) {
		hi = MaxSize // there is nothing else
	}
	return []Range{{0, hi, l.Attr.SendCost}}
}

func (eager) Begin(m *Machine, x *Xfer) {
	x.stage = stagePost
	m.emitEager(x.Link, x.Ctx, x.Source, x.Tag, x.Buf, x.handle, x.Mode == Synchronous)
}

// emitEager makes the packets of an eager message. The last one bears id, so
// that the machine hears when the device has taken it; 0 if nobody cares.
func (m *Machine) emitEager(l *Link, ctx uint32, src, tag int32, buf []byte, id uint64, sync bool) {
	l.credit -= int64(len(buf)) + eagerCharge
	l.Stats.ByProtocol[protoEager]++
	l.Stats.Sent++
	l.Stats.BytesSent += uint64(len(buf))
	wr := m.packet(l)
	first := l.sendSeq - 1
	h := wr.Head[:]
	put64(h[offKind:], uint64(kindEager)|uint64(first)<<32)
	put64(h[offContext:], uint64(ctx)|uint64(uint32(src))<<32)
	put64(h[offTag:], uint64(uint32(tag)))
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
		return
	}
	wr.Body = rdma.MemOf(buf[:l.segment])
	wr.ID = 0
	for off := l.segment; off < len(buf); off += l.segment {
		end := min(off+l.segment, len(buf))
		wr = m.packet(l)
		h = wr.Head[:]
		put64(h[offKind:], uint64(kindSeg)|uint64(l.sendSeq-1)<<32)
		put64(h[offFirst:], uint64(first))
		put64(h[offTotal:], uint64(off))
		wr.HeadLen = headLen
		wr.Body = rdma.MemOf(buf[off:end])
		wr.ID = 0
	}
	wr.ID = id
}

func (eager) Step(m *Machine, x *Xfer, ev Event) {
	switch ev.Kind {
	case EvTaken:
		if x.Mode == Synchronous && x.stage == stagePost {
			x.stage = stageAck
			return
		}
		m.complete(x)
	case EvACK:
		m.complete(x)
	case EvDone: // an inline request completes only when it has failed
		m.fail(x, transportError(x, ev.Status))
	}
}

func (eager) Abort(m *Machine, x *Xfer) {}

// arriveEager takes the first, and usually only, packet of an eager message.
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
	l.Stats.Received++
	l.Stats.BytesRx += uint64(total)
	x := m.match.takePosted(p)
	if x == nil {
		m.keepEager(l, p, total, data, sync, peer)
		return
	}
	x.Source, x.Tag, x.Link = p.src, p.tag, l
	x.total, x.filled = total, len(data)
	if sync {
		m.emitACK(l, peer)
	}
	copy(x.Buf, data)
	m.consume(l, total)
	if len(data) == total {
		m.received(x)
		return
	}
	x.stage = stagePartial
	l.partial = append(l.partial, partial{first: get32(pkt[offSeq:]), x: x})
}

// keepEager holds a message until its receive comes.
func (m *Machine) keepEager(l *Link, p pattern, total int, data []byte, sync bool, peer uint64) {
	g := m.getMsg()
	g.Link, g.Ctx, g.Source, g.Tag, g.Total = l, p.ctx, p.src, p.tag, total
	g.sync, g.peer = sync, peer
	if cap(g.data) < total {
		g.data = make([]byte, total, max(total, smallMsg))
	}
	g.data = g.data[:total]
	g.filled = copy(g.data, data)
	if g.filled < total {
		l.partial = append(l.partial, partial{first: l.recvSeq - 1, msg: g})
	}
	l.Stats.Unexpected++
	m.match.file(g)
}

// claimEager gives a kept message to a receive.
func (m *Machine) claimEager(x *Xfer, g *Msg) {
	l := g.Link
	x.Source, x.Tag, x.Link = g.Source, g.Tag, l
	x.total, x.filled = g.Total, g.filled
	copy(x.Buf, g.data[:g.filled])
	m.consume(l, g.Total)
	if g.sync {
		m.emitACK(l, g.peer)
	}
	if g.filled < g.Total {
		x.stage = stagePartial
		for i := range l.partial {
			if l.partial[i].msg == g {
				l.partial[i].msg, l.partial[i].x = nil, x
			}
		}
	} else {
		m.received(x)
	}
	m.putMsg(g)
}

// arriveSeg takes a further segment.
func (m *Machine) arriveSeg(l *Link, pkt []byte) {
	first, off, data := get32(pkt[offFirst:]), get64(pkt[offTotal:]), pkt[headLen:]
	for i := range l.partial {
		part := &l.partial[i]
		if part.first != first {
			continue
		}
		done := false
		switch {
		case part.x != nil:
			x := part.x
			if off < uint64(len(x.Buf)) {
				copy(x.Buf[off:], data)
			}
			x.filled += len(data)
			if done = x.filled >= x.total; done {
				m.received(x)
			}
		case part.msg != nil:
			g := part.msg
			if off > uint64(len(g.data)) {
				m.broken(l, "a segment lies outside its message")
				return
			}
			g.filled += copy(g.data[off:], data)
			done = g.filled >= g.Total
		default:
			return // its receive was aborted; the rest is dropped
		}
		if done {
			l.partial = append(l.partial[:i], l.partial[i+1:]...)
		}
		return
	}
	m.broken(l, "a segment came without the start of its message")
}

// received ends a receive whose data has all come.
func (m *Machine) received(x *Xfer) {
	x.Len = x.total
	if x.total > len(x.Buf) {
		x.Len = len(x.Buf)
		x.Err = ErrTruncated
	}
	m.complete(x)
}

func (m *Machine) emitACK(l *Link, handle uint64) {
	wr := m.packet(l)
	m.control(wr, l, kindACK, handle, 0, 0)
}

// consume counts eager bytes that have left the receiver's keeping, and tells
// the sender now and then.
func (m *Machine) consume(l *Link, n int) {
	l.consumed += int64(n) + eagerCharge
	if l.consumed >= m.cfg.Credit/4 {
		wr := m.packet(l)
		m.control(wr, l, kindCredit, 0, 0, uint64(l.consumed))
		l.consumed = 0
	}
}
