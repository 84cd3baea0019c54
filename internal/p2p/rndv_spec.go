package p2p

// Speculative rendezvous (T1 4.2): a receive that is early offers its buffer, and
// a send that finds the offer writes at once, while the receiver computes.
//
//	sender                receiver
//	    ◀───────────────── register, RTR       (Offer, while the receive waits)
//	RTS ─────────────────▶ match: the receive that it names
//	RDMA Write ══════════▶
//	FIN ─────────────────▶
//
// Which message is an RTR for? Every message is announced by one packet, EAGER or
// RTS, and announcements are worked on in the order in which they were sent. So
// what the receiver has seen of a link is a beginning of what the sender has sent
// on it, and "the (ahead+1)-th message of this envelope after your message number
// seen" means the same on both sides, whatever is on its way between them. The
// sender counts which of its messages since then had the envelope: the RTR is for
// one that is gone already (stale), or for one that it can wait for.
//
// No late write can happen into a receive that an ordinary EAGER or RTS has met.
// The receive is the one that the RTR's message meets, so that packet announced
// the RTR's message, and the sender did not use the RTR for it. Either the RTR was
// there: announce took it off the list. Or it came later: it was counted as stale.
// In both cases nothing can use it any more.

import "github.com/muster-mpi/muster/rdma"

const (
	// recentLen is how many messages a sender remembers. An RTR that was longer
	// on its way than that is dropped.
	recentLen = 64
	// maxOffers bounds the RTRs of a link that are open, and what a sender keeps.
	maxOffers = 16
	// maxAhead bounds the receives that an RTR counts, which are walked over.
	maxAhead = 64
)

// offer is an RTR at the sender.
type offer struct {
	key    uint64 // envelope
	skip   int    // messages of the envelope that come before the one it is for
	length int
	handle uint64 // of the receive
	addr   uint64
	rkey   uint64
}

// envelopeKey names an envelope on a link: a rank has one number in a context, so
// the source need not be in it.
func envelopeKey(ctx uint32, tag int32) uint64 { return uint64(ctx)<<32 | uint64(uint32(tag)) }

type rndvSpec struct{}

func (rndvSpec) Name() string { return "rndv_spec" }

// Probe gives nothing: costs do not matter when an RTR is at hand.
func (rndvSpec) Probe(Key, *Link) []Range { return nil }

// Offer tells the sender of a receive where its data should go, if the receive
// waits for a message that will come by rendezvous, by its own length, and if it
// is certain which one that is. It may be called at any time while the receive
// waits. Nothing depends on it.
func (m *Machine) Offer(x *Xfer) { m.offer(x, false) }

// offer is Offer; blocking says that this rank does nothing but wait for the message.
func (m *Machine) offer(x *Xfer, blocking bool) {
	l, e := x.Link, x.entry
	if x.stage != stagePosted || l == nil || e.src == AnySource || e.tag == AnyTag || !l.Open || l.offered == maxOffers {
		return
	}
	if from, offers := m.offersFrom(l, blocking); !offers || len(x.Buf) < from {
		return
	}
	// The count must stay right until the message has come. A receive with a
	// wildcard before this one may take a message or not (T1 fig. 4.9), and one
	// that is being cancelled may be there or not.
	if e.cancels > 0 || m.match.wildBefore(x) {
		return
	}
	ahead := 0 // receives that sent no RTR count too
	for y := x.prev; y != nil; y = y.prev {
		if ahead++; ahead > maxAhead {
			return
		}
	}
	if !l.device.mayExpose() {
		return // the sender will ask
	}
	if !e.history.allow(&m.specRule) {
		l.Stats.RTRStopped++
		return
	}
	rights := rdma.RemoteWrite
	if m.cfg.Speculate != "always" {
		rights |= rdma.Assisted // if this rank waits instead of computing, it takes part in the copy
	}
	mr, err := m.mem.Register(l, x.Buf, rights)
	if err != nil {
		return // the sender will ask; that needs less, and reports if it fails
	}
	x.mr, x.hasMR = mr, true
	x.exposed()
	x.stage, x.proto = stageReady, protoSpec
	l.offered++
	l.Stats.RTRSent++
	wr := m.packet(l)
	m.control(wr, l, kindRTR, uint64(e.ctx)|uint64(uint32(e.src))<<32,
		uint64(uint32(e.tag))|uint64(uint32(l.Stats.Received))<<32, uint64(len(x.Buf)))
	wr.Head[offAhead] = byte(ahead)
	put64(wr.Head[offExtra:], x.handle)
	put64(wr.Head[offAddr:], mr.Base)
	put64(wr.Head[offKey:], mr.RKey)
	l.lengthen(wr, headRTS)
}

// OffersFrom is the length of the shortest buffer that is offered on a link, and
// whether any is.
func (m *Machine) OffersFrom(l *Link) (int, bool) { return m.offersFrom(l, false) }

func (m *Machine) offersFrom(l *Link, blocking bool) (int, bool) {
	if m.specRule.never || !l.Attr.Ops.Has(rdma.OpWrite) || m.cfg.Speculate == "" && l.Attr.RemoteCPU && !blocking {
		return 0, false // with RemoteCPU nothing would land while this rank computes
	}
	return max(l.eagerMax, 0) + 1, true
}

// arriveRTR keeps an RTR for the message that it is for, unless that is gone.
func (m *Machine) arriveRTR(l *Link, pkt []byte) {
	if !l.Attr.Ops.Has(rdma.OpWrite) {
		m.broken(l, "it offers a buffer to write to, but the device here has no write")
		return
	}
	o := offer{key: envelopeKey(get32(pkt[offContext:]), int32(get32(pkt[offTag:]))),
		skip: int(get16(pkt[offAhead:])), length: int(get64(pkt[offTotal:])),
		handle: get64(pkt[offExtra:]), addr: get64(pkt[offAddr:]), rkey: get64(pkt[offKey:])}
	// Messages that have crossed the RTR. The number does not wrap around unseen:
	// 2³² messages cannot be under way, they need credit or an operation each.
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
		m.broken(l, "it offers more buffers than it may")
	default:
		l.offers = append(l.offers, o)
		l.setOneMax()
	}
}

// recent is the envelopes of the latest messages on a link, that of message n at n mod
// recentLen. Most peers never offer a buffer and need none. It begins with the first
// offer; one that has crossed messages from before is stale, as one that was under way
// for too long.
type recent struct {
	since uint64
	keys  [recentLen]uint64
}

// announce counts a message that is about to be announced, and remembers its
// envelope. It stands wherever an EAGER or RTS packet is made, not where a send is
// called: a send that fails before its packet is made is no message.
func (l *Link) announce(key uint64) {
	if l.recent != nil {
		l.recent.keys[l.Stats.Sent%recentLen] = key
	}
	l.Stats.Sent++
	if len(l.offers) > 0 {
		l.passOffers(key)
	}
}

// passOffers brings the RTRs of an envelope one message forward. The one for this
// message leaves, used or not: a message that is eager (T1 fig. 4.10) or too long
// has no use for it, and no later one may use it.
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

// setOneMax lets SendOne serve a link that has no offers to look at, and no ring.
func (l *Link) setOneMax() {
	l.oneMax = min(l.nowMax, l.segment)
	if len(l.offers) > 0 || l.out != nil {
		l.oneMax = -1
	}
}

// useOffer makes a send that would be a rendezvous a speculative one, if the
// receiver has offered the buffer for it. A message that is longer than the buffer
// goes by RTS, so that the receiver sees how long it is.
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
		return // nothing was announced, so the offer stands for the next
	}
	l.Stats.SpecSent++
	m.emitRTS(x, protoSpec, x.peer, 0)
	x.stage = stageTransfer
	// The sender may go on to compute, as the receiver does.
	m.transferWith(rdma.Synchronous, x, rdma.OpWrite, x.Buf, x.remote, x.rkey)
}

// Written reports whether a send has found an RTR and its write is under way.
func (x *Xfer) Written() bool { return x.proto == protoSpec && x.stage == stageTransfer }

// arriveSpec takes an RTS that names the receive whose RTR was used. It must be
// the one that matching gives the message to.
func (m *Machine) arriveSpec(l *Link, p pattern, g *Msg, named uint64) {
	x := m.match.firstPosted(p)
	if x == nil || x.handle != named || x.stage != stageReady || x.Link != l || g.Total > len(x.Buf) {
		m.putMsg(g)
		m.broken(l, "it writes into a buffer that was not offered for this message")
		return
	}
	m.unpost(x, offerUsed)
	g.remote = 0
	m.matched(x, l, g)
	m.putMsg(g)
}

func (rndvSpec) Step(m *Machine, x *Xfer, ev Event) bool {
	switch {
	case ev.Kind == EvMatched:
		x.stage = stageFill
	case ev.Kind == EvDone && x.stage == stageTransfer:
		// The receive is known to be matched, so a synchronous send ends too.
		m.wrote(x, ev.Status)
	case ev.Kind == EvFIN && x.stage == stageFill:
		m.filled(x, ev.Status)
	default:
		return false
	}
	return true
}

func (rndvSpec) Abort(m *Machine, x *Xfer) { m.release(x) }

// fate is what becomes of an RTR, as the receiver sees it.
type fate uint8

const (
	offerUsed    fate = iota // a speculative RTS has named it
	offerWasted              // its message came by another way
	offerRevoked             // the sender will not use it
	offerDropped             // the link or the job has failed
)

// takePosted finds and removes the receive for a message that came by an ordinary
// packet, or nil.
func (m *Machine) takePosted(p pattern) *Xfer {
	x := m.match.firstPosted(p)
	if x != nil {
		m.unpost(x, offerWasted)
	}
	return x
}

// unpost takes a receive out of matching. If its RTR is out, this is its fate.
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

// closeOffer ends an RTR of ours. The memory stays registered only if it is used.
func (m *Machine) closeOffer(x *Xfer, f fate) {
	l := x.Link
	l.offered--
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
