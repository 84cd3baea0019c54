package reliable

import (
	"math/bits"
	"time"
)

// Peer is both halves of the protocol for one peer. Memory that only a busy peer needs
// comes from the pool, and is returned when the peer becomes idle.
type Peer[T any] struct {
	pool      *Pool[T]
	lost      uint16 // packets to transmit again
	preferred uint8  // the path that the peer used last
	unasked   int32  // bytes sent since an ack was requested, with Params.AskEvery
	only      path   // the first path; multi has the others

	// The sending half.
	oldest, cutting, newest *Message[T] // a list: oldest unfinished, first not fully segmented, last
	segments                *ring[segment[T]]
	lastAckAt               time.Duration // last ack, or the start of waiting for one
	first                   Sequence      // oldest segment without a cumulative ack
	fresh                   Sequence      // of the next segment
	soonEnd                 Sequence      // after the last segment whose ack may not be delayed
	lostAt                  stamp         // time of the last detected loss; 0: never

	// The receiving half.
	next   Sequence // the first missing segment
	nextUp Sequence // the first one not delivered
	seen   *history // arrivals beyond next; nil: none

}

// NewPeer returns the state of a peer that is reached on one path.
func NewPeer[T any](h *Pool[T]) Peer[T] {
	return Peer[T]{pool: h, only: newPath(&h.Params)}
}

// Paths returns the number of paths.
func (s *Peer[T]) Paths() int {
	if s.only.multi == nil {
		return 1
	}
	return 1 + len(s.only.multi.more)
}

func (s *Peer[T]) path(on int) *path {
	if on == 0 {
		return &s.only
	}
	return &s.only.multi.more[on-1]
}

// Push queues a message. An empty message has one segment too. A message that does not
// yield goes before those that do, except the one that is being segmented.
func (s *Peer[T]) Push(m *Message[T]) {
	m.Following, m.Cut = nil, 0
	if s.oldest == nil {
		s.oldest, s.cutting, s.newest = m, m, m
		return
	}
	before := s.newest
	if s.cutting != nil && before.Yields && !m.Yields {
		before = s.cutting
		for n := before.Following; n != nil && !n.Yields; n = n.Following {
			before = n
		}
	}
	if before == s.newest {
		s.newest = m
	}
	m.Following, before.Following = before.Following, m
	if s.cutting == nil {
		s.cutting = m
	}
}

// Oldest returns the list of unfinished messages.
func (s *Peer[T]) Oldest() *Message[T] { return s.oldest }

// AddressKnown reports whether the peer has received a packet of ours. It becomes false
// again when sequences wrap to 0, which is harmless.
func (s *Peer[T]) AddressKnown() bool { return s.first > 0 }

// Idle reports whether everything that was pushed has arrived.
func (s *Peer[T]) Idle() bool { return s.oldest == nil }

// LastAck returns when the last ack has arrived, or when waiting for one has started.
func (s *Peer[T]) LastAck() time.Duration { return s.lastAckAt }

// mayCut reports whether the window has room for a new segment.
func (s *Peer[T]) mayCut() bool { return s.cutting != nil && s.fresh-s.first < Window }

// Next returns what to transmit now on a path and counts it as transmitted. Lost
// packets come first: the peer cannot deliver what comes after them. A new segment of
// several packets gets room for an ack of that many bytes.
func (s *Peer[T]) Next(now time.Duration, on, ack int) (t Transmission[T], ok bool) {
	p := s.path(on)
	if now >= s.probeAt(p) && p.room() > 0 {
		return s.probe(now, on), true
	}
	if s.lost == 0 && !s.mayCut() || p.room() == 0 || !p.cong.permits(now, p.underWay) {
		return t, false
	}
	before := p.underWay
	if s.lost > 0 {
		t = s.repeat(now, p)
	} else {
		t = s.cut(now, p, ack)
	}
	s.sentOn(now, on, p.underWay-before)
	if t.Urgent = s.requestsAck(&t, p); s.pool.AskEvery > 0 {
		if s.unasked += int32(t.Length); t.Urgent || int(s.unasked) >= s.pool.AskEvery {
			t.Urgent, s.unasked = true, 0
		}
	}
	s.await(now, &t, p)
	return t, true
}

// room returns how many packets may be numbered.
func (p *path) room() int {
	for p.fresh-p.first == packetWindow && p.packets.at(uint32(p.first)).state != underWay {
		p.first++
	}
	return packetWindow - int(p.fresh-p.first)
}

// repeat transmits the first lost packet again.
func (s *Peer[T]) repeat(now time.Duration, p *path) Transmission[T] {
	q := s.first
	for s.at(q).lost == 0 {
		q++
	}
	e := s.at(q)
	position := bits.TrailingZeros64(e.lost)
	e.lost &= e.lost - 1
	e.again = true
	s.lost--
	s.pool.Retransmitted++
	t := s.transmission(q, p)
	t.Lone, t.Position = e.packets > 1, position
	s.transmit(now, p, q, position, 1)
	return t
}

// cut makes the next segment of the current message.
func (s *Peer[T]) cut(now time.Duration, p *path, ack int) Transmission[T] {
	s.segments = s.pool.segments.fit(s.segments, uint32(s.first), uint32(s.fresh), 1)
	m, h := s.cutting, &s.pool.Params
	rest := m.Length - m.Cut
	n, packets, extra := min(rest, h.Single), 1, 0
	if rest > h.Single && h.MaxRun > 1 && s.AddressKnown() { // only a peer that knows ours can join packets
		most := min(p.cong.packets(p.underWay, h.MaxRun), p.room(), s.share(p))
		extra = m.Overhead + ack
		if packets = min((rest+extra+h.Each-1)/h.Each, most); packets > 1 {
			n = min(rest, packets*h.Each-extra)
		}
	}
	q := s.fresh
	s.fresh++
	*s.at(q) = segment[T]{message: m, offset: uint32(m.Cut), length: uint32(n), extra: uint16(extra), packets: uint8(packets), last: m.Cut+n == m.Length}
	if packets > 1 {
		s.at(q).kept = s.pool.takeKept()
	}
	if m.Cut += n; m.Cut == m.Length {
		s.cutting = m.Following
	}
	t := s.transmission(q, p)
	t.Ack = packets > 1 && ack > 0
	s.transmit(now, p, q, 0, packets)
	return t
}

// transmission describes the transmission of a segment.
func (s *Peer[T]) transmission(q Sequence, p *path) Transmission[T] {
	e := s.at(q)
	return Transmission[T]{
		Message: e.message, Offset: int(e.offset), Length: int(e.length), Sequence: q, Number: p.fresh, Packets: int(e.packets),
		Last: e.last, DelayAck: e.message.DelayAck && !e.again, Again: e.again, Kept: e.kept,
	}
}

// transmit numbers packets of a segment.
func (s *Peer[T]) transmit(now time.Duration, p *path, q Sequence, position, count int) {
	p.packets = s.pool.packets.fit(p.packets, uint32(p.first), uint32(p.fresh), count)
	e, sum := s.at(q), 0
	for i := range count {
		n := int(e.length)
		if e.packets > 1 {
			n = min(s.pool.Each, n+int(e.extra)-(position+i)*s.pool.Each)
		}
		sum += cost(n)
		*p.packets.at(uint32(p.fresh)) = packet{at: now, sequence: q, cost: uint32(cost(n)), position: uint8(position + i), state: underWay}
		p.fresh++
	}
	p.underWay += sum
	p.cong.pace(now, sum)
}

// at returns a segment in flight.
func (s *Peer[T]) at(q Sequence) *segment[T] { return s.segments.at(uint32(q)) }

// requestsAck reports whether to request an immediate ack. The last segment of a long
// message that ends a burst does, and so does a retransmission or a sender whose window
// is full. A short message does not, nor one whose completion nobody waits for: the
// reply to it will carry the ack.
func (s *Peer[T]) requestsAck(t *Transmission[T], p *path) bool {
	switch {
	case s.lost > 0:
		return false
	case t.Again || s.fresh-s.first == Window || p.room() == 0 || !p.cong.permitsLater(p.underWay):
		return true
	}
	return s.cutting == nil && (t.Offset > 0 || t.Packets > 1) && !t.Message.DelayAck
}

// await starts waiting for an ack.
func (s *Peer[T]) await(now time.Duration, t *Transmission[T], p *path) {
	sooner := false
	if t.Urgent || !t.DelayAck {
		sooner = !s.expectsAckSoon()
		s.soonEnd = s.fresh
	}
	if !s.awaits() {
		s.lastAckAt = now
	}
	switch {
	case p.expireAt == Never:
		p.expireAt = now + s.ackTimeout(p)
	case sooner:
		p.expireAt = min(p.expireAt, now+s.ackTimeout(p))
	}
}

// awaits reports whether an ack is awaited on any path.
func (s *Peer[T]) awaits() bool {
	for i := range s.Paths() {
		if s.path(i).expireAt != Never {
			return true
		}
	}
	return false
}

// expectsAckSoon reports whether an ack is expected without long delay.
func (s *Peer[T]) expectsAckSoon() bool { return s.first.Before(s.soonEnd) }

// ackTimeout returns how long to wait for an ack before a retransmission.
func (s *Peer[T]) ackTimeout(p *path) time.Duration {
	if p.silences == 0 {
		held := s.pool.LongAckDelay
		if s.expectsAckSoon() {
			held = s.pool.AckDelay
		}
		return min(p.cong.probe(held), maxRTO)
	}
	return min(p.cong.timeout(s.pool.AckDelay)<<min(p.silences-1, 16), maxRTO)
}

// LossMemory is how long LossFree remembers a loss.
const LossMemory = 250 * time.Millisecond

// LossFree reports whether there was no loss recently. After a loss acks are not
// delayed, because a delayed ack would delay the detection of the loss of a lone
// message.
func (s *Peer[T]) LossFree(now time.Duration) bool {
	return s.lostAt == 0 || s.lostAt.age(now) > LossMemory
}

// SendWake returns when Expire or Next has work, if nothing arrives before.
func (s *Peer[T]) SendWake() time.Duration {
	at := Never
	for i := range s.Paths() {
		p := s.path(i)
		at = min(at, p.expireAt, p.lookAt, s.probeAt(p))
	}
	if s.lost > 0 || s.mayCut() {
		at = min(at, s.sendAt())
	}
	return at
}

// TimedOut reports whether the sender has waited at least limit for an ack.
func (s *Peer[T]) TimedOut(now, limit time.Duration) bool {
	return s.awaits() && now-s.lastAckAt >= limit
}

// Abandon returns all unfinished messages, oldest first, and resets the sender. The
// sequences in flight are not used again. So a peer that was declared gone and is alive
// delivers nothing more: its user has seen messages fail, and later ones would break
// the order.
func (s *Peer[T]) Abandon() *Message[T] {
	list := s.oldest
	s.oldest, s.cutting, s.newest = nil, nil, nil
	for ; s.first != s.fresh; s.first++ {
		s.forget(s.at(s.first))
	}
	s.reset()
	return list
}

// forget returns the memory of a finished segment.
func (s *Peer[T]) forget(e *segment[T]) {
	s.lost -= uint16(bits.OnesCount64(e.lost))
	s.pool.giveBackKept(e.kept)
	*e = segment[T]{}
}

// reset returns the rings when nothing is in flight.
func (s *Peer[T]) reset() {
	s.pool.segments.giveBack(s.segments)
	s.segments = nil
	for i := range s.Paths() {
		s.resetPath(s.path(i))
	}
}

// resetPath returns the ring of a path on which no ack is awaited.
func (s *Peer[T]) resetPath(p *path) {
	s.pool.packets.giveBack(p.packets)
	p.packets = nil
	p.first, p.underWay = p.fresh, 0
	p.expireAt, p.lookAt, p.silences, p.doubtful = Never, Never, 0, false
}
