package p2p

// Speculative rendezvous (T1 4.2): an early receive offers its buffer, and a send that
// finds the offer writes at once, while the receiver computes.
//
//	sender                receiver
//	    ◀───────────────── register, RTR       (Offer, while the receive waits)
//	RTS ─────────────────▶ match: the receive that it names
//	RDMA Write ══════════▶
//	FIN ─────────────────▶
//
// Which message is an RTR for? Every message is announced by one packet, EAGER or RTS, and
// announcements are processed in the order in which they were sent. So the announcements
// that the receiver has processed are a prefix of those that the sender has sent, and
// "the (ahead+1)-th message of this envelope after your message number seen" means the
// same on both sides, whatever is in flight between them. The sender counts which of its
// messages since then had the envelope: the RTR is for a message that was already sent
// (stale), or for one that is still to come.
//
// No late write can reach a receive that an ordinary EAGER or RTS has matched. That packet
// announced the RTR's message, because both match the same receive, so the sender did not
// use the RTR for it. Either the RTR had arrived: announce removed it from the list. Or it
// arrived later: it was counted as stale. In both cases nothing can use it any more.

import "github.com/muster-mpi/muster/rdma"

const (
	// recentLen is the number of messages a sender remembers. An RTR that was in flight for
	// longer is dropped.
	recentLen = 64
	// maxOffers bounds the open RTRs of a link, and the list at the sender.
	maxOffers = 16
	// maxAhead bounds the receives ahead of an RTR, which offer must count.
	maxAhead = 64
)

// offer is an RTR at the sender.
type offer struct {
	key    uint64 // envelope
	skip   int    // messages of the envelope before the one it is for
	length int
	handle uint64 // of the receive
	addr   uint64
	rkey   uint64
}

// envelopeKey identifies an envelope on a link. A peer has one rank in a context, so the
// source is not part of it.
func envelopeKey(ctx uint32, tag int32) uint64 { return uint64(ctx)<<32 | uint64(uint32(tag)) }

type rndvSpec struct{}

// Probe returns nil: an available RTR is used regardless of costs.
func (rndvSpec) Probe(Key, *Link) []Range { return nil }

// Offer sends the sender of a receive the address of its buffer, if the receive waits for
// a message that will use a rendezvous, judged by its length, and if it is certain which
// message that is. It may be called at any time while the receive waits; it is optional.
func (m *Machine) Offer(x *Xfer) { m.offer(x, false) }

// offer implements Offer. blocking reports that this rank only waits for the message.
func (m *Machine) offer(x *Xfer, blocking bool) {
	l, e := x.Link, x.entry
	if x.stage != stagePosted || l == nil || e.src == AnySource || e.tag == AnyTag || !l.Open || l.offered == maxOffers {
		return
	}
	if from, offers := m.offersFrom(l, blocking); !offers || len(x.Buf) < from {
		return
	}
	// The count must stay valid until the message arrives. An earlier receive with a
	// wildcard may or may not take a message (T1 fig. 4.9), and one that is being
	// cancelled may or may not remain.
	if e.cancels > 0 || m.match.wildBefore(x) {
		return
	}
	ahead := 0 // includes receives without an RTR
	for y := x.prev; y != nil; y = y.prev {
		if ahead++; ahead > maxAhead {
			return
		}
	}
	if !l.device.mayExpose() {
		return // the sender will use an RTS
	}
	if !e.history.allow(&m.specRule) {
		l.Stats.RTRStopped++
		return
	}
	rights := rdma.RemoteWrite
	if m.cfg.Speculate != "always" {
		rights |= rdma.Assisted // if this rank waits instead of computing, it helps with the copy
	}
	mr, err := m.mem.Register(l, x.Buf, rights)
	if err != nil {
		return // the sender will use an RTS, which needs less and reports failures
	}
	x.mr = mr
	x.countExposed()
	x.stage, x.proto = stageReady, protoSpec
	l.offered++
	l.Stats.RTRSent++
	m.reportStep(x, StepRTR)
	wr := m.packet(l)
	m.control(wr, l, kindRTR, uint64(e.ctx)|uint64(uint32(e.src))<<32,
		uint64(uint32(e.tag))|uint64(uint32(l.Stats.Received))<<32, uint64(len(x.Buf)))
	wr.Head[offAhead] = byte(ahead)
	put64(wr.Head[offExtra:], x.handle)
	put64(wr.Head[offAddr:], mr.Base)
	put64(wr.Head[offKey:], mr.RKey)
	l.lengthen(wr, headRTS)
}

// OffersFrom returns the length of the shortest buffer that is offered on a link, and
// whether any is.
func (m *Machine) OffersFrom(l *Link) (int, bool) { return m.offersFrom(l, false) }

func (m *Machine) offersFrom(l *Link, blocking bool) (int, bool) {
	if m.specRule.never || !l.Attr.Ops.Has(rdma.OpWrite) || m.cfg.Speculate == "" && l.Attr.RemoteCPU && !blocking {
		return 0, false // with RemoteCPU no data would arrive while this rank computes
	}
	return max(l.eagerMax, 0) + 1, true
}

// arriveRTR keeps an RTR for its message, unless that has been sent already.
func (m *Machine) arriveRTR(l *Link, pkt []byte) {
	if !l.Attr.Ops.Has(rdma.OpWrite) {
		m.failPeer(l, "it offers a buffer to write to, but the device here has no write")
		return
	}
	o := offer{key: envelopeKey(get32(pkt[offContext:]), int32(get32(pkt[offTag:]))),
		skip: int(get16(pkt[offAhead:])), length: int(get64(pkt[offTotal:])),
		handle: get64(pkt[offExtra:]), addr: get64(pkt[offAddr:]), rkey: get64(pkt[offKey:])}
	// Messages that crossed the RTR. The number cannot wrap around: 2³² messages cannot
	// be in flight, because each needs credit or an operation.
	crossed := uint32(l.Stats.Sent) - get32(pkt[offSeen:])
	first := l.Stats.Sent - uint64(crossed)
	if l.recent == nil {
		l.recent = &recent{since: l.Stats.Sent}
	}
	if crossed > recentLen || first < l.recent.since {
		l.Stats.RTRStale++
		return
	}
	for i := first; i != l.Stats.Sent; i++ {
		if l.recent.keys[i%recentLen] == o.key {
			o.skip--
		}
	}
	switch {
	case o.skip < 0:
		l.Stats.RTRStale++
	case len(l.offers) == maxOffers:
		m.failPeer(l, "it offers more buffers than it may")
	default:
		l.offers = append(l.offers, o)
		l.setOneMax()
	}
}

// recent holds the envelopes of the latest messages on a link, that of message n at index
// n mod recentLen. It is allocated with the first offer, since most peers never offer a
// buffer; an offer that crossed earlier messages is stale, like one that was in flight for
// too long. The C front writes keys too (package direct).
type recent struct {
	since uint64
	keys  [recentLen]uint64
}

// announce counts a message that is about to be announced, and records its envelope. It is
// called where an EAGER or RTS packet is created, not where a send is called: a send that
// fails before its packet is created is no message.
func (l *Link) announce(key uint64) {
	if l.recent != nil {
		l.recent.keys[l.Stats.Sent%recentLen] = key
	}
	l.Stats.Sent++
	if len(l.offers) > 0 {
		l.passOffers(key)
	}
}

// passOffers advances the RTRs of an envelope by one message. It removes the one for this
// message, used or not: an eager message (T1 fig. 4.10) or one that is too long cannot use
// it, and no later message may.
func (l *Link) passOffers(key uint64) {
	for i := 0; i < len(l.offers); i++ {
		if o := &l.offers[i]; o.key == key {
			if o.skip == 0 {
				l.dropOffer(i)
				i--
				continue
			}
			o.skip--
		}
	}
}

func (l *Link) dropOffer(i int) {
	l.offers = append(l.offers[:i], l.offers[i+1:]...)
	l.setOneMax()
}

// setOneMax enables SendOne for a link without offers and without a ring.
func (l *Link) setOneMax() {
	l.oneMax = min(l.nowMax, l.segment)
	if len(l.offers) > 0 || l.out != nil {
		l.oneMax = -1
	}
}

// useOffer turns a rendezvous into a speculative one if the receiver has offered the buffer
// for it. A message longer than the buffer uses an RTS, so that the receiver sees its
// length.
func (x *Xfer) useOffer() {
	key := envelopeKey(x.Ctx, x.Tag)
	for i := range x.Link.offers {
		o := &x.Link.offers[i]
		if o.key == key && o.skip == 0 && x.total > 0 && x.total <= o.length {
			x.proto = protoSpec
			x.peer, x.remote, x.rkey = o.handle, o.addr, o.rkey
			return
		}
	}
}

func (rndvSpec) Begin(m *Machine, x *Xfer) {
	l := x.Link
	if l.Attr.LocalKeys && !m.register(x, x.Buf, 0, false) {
		return // nothing was announced: the offer remains valid
	}
	l.Stats.SpecSent++
	m.emitRTS(x, protoSpec, x.peer, 0)
	x.stage = stageTransfer
	m.reportStep(x, StepTransfer)
	// The sender may compute next, like the receiver.
	m.transferWith(rdma.Synchronous, x, rdma.OpWrite, x.Buf, x.remote, x.rkey)
}

// Written reports whether a send has found an RTR and its write is pending.
func (x *Xfer) Written() bool { return x.proto == protoSpec && x.stage == stageTransfer }

// arriveSpec handles an RTS that names the receive whose RTR was used. Matching must assign
// the message to that receive.
func (m *Machine) arriveSpec(l *Link, p pattern, g *Msg, named uint64) {
	x := m.match.firstPosted(p)
	if x == nil || x.handle != named || x.stage != stageReady || x.Link != l || g.Total > len(x.Buf) {
		m.putMsg(g)
		m.failPeer(l, "it writes into a buffer that was not offered for this message")
		return
	}
	m.unpost(x, offerUsed)
	g.remote = 0
	m.matchRTS(x, l, g)
	m.putMsg(g)
}

func (rndvSpec) Step(m *Machine, x *Xfer, ev Event) bool {
	switch {
	case ev.Kind == EvMatched:
		x.stage = stageFill
	case ev.Kind == EvDone && x.stage == stageTransfer:
		// The receive has been matched, so a synchronous send completes too.
		m.wrote(x, ev.Status)
	case ev.Kind == EvFIN && x.stage == stageFill:
		m.finishFill(x, ev.Status)
	default:
		return false
	}
	return true
}

func (rndvSpec) Abort(m *Machine, x *Xfer) { m.release(x) }

// fate is the outcome of an RTR at the receiver.
type fate uint8

const (
	offerUsed    fate = iota // a speculative RTS has named it
	offerWasted              // its message used another protocol
	offerRevoked             // the sender will not use it
	offerDropped             // the link or the job has failed
)

// takePosted removes and returns the receive for a message announced by an ordinary packet,
// or nil.
func (m *Machine) takePosted(p pattern) *Xfer {
	x := m.match.firstPosted(p)
	if x != nil {
		m.unpost(x, offerWasted)
	}
	return x
}

// unpost removes a receive from matching. f is the outcome of its RTR, if open.
func (m *Machine) unpost(x *Xfer, f fate) {
	if x.stage == stageReady {
		m.closeOffer(x, f)
	}
	if x.cancelling {
		x.cancelling = false
		x.entry.cancels--
	}
	m.match.unpost(x)
}

// closeOffer ends an RTR of this rank. The memory stays registered only if it is used.
func (m *Machine) closeOffer(x *Xfer, f fate) {
	l := x.Link
	l.offered--
	if f != offerUsed {
		m.reportStep(x, StepUnused)
	}
	x.stage, x.proto = stagePosted, protoEager
	switch f {
	case offerUsed:
		l.Stats.RTRUsed++
		x.entry.history.learn(&m.specRule, true)
		x.lease = leaseMatched
		l.device.exposed--
		l.device.matched++
		return
	case offerWasted:
		l.Stats.RTRWasted++
		x.entry.history.learn(&m.specRule, false)
	case offerRevoked:
		l.Stats.RTRRevoked++
	}
	m.release(x)
}
