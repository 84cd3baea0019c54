package p2p

// The source of an eager message's bytes (T1 5.3.1). On a device that needs local memory
// registered, a short message is copied into permanently registered memory: that is what
// Inline does. If the user's buffer is used so often that registering it pays, the device
// gathers the data from there and the head from the request:
//
//	SendShort   calls Sources, which counts the use
//	   rare     Inline, like SendOne: the send completes when the device has accepted it
//	   frequent the request carries the buffer's key, and an operation waits for its
//	            completion
//
// The rest is the same as for other eager messages (eager.go). What SendShort does not
// handle goes to eager.Begin, which calls Sources too: synchronous sends. To a peer with a
// ring, a message that fits a slot is written there from the buffer
// (eager_ring_direct.go), a longer one goes by the receive queue.
//
// SendOne and SendNow do not call Sources. Collectives use SendShort where the device
// reports by itself that it has finished with a buffer (engine/sources.go).

import "github.com/muster-mpi/muster/rdma"

// Sources decides which buffers are used without a copy. The engine implements it.
type Sources interface {
	// Source counts a use of mem. If the message should be sent from there, it returns a
	// registration, which Memory.Deregister releases. waits reports that the caller waits
	// for the send to complete.
	Source(l *Link, mem []byte, waits bool) (mr rdma.MR, from bool)
	// TransferBuffer counts a use of mem by a put or a get. It returns a registration if
	// the device should access mem directly, else a Stage, which ReleaseStage releases, or
	// neither if no Stage is free.
	TransferBuffer(l *Link, mem []byte) (mr rdma.MR, direct bool, via *Stage)
	ReleaseStage(l *Link, via *Stage)
}

// UseSources enables sending without a copy on links for which SourceFrom was called.
func (m *Machine) UseSources(s Sources) { m.sources = s }

// SourceFrom sets the least message length on a link for which Sources is used.
func (m *Machine) SourceFrom(l *Link, least int) {
	l.sourceMin = max(least, 1)
}

// Sourced reports whether Sources is used for n bytes.
func (l *Link) Sourced(n int) bool { return n >= l.sourceMin }

// SendShort is SendOne for messages that may be sent without a copy. If so, x is the
// operation, which completes when the device has finished with the buffer; else x is nil,
// and the send completes when the device has accepted the request. The request is valid
// until the next call; nil means that the caller must use Send.
func (m *Machine) SendShort(l *Link, ctx uint32, src, tag int32, buf []byte, waits bool) (wr *[1]rdma.SendWR, x *Xfer) {
	n := len(buf)
	if n > l.eagerMax || n > l.segment || len(l.offers) > 0 || l.credit < int64(n)+eagerCharge {
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
	put64(h[offTag:], uint64(uint32(tag))|uint64(m.Sign)<<32)
	put64(h[offTotal:], uint64(n))
	l.sendSeq++
	if !from {
		return wr, nil
	}
	x = m.get()
	x.Send, x.Link, x.proto, x.stage, x.Buf, x.total = true, l, protoEager, stagePost, buf, n
	x.mr, x.lease = mr, leaseUncounted
	one.ID, one.Flags, one.LKey = x.handle, 0, mr.LKey
	return wr, x
}

// useSource changes the packet of an eager message that was just emitted to be sent without
// a copy, if that pays.
func (m *Machine) useSource(x *Xfer) {
	l := x.Link
	if len(x.Buf) < l.sourceMin || len(x.Buf) > l.segment {
		return
	}
	mr, from := m.sources.Source(l, x.Buf, false)
	if !from {
		return
	}
	x.mr, x.lease = mr, leaseUncounted
	wr := &m.Out.WR[len(m.Out.WR)-1]
	wr.Flags, wr.LKey = 0, mr.LKey
}
