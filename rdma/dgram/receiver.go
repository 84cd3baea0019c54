package dgram

import (
	"math/bits"
	"time"
)

// The receiving half of RD, for one peer. classify classifies a datagram by its number,
// accept records it, waiting and markDelivered restore the order, and due and write
// produce acks.
//
// An accepted datagram will be delivered, so an ack may report it. A datagram that
// arrives early and finds no room is not accepted, and the peer will retransmit it.

// classification is what a sequence number means to the receiver.
type classification uint8

const (
	inOrder   classification = iota // the next one to deliver
	early                           // new, and an earlier one is missing or not yet delivered
	duplicate                       // already received
	beyond                          // beyond the window of any correct sender
)

// receiveHistory is a set of received datagrams: bit i is the one i after the first
// missing one.
type receiveHistory [window / 64]uint64

func (q *receiveHistory) has(i psn) bool { return q[i/64]>>(i%64)&1 != 0 }
func (q *receiveHistory) add(i psn)      { q[i/64] |= 1 << (i % 64) }

// run returns the length of the run of members at the front.
func (q *receiveHistory) run() (n psn) {
	for _, word := range q {
		ones := bits.TrailingZeros64(^word)
		n += psn(ones)
		if ones < 64 {
			break
		}
	}
	return n
}

// drop shifts the set by n toward the front.
func (q *receiveHistory) drop(n psn) {
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

const (
	// ackEvery is how many datagrams make an ack due.
	ackEvery = 16
	// ackDelay is how long an ack may wait for a datagram to be piggybacked on.
	ackDelay = 200 * time.Microsecond
	// longAckDelay is the delay of an ack whose sender only needs it to free its copy.
	// Applications usually reply, or send the next message, within that time. A
	// standalone ack costs both hosts nearly as much as a short message.
	longAckDelay = 8 * time.Millisecond
)

// ackMode is how soon the sender of a datagram needs an ack.
type ackMode uint8

const (
	ackNormal  ackMode = iota // within ackDelay
	ackNow                    // at once
	ackDelayed                // within longAckDelay
)

// receiver is the receiving half of RD for one peer.
type receiver struct {
	next       psn            // the first missing one
	nextUp     psn            // the first one not delivered
	seen       receiveHistory // arrivals beyond next
	stamp      stamp          // send time of the latest arrival
	ackPending uint16         // datagrams received since the last ack
	urgent     bool           // an ack is requested, or a gap must be reported
	stampAt    time.Duration
	dueAt      time.Duration // when the ack must be sent, if one is pending
}

// classify classifies a sequence number.
func (r *receiver) classify(p psn) classification {
	switch {
	case p.before(r.next):
		return duplicate
	case p-r.nextUp >= window:
		return beyond
	case r.seen.has(p - r.next):
		return duplicate
	case p == r.nextUp:
		return inOrder
	}
	return early
}

// accept records a datagram that classify called new.
func (r *receiver) accept(now time.Duration, p psn, left stamp, mode ackMode) {
	r.seen.add(p - r.next)
	r.urgent = r.urgent || p != r.next
	if n := r.seen.run(); n > 0 {
		r.seen.drop(n)
		r.next += n
	}
	r.queueAck(now, left, mode)
}

// refuse requests an immediate ack for a datagram that is not accepted. A duplicate
// shows that an ack was lost; the sender of any other must learn that this peer is
// alive.
func (r *receiver) refuse(now time.Duration, left stamp) { r.queueAck(now, left, ackNow) }

// queueAck makes an ack pending.
func (r *receiver) queueAck(now time.Duration, left stamp, mode ackMode) {
	due := now + ackDelay
	if mode == ackDelayed {
		due = now + longAckDelay
	}
	if r.ackPending == 0 || due < r.dueAt {
		r.dueAt = due
	}
	if r.ackPending < ackEvery {
		r.ackPending++
	}
	r.stamp, r.stampAt = left, now
	r.urgent = r.urgent || mode == ackNow
}

// waiting reports whether datagram nextUp has arrived and can be delivered.
func (r *receiver) waiting() bool { return r.nextUp.before(r.next) }

// markDelivered records the delivery of datagram nextUp.
func (r *receiver) markDelivered() { r.nextUp++ }

// due reports whether an ack should be sent even if no other datagram goes to the peer.
func (r *receiver) due(now time.Duration) bool { return now >= r.wake(now) }

// wake returns when an ack is due.
func (r *receiver) wake(now time.Duration) time.Duration {
	switch {
	case r.ackPending == 0:
		return never
	case r.urgent || r.ackPending >= ackEvery:
		return now
	}
	return r.dueAt
}

// write fills in the ack that is sent now.
func (r *receiver) write(now time.Duration, to *ack) {
	held := min((now-r.stampAt)/time.Microsecond, 1<<16-1)
	*to = ack{next: r.next, seen: r.seen, stamp: r.stamp, held: uint16(held)}
	r.ackPending, r.urgent = 0, false
}
