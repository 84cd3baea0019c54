package dgram

import (
	"math/bits"
	"time"
)

// The receiving half of RD, for one peer: judge says what a datagram is, accept
// counts it in, waiting and handed restore the order, due and write make the
// acks.
//
// A datagram that is accepted will be delivered: the ack may say so. Whoever
// has no room to keep one that came too early does not accept it, and it will
// come again.

// classification is what a sequence number says of a datagram.
type classification uint8

const (
	inOrder   classification = iota // the very next one to hand up
	early                           // new, and others before it are missing or wait
	duplicate                       // came before
	beyond                          // further ahead than any honest sender goes
)

// receive history is a set of datagrams: bit i is the one i after the first missing.
type receiveHistory [window / 64]uint64

func (q *receiveHistory) has(i psn) bool { return q[i/64]>>(i%64)&1 != 0 }
func (q *receiveHistory) add(i psn)      { q[i/64] |= 1 << (i % 64) }

// run is the number of members at the front.
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

// drop moves the set n places to the front.
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
	// ackDelay is how long one may wait for company.
	ackDelay = 200 * time.Microsecond
	// longAckDelay is how long one may wait whose sender has no use for it but to forget
	// its copy. Programs answer within that, or send the next message: an ack that
	// travels alone costs both hosts nearly as much as a short message.
	longAckDelay = 8 * time.Millisecond
)

// hurry is how soon the sender of a datagram wants an ack.
type ackMode uint8

const (
	ackNormal  ackMode = iota // within ackDelay
	ackNow                    // at once
	ackDelayed                // within longAckDelay
)

// receiver is the receiving half of RD for one peer.
type receiver struct {
	next       psn            // the first that has not come
	nextUp     psn            // the first that has not been handed up
	seen       receiveHistory // those that came beyond next
	stamp      stamp          // of the latest arrival
	ackPending uint16         // datagrams since the last ack
	urgent     bool           // the sender waits, or must learn of a gap
	stampAt    time.Duration
	dueAt      time.Duration // when it must go at the latest, if something is owed
}

// judge says what a datagram with that number is.
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

// accept counts a datagram in that judge called new.
func (r *receiver) accept(now time.Duration, p psn, left stamp, mode ackMode) {
	r.seen.add(p - r.next)
	r.urgent = r.urgent || p != r.next
	if n := r.seen.run(); n > 0 {
		r.seen.drop(n)
		r.next += n
	}
	r.queueAck(now, left, mode)
}

// refuse answers a datagram that is not accepted: a duplicate shows that an ack
// was lost, and any other one's sender must hear that somebody incarnations here.
func (r *receiver) refuse(now time.Duration, left stamp) { r.queueAck(now, left, ackNow) }

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

// waiting reports whether the datagram given is there to be handed up.
func (r *receiver) waiting() bool { return r.nextUp.before(r.next) }

// handed moves on after the datagram given was handed up.
func (r *receiver) markDelivered() { r.nextUp++ }

// due reports whether an ack should go even if nothing else goes to that peer.
func (r *receiver) due(now time.Duration) bool { return now >= r.wake(now) }

// wake is when an ack is due.
func (r *receiver) wake(now time.Duration) time.Duration {
	switch {
	case r.ackPending == 0:
		return never
	case r.urgent || r.ackPending >= ackEvery:
		return now
	}
	return r.dueAt
}

// write fills in the ack that leaves now.
func (r *receiver) write(now time.Duration, to *ack) {
	held := min((now-r.stampAt)/time.Microsecond, 1<<16-1)
	*to = ack{next: r.next, seen: r.seen, stamp: r.stamp, held: uint16(held)}
	r.ackPending, r.urgent = 0, false
}
