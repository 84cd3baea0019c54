package p2p

// Where the device takes the bytes of an eager message from (T1 5.3.1). On a device that
// wants local memory registered, a short message is copied into memory that is so for
// good: that is what Inline does. If the user's buffer is used so often that registering
// it pays, the device takes the bytes from there, and the head from the request, as an
// adapter gathers them:
//
//	SendShort   asks Sources, which counts the use
//	   rarely   Inline, as SendOne does it: the send is over when the device has it
//	   often    the buffer's key goes with the request, and an operation waits for its end
//
// The rest of the road is that of eager messages (eager.go). What SendShort does not
// take comes to eager.Begin, which asks too: synchronous sends, peers with a ring. A ring
// takes copies alone, because a Write has no head to gather, so a message from the user's
// buffer goes by the receive queue.
//
// SendOne and SendNow do not ask. Collectives use them: a call may not end before the
// device is done with what it sent, and to wait for that costs more than the copy.

import "github.com/muster-mpi/muster/rdma"

// Sources knows which buffers are used often. The shell provides it.
type Sources interface {
	// Source counts a use of mem and gives a registration of it, which Deregister of
	// Memory takes back, if the message should be sent from there. waits says that the
	// caller waits for the end of the send.
	Source(l *Link, mem []byte, waits bool) (mr rdma.MR, from bool)
	// Place counts a use of mem by a put or a get. It gives a registration of it if the
	// device should use it where it is, else a Stage, which ReleaseStage takes back; neither, if
	// there is none left.
	TransferBuffer(l *Link, mem []byte) (mr rdma.MR, direct bool, via *Stage)
	ReleaseStage(l *Link, via *Stage)
}

// UseSources lets messages be sent from where they are on links for which SourceFrom was
// called.
func (m *Machine) UseSources(s Sources) { m.sources = s }

// SourceFrom says that for messages of so many bytes and more on a link Sources is asked.
func (m *Machine) SourceFrom(l *Link, least int) {
	l.sourceMin = max(least, 1)
}

// Sourced reports whether Sources is asked for n bytes.
func (l *Link) Sourced(n int) bool { return n >= l.sourceMin }

// SendShort is SendOne for messages that may be sent from where they are. If they are,
// x is the operation, which ends when the device is done with the buffer; else it is nil,
// and the send is over when the device has taken the request. The request is valid until
// the next call; nil means that Send must serve.
func (m *Machine) SendShort(l *Link, ctx uint32, src, tag int32, buf []byte, waits bool) (wr *[1]rdma.SendWR, x *Xfer) {
	n := len(buf)
	if n > l.eagerMax || n > l.segment || l.out != nil || len(l.offers) > 0 || l.credit < int64(n)+eagerCharge {
		return nil, nil
	}
	mr, from := m.sources.Source(l, buf, waits)
	l.credit -= int64(n) + eagerCharge
	l.Stats.ByProtocol[protoEager]++
	m.sizes.add(protoEager, n)
	l.announce(envelopeKey(ctx, tag))
	l.Stats.BytesSent += uint64(n)
	wr = &m.short
	one := &wr[0]
	one.Op, one.Peer, one.HeadLen = rdma.OpSend, l.Peer, headLen
	one.Body, one.Flags, one.ID, one.LKey = rdma.MemOf(buf), rdma.Inline, 0, 0
	h := &one.Head
	put64(h[offKind:], uint64(kindEager)|uint64(l.sendSeq)<<32)
	put64(h[offContext:], uint64(ctx)|uint64(uint32(src))<<32)
	put64(h[offTag:], uint64(uint32(tag)))
	put64(h[offTotal:], uint64(n))
	l.sendSeq++
	if !from {
		return wr, nil
	}
	x = m.get()
	x.Send, x.Link, x.proto, x.stage, x.Buf, x.total = true, l, protoEager, stagePost, buf, n
	x.mr, x.hasMR = mr, true
	one.ID, one.Flags, one.LKey = x.handle, 0, mr.LKey
	return wr, x
}

// sourced makes the packet of an eager message that was just emitted one that is sent from
// where it is, if that pays.
func (m *Machine) sourced(x *Xfer) {
	l := x.Link
	if len(x.Buf) < l.sourceMin || len(x.Buf) > l.segment {
		return
	}
	mr, from := m.sources.Source(l, x.Buf, false)
	if !from {
		return
	}
	x.mr, x.hasMR = mr, true
	wr := &m.Out.WR[len(m.Out.WR)-1]
	wr.Flags, wr.LKey = 0, mr.LKey
}
