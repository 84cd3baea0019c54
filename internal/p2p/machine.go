package p2p

// The calls of the engine.

import (
	"errors"
	"hash/crc32"

	"github.com/muster-mpi/muster/rdma"
)

// Config configures a Machine. The zero value is usable.
type Config struct {
	// EagerLimit is the largest message that may be sent before the receiver asks for
	// it, whatever the costs. Default 64 KiB: more would make a receiver hold much
	// memory for messages it receives late. Negative: none.
	EagerLimit int
	// Rendezvous forces one protocol for large messages, by one of the names of function
	// Rendezvous. By default, and on devices that do not support it, the cost decides.
	Rendezvous string
	// Speculate selects whether a waiting receive offers its buffer to the sender (RTR):
	// "auto" while the sender uses most of the offers, "always", or "never". Default:
	// auto on devices that transfer data without the help of either CPU, else never
	// (decision 016).
	Speculate string
	// Credit is the number of bytes of unexpected messages that a receiver may have to
	// hold for one sender. Default 16 MiB. Beyond it sends use a rendezvous.
	Credit int64
	// Senders, if not 0, is the number of possible senders. Credit is then shared by all
	// of them, but for one message of some bytes each (credit.go). All ranks need the same value.
	Senders int

	// TimeSlice is the delay in nanoseconds before a peer gets a core to answer, where
	// ranks share cores. It is added to the cost of a rendezvous. A device that accounts
	// for it (Attr.Oversubscribed) includes it in its costs.
	TimeSlice float64

	// Sizes counts the sent messages; nil: the machine has its own. The machines of a
	// simulation share one, because it is most of the memory of an idle machine.
	Sizes *Sizes

	leastCredit int64 // overrides the default, for tests
}

// Memory registers buffers with the device of a link. The engine implements it.
type Memory interface {
	Register(l *Link, mem []byte, acc rdma.Access) (rdma.MR, error)
	Deregister(l *Link, mr rdma.MR)
}

// Out lists the actions the machine requests. The engine empties it after every call; the
// slices are reused.
type Out struct {
	WR    []rdma.SendWR
	Link  []*Link // the link of each work request
	Done  []*Xfer // completed operations that have an Owner
	Notes []Note  // notes that have arrived
}

// Machine is the point-to-point state of one rank.
type Machine struct {
	Out Out
	// Sign is the signature of the messages sent next, 0 outside of collectives. A receive
	// compares it with its own (Xfer.Sign).
	Sign uint32
	// Vote accompanies the messages sent next, 0 outside of collectives. A receive gets it
	// in Xfer.Vote.
	Vote       uint8
	cfg        Config
	mem        Memory
	creditPool creditPool
	match      matcher
	pool
	specRule specRule
	sizes    *Sizes
	packets  [kindCount]uint64 // sent, by kind; EAGER is counted by links
	crc      *crc32.Table      // CRC of ring slots, made on first use

	sources Sources // nil: not used
	orphans []orphan
	dropped map[uint32]error // contexts that were given up, and the reason; nil: none
	drain   Waiter           // owner of the receives that drain such contexts
	short   [1]rdma.SendWR
	one     [1]rdma.SendWR
	devices []*device

	// observe, if set, is called with every event before its operation handles it, for
	// tests and traces. The fast path of a short message does not call it.
	observe func(x *Xfer, ev Event)
	watch   func(x *Xfer, step WatchedStep) // nil: nobody watches (watch.go)
	ends    []watchedEnd                    // by operation; nil: nobody watches

	starved []*Xfer // matched receives that wait for a registration (register.go)
}

// The reasons why an operation can fail. Package mpi adds the peer and the device.
var (
	ErrTruncated = errors.New("message is longer than the receive buffer")
	ErrTransport = errors.New("transport failed")
	ErrProtocol  = errors.New("peer violates the protocol")
)

// New returns a machine.
func New(cfg Config, mem Memory) *Machine {
	if cfg.EagerLimit == 0 {
		cfg.EagerLimit = 64 << 10
	}
	if cfg.Credit == 0 {
		cfg.Credit = 16 << 20
	}
	if cfg.Sizes == nil {
		cfg.Sizes = new(Sizes)
	}
	return &Machine{cfg: cfg, mem: mem, sizes: cfg.Sizes, creditPool: newCreditPool(&cfg), specRule: newSpecRule(cfg.Speculate),
		one: [1]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: headLen}}}
}

// SetUp prepares a link created by the engine.
func (m *Machine) SetUp(l *Link) { l.setUp(m) }

// New returns an operation to fill in and pass to Send, Recv or Claim, once.
func (m *Machine) New() *Xfer { return m.get() }

// Free returns an operation to the pool that is done, or was never started.
func (m *Machine) Free(x *Xfer) { m.put(x) }

// SendOne is the fast path of Send and Isend, for a standard-mode message that fits into
// one packet and needs no state. It returns a work request with the packet, valid until
// the next call; the send completes when the device has accepted it. nil means that the
// caller must use SendNow or Send. Out must be empty, as it is between calls: its
// requests precede this one.
func (m *Machine) SendOne(l *Link, ctx uint32, src, tag int32, buf []byte) *[1]rdma.SendWR {
	n := len(buf)
	if n > l.oneMax || l.credit < int64(n)+eagerCharge {
		return nil
	}
	l.credit -= int64(n) + eagerCharge
	l.Stats.ByProtocol[protoEager]++
	m.sizes.add(protoEager, n)
	if l.recent != nil { // Link.announce, without offers
		l.recent.keys[l.Stats.Sent%recentLen] = envelopeKey(ctx, tag)
	}
	l.Stats.Sent++
	l.Stats.BytesSent += uint64(n)
	wr := &m.one
	wr[0].Peer = l.Peer
	h := &wr[0].Head
	put64(h[offKind:], uint64(kindEager)|uint64(m.Vote)<<(8*offVote)|uint64(l.sendSeq)<<32)
	put64(h[offContext:], uint64(ctx)|uint64(uint32(src))<<32)
	put64(h[offTag:], uint64(uint32(tag))|uint64(m.Sign)<<32)
	put64(h[offTotal:], uint64(n))
	wr[0].Body = rdma.MemOf(buf)
	l.sendSeq++
	return wr
}

// SendNow is SendOne for messages of several packets, which it puts into Out.
func (m *Machine) SendNow(l *Link, ctx uint32, src, tag int32, buf []byte) bool {
	if len(buf) > l.nowMax || l.credit < int64(len(buf))+eagerCharge {
		return false
	}
	m.emitEager(l, ctx, src, tag, buf, 0, false)
	return true
}

// Send starts a send. Buf, Link, Source, Tag, Ctx and Mode are set.
func (m *Machine) Send(x *Xfer) {
	m.send(x, x.Link.choose(len(x.Buf)))
}

// SendAnnounced is Send by a rendezvous, so that the receiver decides when the data is sent.
func (m *Machine) SendAnnounced(x *Xfer) { m.send(x, x.Link.chooseRendezvous(len(x.Buf))) }

func (m *Machine) send(x *Xfer, proto uint8) {
	x.Send = true
	l := x.Link
	if l.Err != nil {
		m.fail(x, l.Err)
		return
	}
	x.total, x.proto = len(x.Buf), proto
	if x.proto == protoEager && l.credit < int64(x.total)+eagerCharge {
		l.Stats.NoCredit++
		x.proto = l.chooseRendezvous(x.total)
	}
	if len(l.offers) > 0 && x.proto != protoEager {
		x.useOffer()
	}
	protocols[x.proto].Begin(m, x)
}

// Recv starts a receive. Buf, Source, Tag and Ctx are set, and Link unless the source is
// AnySource.
func (m *Machine) Recv(x *Xfer) {
	p := pattern{x.Ctx, x.Source, x.Tag}
	if m.match.waiting > 0 {
		if g := m.match.lookMsg(p); g != nil {
			m.match.takeMsg(g)
			m.Claim(x, g)
			return
		}
	}
	if x.Link != nil && x.Link.Err != nil {
		m.fail(x, x.Link.Err)
		return
	}
	if m.dropped != nil && m.dropped[x.Ctx] != nil {
		m.fail(x, m.dropped[x.Ctx])
		return
	}
	x.stage = stagePosted
	m.match.post(x, m.match.entry(p))
}

// Claim passes a message that was taken out of matching to a receive.
func (m *Machine) Claim(x *Xfer, g *Msg) {
	switch {
	case g.Link.Err != nil && !g.whole():
		x.Source, x.Tag, x.Link = g.Source, g.Tag, g.Link
		m.putMsg(g)
		m.fail(x, x.Link.Err)
	case g.rts:
		m.matchRTS(x, g.Link, g)
		m.putMsg(g)
	default:
		m.claimEager(x, g)
	}
}

// Look returns the first message that a receive would get, without taking it. It is valid
// until the next call.
func (m *Machine) Look(ctx uint32, src, tag int32) *Msg {
	return m.match.lookMsg(pattern{ctx, src, tag})
}

// nearest is how many messages Near looks at.
const nearest = 100

// FindNear returns a message that has arrived and that a receive of this source and tag does not
// get, because one of the two differs. It is for reports of waits.
func (m *Machine) FindNear(ctx uint32, src, tag int32) *Msg {
	n := 0
	for g := m.match.arrived.head; g != nil && n < nearest; g = g.nodes[listArrived].next {
		if g.Ctx == ctx && (g.Source == src || src == AnySource || g.Tag == tag) {
			return g
		}
		n++
	}
	return nil
}

// Take returns such a message and takes it out of matching, for Claim later.
func (m *Machine) Take(ctx uint32, src, tag int32) *Msg {
	g := m.Look(ctx, src, tag)
	if g != nil {
		m.match.takeMsg(g)
	}
	return g
}

// CountUnexpected returns the number of messages that wait for a receive.
func (m *Machine) CountUnexpected() int { return m.match.waiting }

// HandleCompletion handles the completion of a work request.
func (m *Machine) HandleCompletion(id uint64, status rdma.Status, n int) {
	if x := m.find(id); x != nil && x.stage != stageDone {
		if x.cut != nil && m.resume(x, status) {
			return
		}
		m.advance(x, Event{Kind: EvDone, Status: status, Len: n})
	} else if len(m.orphans) > 0 {
		m.reclaimOrphan(id)
	}
}

// HandleTaken is called when the device has copied an inline request that has an ID.
func (m *Machine) HandleTaken(id uint64) {
	if x := m.find(id); x != nil && x.stage != stageDone {
		m.advance(x, Event{Kind: EvTaken})
	}
}

// advance passes an event to an operation's protocol. It returns false if the event is
// invalid in the operation's stage.
func (m *Machine) advance(x *Xfer, ev Event) bool {
	if m.observe != nil {
		m.observe(x, ev)
	}
	return protocols[x.proto].Step(m, x, ev)
}

// Adopt creates an operation for a SendNow whose packets the device has not accepted yet.
// It completes when Taken is called with its handle.
func (m *Machine) Adopt(l *Link) *Xfer {
	x := m.get()
	x.Send, x.Link, x.proto, x.stage = true, l, protoEager, stagePost
	return x
}

// Refuse completes an operation that could not be started, or was adopted. The engine
// also completes operations with it that represent something of its own and were never
// passed to Send or Recv; err is nil for success.
func (m *Machine) Refuse(x *Xfer, err error) {
	x.Err = err
	m.complete(x)
}

func (m *Machine) complete(x *Xfer) {
	x.stage = stageDone
	if m.ends != nil {
		m.reportEnd(x)
	}
	if x.Owner != nil {
		m.Out.Done = append(m.Out.Done, x)
	}
}
