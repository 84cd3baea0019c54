package p2p

// Outgoing packets and work requests. The elements of Out.WR are reused: packet, request
// and their callers set every field.

import "github.com/muster-mpi/muster/rdma"

// packet adds a work request for a packet on l; the caller sets the head, its length,
// Body and ID.
func (m *Machine) packet(l *Link) *rdma.SendWR {
	wr := m.request(l)
	wr.Op, wr.Flags = rdma.OpSend, rdma.Inline
	wr.Remote, wr.RKey, wr.LKey = 0, 0, 0
	l.sendSeq++
	return wr
}

func (m *Machine) request(l *Link) *rdma.SendWR {
	o := &m.Out
	n := len(o.WR)
	if n == cap(o.WR) {
		o.WR = append(o.WR, rdma.SendWR{})
	} else {
		o.WR = o.WR[:n+1] // a used element: the caller sets every field
	}
	o.Link = append(o.Link, l)
	wr := &o.WR[n]
	wr.Peer = l.Peer
	return wr
}

// control fills in a packet without data.
func (m *Machine) control(wr *rdma.SendWR, l *Link, kind packetKind, handle, second, n uint64) {
	m.packets[kind]++
	h := wr.Head[:]
	put64(h[offKind:], uint64(kind)|uint64(l.sendSeq-1)<<32)
	put64(h[offHandle:], handle)
	put64(h[offPeer:], second)
	put64(h[offTotal:], n)
	wr.HeadLen, wr.Body, wr.ID = headLen, rdma.Mem{}, 0
	l.Stats.ControlBytes += headLen
}

// lengthen extends the head of a control packet.
func (l *Link) lengthen(wr *rdma.SendWR, head uint16) {
	l.Stats.ControlBytes += uint64(head - headLen)
	wr.HeadLen = head
}

// emitRTS announces a message; first and second depend on its protocol.
func (m *Machine) emitRTS(x *Xfer, proto uint8, first, second uint64) {
	l := x.Link
	l.Stats.ByProtocol[proto]++
	m.sizes.add(proto, len(x.Buf))
	l.announce(envelopeKey(x.Ctx, x.Tag))
	l.Stats.BytesSent += uint64(len(x.Buf))
	x.stage = stageRTS
	m.reportStep(x, StepRTS)
	wr := m.packet(l)
	m.control(wr, l, kindRTS, uint64(x.Ctx)|uint64(uint32(x.Source))<<32, uint64(uint32(x.Tag))|uint64(m.Sign)<<32, uint64(len(x.Buf)))
	wr.Head[offProto], wr.Head[offVote] = proto, m.Vote
	put64(wr.Head[offExtra:], x.handle)
	put64(wr.Head[offAddr:], first)
	put64(wr.Head[offKey:], second)
	l.lengthen(wr, headRTS)
}

func (m *Machine) emitCTS(x *Xfer, n int) {
	wr := m.packet(x.Link)
	m.control(wr, x.Link, kindCTS, x.peer, x.handle, uint64(n))
	put64(wr.Head[offCTSAddr:], x.mr.Base)
	put64(wr.Head[offCTSKey:], x.mr.RKey)
	x.Link.lengthen(wr, headCTS)
}

func (m *Machine) emitFIN(l *Link, handle uint64, n int, status rdma.Status) {
	wr := m.packet(l)
	m.control(wr, l, kindFIN, handle, 0, uint64(n))
	wr.Head[offStatus] = byte(status)
}

// transfer adds a work request that transfers data for x and completes with its handle.
// cut.go splits it if it is too long for the device.
func (m *Machine) transfer(x *Xfer, op rdma.Op, body []byte, remote, key uint64) {
	m.transferWith(0, x, op, body, remote, key)
}

func (m *Machine) transferWith(flags rdma.Flags, x *Xfer, op rdma.Op, body []byte, remote, key uint64) {
	if most := x.Link.Attr.MaxTransfer; most > 0 && len(body) > most && (op == rdma.OpRead || op == rdma.OpWrite) {
		x.cut = &cutTransfer{body, remote, key, op, flags}
		body, remote = x.cut.next(x.Link.maxPiece())
	}
	m.postTransfer(flags, x, op, body, remote, key)
}

func (m *Machine) postTransfer(flags rdma.Flags, x *Xfer, op rdma.Op, body []byte, remote, key uint64) {
	wr := m.request(x.Link)
	wr.ID, wr.Op, wr.Flags, wr.HeadLen = x.handle, op, flags, 0
	wr.Body, wr.Remote, wr.RKey = rdma.MemOf(body), remote, key
	wr.LKey = x.mr.LKey
}
