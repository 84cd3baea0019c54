package reliable

import (
	"math/bits"
	"time"
)

// The receiving half. Classify classifies a segment by its sequence, Accept records it,
// Waiting and MarkDelivered restore the order. Received and Refuse record packets, and
// AckDue and WriteAck produce acks.
//
// An accepted segment will be delivered, so an ack may report it. A segment that
// arrives early and finds no room is not accepted, its packets are not recorded, and
// the peer will retransmit it.

// Classification is what a sequence means to the receiver.
type Classification uint8

// The classifications.
const (
	InOrder   Classification = iota // the next one to deliver
	Early                           // new, and an earlier one is missing or not yet delivered
	Duplicate                       // already received
	Beyond                          // beyond the window of any correct sender
)

// history is a set of received segments: bit i is the one i after the first missing
// one.
type history [Window / 64]uint64

func (q *history) has(i Sequence) bool { return q[i/64]>>(i%64)&1 != 0 }
func (q *history) add(i Sequence)      { q[i/64] |= 1 << (i % 64) }

// run returns the length of the run of members at the front.
func (q *history) run() (n Sequence) {
	for _, word := range q {
		ones := bits.TrailingZeros64(^word)
		n += Sequence(ones)
		if ones < 64 {
			break
		}
	}
	return n
}

// drop shifts the set by n toward the front.
func (q *history) drop(n Sequence) {
	words, rest := int(n/64), n%64
	for i := range q {
		var word uint64
		if i+words < len(q) {
			word = q[i+words] >> rest
			if i+words+1 < len(q) {
				word |= q[i+words+1] << (64 - rest)
			}
		}
		q[i] = word
	}
}

// AckMode is how soon the sender of a packet needs an ack.
type AckMode uint8

// The ack modes.
const (
	AckNormal  AckMode = iota // within Params.AckDelay
	AckNow                    // at once
	AckDelayed                // within Params.LongAckDelay
)

// Classify classifies a sequence.
func (s *Peer[T]) Classify(q Sequence) Classification {
	switch {
	case q.Before(s.next):
		return Duplicate
	case q-s.nextUp >= Window:
		return Beyond
	case s.seen != nil && s.seen.has(q-s.next):
		return Duplicate
	case q == s.nextUp:
		return InOrder
	}
	return Early
}

// Accept records a segment that Classify called new.
func (s *Peer[T]) Accept(q Sequence) {
	if q == s.next && s.seen == nil {
		s.next++
		return
	}
	if s.seen == nil {
		s.seen = takeFree(&s.pool.histories, &s.pool.made)
	}
	s.seen.add(q - s.next)
	if n := s.seen.run(); n > 0 {
		s.seen.drop(n)
		s.next += n
	}
	if *s.seen == (history{}) {
		s.pool.histories = append(s.pool.histories, s.seen)
		s.seen = nil
	}
}

// Waiting reports whether the next segment to deliver has arrived.
func (s *Peer[T]) Waiting() bool { return s.nextUp.Before(s.next) }

// NextUp returns the next segment to deliver.
func (s *Peer[T]) NextUp() Sequence { return s.nextUp }

// StartAt makes q the first segment expected from a new peer.
func (s *Peer[T]) StartAt(q Sequence) { s.next, s.nextUp = q, q }

// MarkDelivered records the delivery of segment NextUp.
func (s *Peer[T]) MarkDelivered() { s.nextUp++ }

// Complete reports whether no segment has arrived early.
func (s *Peer[T]) Complete() bool { return s.seen == nil }

// RecordPackets records count packets with consecutive numbers, and makes an ack pending.
func (s *Peer[T]) RecordPackets(now time.Duration, on int, n Number, count int, mode AckMode) {
	p := s.path(on)
	if p.gaps == nil && p.skips(n) {
		p.gaps = s.pool.takeGaps()
	}
	if p.receive(now, n, count) {
		p.urgent = true
	}
	s.queueAck(now, p, count, mode)
}

// Refuse requests an immediate ack for a packet that is not recorded: its sender must
// learn that this peer is alive.
func (s *Peer[T]) Refuse(now time.Duration, on int) { s.queueAck(now, s.path(on), 1, AckNow) }

// runShare is how many packets that arrive together count as one toward Params.AckEvery: an
// ack costs as much as a message. A sender whose window is full requests an ack.
const runShare = 6

// queueAck makes an ack pending.
func (s *Peer[T]) queueAck(now time.Duration, p *path, count int, mode AckMode) {
	due := stampOf(now + s.pool.AckDelay)
	if mode == AckDelayed {
		due = stampOf(now + s.pool.LongAckDelay)
	}
	if p.ackPending == 0 || int32(due-p.dueAt) < 0 {
		p.dueAt = due
	}
	p.ackPending = uint16(min(int(p.ackPending)+(count+runShare-1)/runShare, s.pool.AckEvery))
	p.urgent = p.urgent || mode == AckNow
}

// AckPending reports whether an ack is pending on a path.
func (s *Peer[T]) AckPending(on int) bool { return s.path(on).ackPending > 0 }

// AckWords returns how many words the ack of a path has.
func (s *Peer[T]) AckWords(on int) int {
	if g := s.path(on).gaps; g != nil {
		return g.words()
	}
	return 0
}

// AckFull reports whether so many packets wait for an ack that it is due.
func (s *Peer[T]) AckFull(on int) bool { return int(s.path(on).ackPending) >= s.pool.AckEvery }

// AckDue reports whether an ack should be sent even if no other packet goes to the
// peer.
func (s *Peer[T]) AckDue(now time.Duration, on int) bool { return now >= s.AckWake(now, on) }

// AckWake returns when an ack is due.
func (s *Peer[T]) AckWake(now time.Duration, on int) time.Duration {
	p := s.path(on)
	switch {
	case p.ackPending == 0:
		return Never
	case p.urgent || int(p.ackPending) >= s.pool.AckEvery:
		return now
	}
	return p.dueAt.timeNear(now)
}

// WriteAck fills in the ack that is sent now, with at most the given number of words.
func (s *Peer[T]) WriteAck(now time.Duration, on int, to *Ack, words int) {
	p := s.path(on)
	to.Next, to.End, to.Span, to.Path, to.Words = s.next, p.end, p.span, uint8(on), 0
	to.Held = uint16(min(stampOf(now)-p.endAt, 1<<16-1))
	if p.gaps != nil {
		n := p.gaps.words()
		if n > words {
			n = words
			to.Span = min(to.Span, uint16(64*n))
		}
		to.Words = uint8(n)
		copy(to.Missing[:n], p.gaps[:n])
	}
	p.ackPending, p.urgent = 0, false
}

// DropAcks forgets pending acks and everything that was not delivered.
func (s *Peer[T]) DropAcks() {
	for i := range s.Paths() {
		s.path(i).ackPending = 0
	}
	s.nextUp = s.next
}

// Rest returns the memory of a peer that has become idle. Acks report packets that
// arrive from now on.
func (s *Peer[T]) Rest() {
	for i := range s.Paths() {
		p := s.path(i)
		if p.gaps != nil {
			*p.gaps = gaps{}
			s.pool.gaps = append(s.pool.gaps, p.gaps)
			p.gaps, p.span = nil, 0
		}
	}
}
