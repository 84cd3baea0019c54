package dgram

import (
	"math/bits"
	"time"
)

// The receiving half of RD, for one peer: judge says what a datagram is, accept
// counts it in, waiting and handed restore the order, due and write make the
// receipts.
//
// A datagram that is accepted will be delivered: the receipt may say so. Whoever
// has no room to keep one that came too early does not accept it, and it will
// come again.

// verdict is what a sequence number says of a datagram.
type verdict uint8

const (
	inOrder   verdict = iota // the very next one to hand up
	early                    // new, and others before it are missing or wait
	duplicate                // came before
	beyond                   // further ahead than any honest sender goes
)

// sightings is a set of datagrams: bit i is the one i after the first missing.
type sightings [window / 64]uint64

func (q *sightings) has(i psn) bool { return q[i/64]>>(i%64)&1 != 0 }
func (q *sightings) add(i psn)      { q[i/64] |= 1 << (i % 64) }

// run is the number of members at the front.
func (q *sightings) run() (n psn) {
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
func (q *sightings) drop(n psn) {
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
	// receiptEvery is how many datagrams make a receipt due.
	receiptEvery = 16
	// receiptDelay is how long one may wait for company.
	receiptDelay = 200 * time.Microsecond
	// patientDelay is how long one may wait whose sender has no use for it but to forget
	// its copy. Programs answer within that, or send the next message: a receipt that
	// travels alone costs both hosts nearly as much as a short message.
	patientDelay = 8 * time.Millisecond
)

// hurry is how soon the sender of a datagram wants a receipt.
type hurry uint8

const (
	ordinary hurry = iota // within receiptDelay
	urgent                // at once
	patient               // within patientDelay
)

// receiver is the receiving half of RD for one peer.
type receiver struct {
	next    psn       // the first that has not come
	given   psn       // the first that has not been handed up
	seen    sightings // those that came beyond next
	stamp   stamp     // of the latest arrival
	owed    uint16    // datagrams since the last receipt
	urgent  bool      // the sender waits, or must learn of a gap
	stampAt time.Duration
	dueAt   time.Duration // when it must go at the latest, if something is owed
}

// judge says what a datagram with that number is.
func (r *receiver) judge(p psn) verdict {
	switch {
	case p.before(r.next):
		return duplicate
	case p-r.given >= window:
		return beyond
	case r.seen.has(p - r.next):
		return duplicate
	case p == r.given:
		return inOrder
	}
	return early
}

// accept counts a datagram in that judge called new.
func (r *receiver) accept(now time.Duration, p psn, left stamp, hurry hurry) {
	r.seen.add(p - r.next)
	r.urgent = r.urgent || p != r.next
	if n := r.seen.run(); n > 0 {
		r.seen.drop(n)
		r.next += n
	}
	r.owe(now, left, hurry)
}

// refuse answers a datagram that is not accepted: a duplicate shows that a receipt
// was lost, and any other one's sender must hear that somebody lives here.
func (r *receiver) refuse(now time.Duration, left stamp) { r.owe(now, left, urgent) }

func (r *receiver) owe(now time.Duration, left stamp, hurry hurry) {
	due := now + receiptDelay
	if hurry == patient {
		due = now + patientDelay
	}
	if r.owed == 0 || due < r.dueAt {
		r.dueAt = due
	}
	if r.owed < receiptEvery {
		r.owed++
	}
	r.stamp, r.stampAt = left, now
	r.urgent = r.urgent || hurry == urgent
}

// waiting reports whether the datagram given is there to be handed up.
func (r *receiver) waiting() bool { return r.given.before(r.next) }

// handed moves on after the datagram given was handed up.
func (r *receiver) handed() { r.given++ }

// due reports whether a receipt should go even if nothing else goes to that peer.
func (r *receiver) due(now time.Duration) bool { return now >= r.wake(now) }

// wake is when a receipt is due.
func (r *receiver) wake(now time.Duration) time.Duration {
	switch {
	case r.owed == 0:
		return never
	case r.urgent || r.owed >= receiptEvery:
		return now
	}
	return r.dueAt
}

// write fills in the receipt that leaves now.
func (r *receiver) write(now time.Duration, to *receipt) {
	held := min((now-r.stampAt)/time.Microsecond, 1<<16-1)
	*to = receipt{next: r.next, seen: r.seen, stamp: r.stamp, held: uint16(held)}
	r.owed, r.urgent = 0, false
}
