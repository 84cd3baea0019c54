package dgram

import (
	"math"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The sending half of RD, for one peer. push queues a message. next returns the next
// segment that window and pacing permit, lost ones first. acknowledge (acknowledge.go)
// processes an ack and returns finished messages. expire handles timeouts, and wake
// returns when the next one is due.
//
// A segment is never copied here. It is identified by its message and offset, and each
// transmission reads the bytes from the user's memory, which belongs to the sender
// until the completion.

// never is a time that is not reached.
const never = time.Duration(math.MaxInt64)

// message is a posted message and its progress.
type message struct {
	following *message // next message to the same peer
	length    int      // total bytes
	cut       int      // bytes segmented so far
	id        uint64   // work request ID

	// Set and used by the device.
	role     role
	number   uint32 // MSN
	opcode   ddp.Opcode
	tag      ddp.Tag // of a tagged message; address is the tagged offset of its first byte
	address  uint64
	fault    ddp.Fault // of a response that refuses
	source   ddp.Tag   // of a Read response: the source region
	from     uint64
	inline   bool
	delayAck bool // nobody waits for its completion
	headLen  int
	head     [rdma.HeadMax]byte
	body     rdma.Mem
	kept     []byte // a copy of the body, or memory for one (bodies.go)
	short    [shortBody]byte
}

// role is what the end of a message means.
type role uint8

const (
	roleSend     role = iota // a completion
	roleWrite                // nothing: the response to the request behind it completes the Write
	roleRequest              // nothing: the response completes it
	roleResponse             // room for another response
)

// segment is one datagram to transmit.
type segment struct {
	message  *message
	offset   int
	length   int
	number   psn
	last     bool // of its message
	urgent   bool // request an immediate ack
	delayAck bool // the ack may be delayed by longAckDelay
	again    bool // a retransmission, so the peer may already have it
}

// state is the state of a segment between transmission and cumulative ack.
type state uint8

const (
	underWay state = iota
	arrived        // received, but something before it is missing
	lost           // to be retransmitted
)

// sent is a segment in flight.
type sent struct {
	message *message
	at      time.Duration // last transmission
	offset  uint32
	length  uint32
	state   state
	last    bool
	again   bool // retransmitted
}

// sendWindow holds the segments in flight to one peer, indexed by number. An idle peer
// has none, and most busy ones have a short one.
type sendWindow struct{ ring []sent }

const (
	shortWindow = 16
	// Upper bounds on the free windows that the pool keeps.
	maxShort, maxLong = 256, 32
)

// windowPool keeps send windows for the peers of a device.
type windowPool struct {
	short, long []*sendWindow
	repeated    uint64 // retransmitted datagrams
}

func (h *windowPool) take(size int) *sendWindow {
	free := &h.short
	if size > shortWindow {
		free = &h.long
	}
	if n := len(*free); n > 0 {
		f := (*free)[n-1]
		*free = (*free)[:n-1]
		return f
	}
	return &sendWindow{make([]sent, size)}
}

func (h *windowPool) giveBack(f *sendWindow) {
	switch {
	case len(f.ring) == shortWindow && len(h.short) < maxShort:
		h.short = append(h.short, f)
	case len(f.ring) > shortWindow && len(h.long) < maxLong:
		h.long = append(h.long, f)
	}
}

// sender is the sending half of RD for one peer.
type sender struct {
	oldest, cutting, newest *message // a list: oldest unfinished, first not fully segmented, last

	windowPool *windowPool
	sendWindow *sendWindow
	first      psn    // oldest number without a cumulative ack
	fresh      psn    // number of the next new segment
	soonEnd    psn    // number after the last segment whose ack may not be delayed
	lostAt     stamp  // time of the last detected loss; 0: never
	lost       uint32 // segments in state lost
	arrived    uint32 // segments in state arrived
	underWay   int    // bytes in state underWay, with their overhead

	mss  int // message bytes per datagram
	cong congestion

	newestSent time.Duration // send time of the latest segment known to have arrived
	lookAt     time.Duration // when an older segment without an ack counts as lost
	expireAt   time.Duration // when the ack timeout expires
	lastAckAt  time.Duration // last ack, or the start of waiting for one
	silences   uint8         // consecutive timeouts
}

// newSender returns the sending half for a peer, with mss message bytes per datagram.
func newSender(h *windowPool, mss int) sender {
	return sender{windowPool: h, mss: mss, cong: newCongestion(mss), newestSent: -1, lookAt: never, expireAt: never}
}

// push queues a message. An empty message has one segment too.
func (s *sender) push(m *message) {
	m.following, m.cut = nil, 0
	if s.oldest == nil {
		s.oldest = m
	} else {
		s.newest.following = m
	}
	if s.cutting == nil {
		s.cutting = m
	}
	s.newest = m
}

// addressKnown reports whether the peer has received a datagram of ours. It becomes
// false again when sequence numbers wrap to 0, which is harmless.
func (s *sender) addressKnown() bool { return s.first > 0 }

// idle reports whether everything that was pushed has arrived.
func (s *sender) idle() bool { return s.oldest == nil }

// next returns the segment to transmit now and counts it as transmitted. Lost segments
// come first: the peer cannot deliver what comes after them.
func (s *sender) next(now time.Duration) (segment, bool) {
	if s.lost == 0 && (s.cutting == nil || s.fresh-s.first == window) {
		return segment{}, false
	}
	if !s.cong.permits(now, s.underWay) {
		return segment{}, false
	}
	if s.sendWindow == nil {
		s.sendWindow = s.windowPool.take(shortWindow)
	}
	number := s.fresh
	if s.lost > 0 {
		number = s.firstLost()
		s.lost--
		s.at(number).again = true
		s.windowPool.repeated++
	} else {
		s.cutOne()
	}
	e := s.at(number)
	e.state, e.at = underWay, now
	s.underWay += cost(int(e.length))
	s.cong.transmitted(now, int(e.length))
	seg := segment{
		message: e.message, offset: int(e.offset), length: int(e.length), number: number, last: e.last,
		urgent: s.requestsAck(e), delayAck: e.message.delayAck && !e.again, again: e.again,
	}
	s.await(now, &seg)
	return seg, true
}

// await starts waiting for an ack.
func (s *sender) await(now time.Duration, seg *segment) {
	sooner := false
	if seg.urgent || !seg.delayAck {
		sooner = !s.expectsAckSoon()
		s.soonEnd = s.fresh
	}
	switch {
	case s.expireAt == never:
		s.lastAckAt = now
		s.expireAt = now + s.ackTimeout()
	case sooner:
		s.expireAt = min(s.expireAt, now+s.ackTimeout())
	}
}

// expectsAckSoon reports whether an ack is expected without long delay.
func (s *sender) expectsAckSoon() bool { return s.first.before(s.soonEnd) }

// lossFree reports whether there was no loss recently. After a loss acks are not
// delayed, because a delayed ack would delay the detection of the loss of a lone
// message.
func (s *sender) lossFree(now time.Duration) bool {
	return s.lostAt == 0 || s.lostAt.since(now) > lossMemory
}

// at returns the entry of a number in flight.
func (s *sender) at(p psn) *sent { return s.sendWindow.at(p) }

func (f *sendWindow) at(p psn) *sent { return &f.ring[int(p)&(len(f.ring)-1)] }

func (s *sender) firstLost() psn {
	p := s.first
	for s.at(p).state != lost {
		p++
	}
	return p
}

// cutOne makes the next segment of the current message.
func (s *sender) cutOne() {
	if int(s.fresh-s.first) == len(s.sendWindow.ring) {
		s.lengthen()
	}
	m := s.cutting
	n := min(m.length-m.cut, s.mss)
	*s.at(s.fresh) = sent{message: m, offset: uint32(m.cut), length: uint32(n), last: m.cut+n == m.length}
	s.fresh++
	if m.cut += n; m.cut == m.length {
		s.cutting = m.following
	}
}

// lengthen replaces a full short send window by a long one.
func (s *sender) lengthen() {
	short := s.sendWindow
	s.sendWindow = s.windowPool.take(window)
	for p := s.first; p != s.fresh; p++ {
		*s.at(p) = *short.at(p)
	}
	clear(short.ring)
	s.windowPool.giveBack(short)
}

// requestsAck reports whether to request an immediate ack. The last segment of a long
// message that ends a burst does, and so does a retransmission or a sender whose window
// is full. A short message does not, nor one whose completion nobody waits for: the
// reply to it will carry the ack.
func (s *sender) requestsAck(e *sent) bool {
	switch {
	case s.lost > 0:
		return false
	case e.again || s.fresh-s.first == window || !s.cong.permitsLater(s.underWay):
		return true
	}
	return s.cutting == nil && e.offset > 0 && !e.message.delayAck
}

// ackTimeout returns how long to wait for an ack before a retransmission.
func (s *sender) ackTimeout() time.Duration {
	if s.silences == 0 {
		held := longAckDelay
		if s.expectsAckSoon() {
			held = ackDelay
		}
		return min(s.cong.probe(held), maxRTO)
	}
	return min(s.cong.timeout()<<min(s.silences-1, 16), maxRTO)
}

const (
	// lossMemory is how long lossFree remembers a loss.
	lossMemory = 250 * time.Millisecond
	// maxRTO is the maximum time between two retransmissions.
	maxRTO = 32 * time.Millisecond
	// defaultPeerTimeout is how long a peer may be silent before it counts as gone. It
	// is longer than a process computes without polling.
	defaultPeerTimeout = 30 * time.Second
)

// wake returns when expire or next has work, if nothing arrives before.
func (s *sender) wake() time.Duration {
	at := min(s.expireAt, s.lookAt)
	if s.lost > 0 || s.cutting != nil && s.fresh-s.first < window {
		if s.cong.permitsLater(s.underWay) {
			at = min(at, s.cong.paceAt)
		}
	}
	return at
}

// timedOut reports whether the sender has waited at least limit for an ack.
func (s *sender) timedOut(now, limit time.Duration) bool {
	return s.expireAt != never && now-s.lastAckAt >= limit
}

// abandon returns all unfinished messages, oldest first, and resets the sender. The
// numbers in flight are not used again. So a peer that was declared gone and is alive
// delivers nothing more: its user has seen messages fail, and later ones would break
// the order.
func (s *sender) abandon() *message {
	list := s.oldest
	s.oldest, s.cutting, s.newest = nil, nil, nil
	s.first = s.fresh
	s.lost, s.arrived, s.underWay = 0, 0, 0
	s.reset()
	return list
}

// reset returns the send window when nothing is in flight.
func (s *sender) reset() {
	s.expireAt, s.lookAt, s.silences = never, never, 0
	if s.sendWindow != nil {
		s.windowPool.giveBack(s.sendWindow)
		s.sendWindow = nil
	}
}
