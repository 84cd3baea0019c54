package dgram

import (
	"math"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The sending half of RD, for one peer: push queues a message, next cuts it into
// segments as fast as window and pacing allow and repeats what was lost,
// acknowledge (acknowledge.go) hears what has arrived and gives the finished
// messages back, expire acts when nothing is heard, wake says when that is.
//
// A segment is never copied here. It is named by its message and its offset, and
// whoever transmits it takes the bytes from the user's memory, each time anew:
// the memory is the sender's until the completion.

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// message is what the user posted, and how far it has come.
type message struct {
	following *message // posted next to the same peer
	length    int      // bytes in all
	cut       int      // bytes that have become segments
	id        uint64   // the user's name for it

	// What the device knows of it.
	role     role
	number   uint32 // MSN
	opcode   ddp.Opcode
	tag      ddp.Tag // of a tagged one, and the address of its first byte there
	address  uint64
	fault    ddp.Fault // of an answer that refuses
	source   ddp.Tag   // of an answer to a read: where the bytes are
	from     uint64
	inline   bool
	delayAck bool // nobody waits for its end
	headLen  int
	head     [rdma.HeadMax]byte
	body     rdma.Mem
	kept     []byte // a copy of it, or memory for one: bodies.go
	short    [shortBody]byte
}

// role is what the end of a message means.
type role uint8

const (
	roleSend     role = iota // a completion
	roleWrite                // nothing: the answer to the request behind it tells
	roleRequest              // nothing: the answer tells
	roleResponse             // room for another answer
)

// segment is one datagram to transmit.
type segment struct {
	message  *message
	offset   int
	length   int
	number   psn
	last     bool // of its message
	urgent   bool // the sender waits for an ack
	delayAck bool // it can do without one for longAckDelay
	again    bool // it went before, so the peer may have it
}

// state of a segment that was cut and is not yet known to have arrived with all
// before it.
type state uint8

const (
	underWay state = iota
	arrived        // the peer has it, but not all before it
	lost           // must go again
)

// sent is a segment on its way.
type sent struct {
	message *message
	at      time.Duration // when it went last
	offset  uint32
	length  uint32
	state   state
	last    bool
	again   bool // went more than once
}

// send window is the memory for what is under way to one peer, by number. An idle peer has
// none, most busy ones a short one: all ranks of a job may be busy at a time, a little.
type sendWindow struct{ ring []sent }

const (
	shortWindow = 16
	// The most that are kept for later; a burst to thousands of peers leaves no more.
	maxShort, maxLong = 256, 32
)

// window pool keeps send windows for the peers of a device that need one.
type windowPool struct {
	short, long []*sendWindow
	repeated    uint64 // datagrams that went again
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
	oldest, cutting, newest *message // a list: unfinished, first that is not all cut, last

	windowPool *windowPool
	sendWindow *sendWindow
	first      psn    // oldest that is not known to have arrived with all before it
	fresh      psn    // the number of the next new segment
	soonEnd    psn    // the number behind the last segment whose ack may not wait for long
	lostAt     stamp  // when something was taken for lost last; 0: never
	lost       uint32 // segments in state lost
	arrived    uint32 // segments in state arrived
	underWay   int    // bytes in state underWay, with their overhead

	mss  int // bytes of a message that go into one datagram
	cong congestion

	newestSent time.Duration // when the latest segment left that is known to have arrived
	lookAt     time.Duration // when silence about an older one means that it is lost
	expireAt   time.Duration // when silence about everything means something
	lastAckAt  time.Duration // last sign of incarnation, or the start of waiting for one
	silences   uint8         // expirations in a row
}

// newSender makes the sending half for a peer to which mss bytes of a message go
// in a datagram.
func newSender(h *windowPool, mss int) sender {
	return sender{windowPool: h, mss: mss, cong: newCongestion(mss), newestSent: -1, lookAt: never, expireAt: never}
}

// push queues a message. A message without bytes is one segment all the same.
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

// acquainted reports whether the peer has had datagrams of ours. It forgets that when numbers
// begin anew, which does no harm.
func (s *sender) addressKnown() bool { return s.first > 0 }

// idle reports whether everything that was pushed has arrived.
func (s *sender) idle() bool { return s.oldest == nil }

// next gives the segment to transmit now, and counts it as transmitted. Lost
// ones come first: the peer cannot deliver what comes after them.
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

// await begins to wait for an ack.
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

// hurries reports whether an ack is expected soon.
func (s *sender) expectsAckSoon() bool { return s.first.before(s.soonEnd) }

// calm reports whether nothing was lost of late. Where datagrams are lost, an ack that
// waits for long would let the loss of a lone message be noticed late.
func (s *sender) lossFree(now time.Duration) bool {
	return s.lostAt == 0 || s.lostAt.since(now) > lossMemory
}

// at is the entry of a number that is under way.
func (s *sender) at(p psn) *sent { return s.sendWindow.at(p) }

func (f *sendWindow) at(p psn) *sent { return &f.ring[int(p)&(len(f.ring)-1)] }

func (s *sender) firstLost() psn {
	p := s.first
	for s.at(p).state != lost {
		p++
	}
	return p
}

// cutOne makes the next segment of the message being cut.
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

// lengthen gives a sender with much under way a long send window.
func (s *sender) lengthen() {
	short := s.sendWindow
	s.sendWindow = s.windowPool.take(window)
	for p := s.first; p != s.fresh; p++ {
		*s.at(p) = *short.at(p)
	}
	clear(short.ring)
	s.windowPool.giveBack(short)
}

// requestsAck reports whether to ask for an ack at once. A long message that
// ends a burst does, and so does a sender that stops because its window is full.
// A short message does not, nor one whose end nobody waits for: the answer to it will carry
// the ack.
func (s *sender) requestsAck(e *sent) bool {
	switch {
	case s.lost > 0:
		return false
	case e.again || s.fresh-s.first == window || !s.cong.permitsLater(s.underWay):
		return true
	}
	return s.cutting == nil && e.offset > 0 && !e.message.delayAck
}

// ackTimeout is how long to wait for an ack before asking again.
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
	// lossMemory is for how long a loss is remembered.
	lossMemory = 250 * time.Millisecond
	// maxRTO is the most that passes between two attempts.
	maxRTO = 32 * time.Millisecond
	// hopeless is how long a peer may be silent before it counts as gone. It is
	// longer than a process computes without looking at its network.
	defaultPeerTimeout = 30 * time.Second
)

// wake is when expire or next has something to do, if nothing arrives before.
func (s *sender) wake() time.Duration {
	at := min(s.expireAt, s.lookAt)
	if s.lost > 0 || s.cutting != nil && s.fresh-s.first < window {
		if s.cong.permitsLater(s.underWay) {
			at = min(at, s.cong.paceAt)
		}
	}
	return at
}

// timedOut reports whether we have waited for an ack for so long.
func (s *sender) timedOut(now, limit time.Duration) bool {
	return s.expireAt != never && now-s.lastAckAt >= limit
}

// abandon gives back every unfinished message, oldest first, and leaves the sender
// as if nothing had been pushed. The numbers of what was under way are not used again,
// so a peer that was given up and incarnations after all hears nothing more: its user was told
// that messages are lost, and order would not hold.
func (s *sender) abandon() *message {
	list := s.oldest
	s.oldest, s.cutting, s.newest = nil, nil, nil
	s.first = s.fresh
	s.lost, s.arrived, s.underWay = 0, 0, 0
	s.reset()
	return list
}

// reset gives the memory back when nothing is under way.
func (s *sender) reset() {
	s.expireAt, s.lookAt, s.silences = never, never, 0
	if s.sendWindow != nil {
		s.windowPool.giveBack(s.sendWindow)
		s.sendWindow = nil
	}
}
