package udrel

import "time"

// The receiving half of what is kept of a peer, without device or clock: judge says what a
// packet is, accept and deliver book it, receiptDue and write make receipts.

const (
	// receiptEvery is how many packets are received for by one receipt (T1 6.6.1).
	receiptEvery = 50
	// receiptDelay is how long a receipt may wait for a packet to ride on.
	receiptDelay = time.Millisecond
)

// verdict is what a packet is to the receiver.
type verdict uint8

const (
	inOrder   verdict = iota // the one that is wanted
	early                    // one of those behind it
	duplicate                // one that has come
	beyond                   // one that may not have left yet
)

// receiver is what is kept of a peer for receiving.
type receiver struct {
	want  psn
	seen  sightings
	left  stamp         // of the packet that the next receipt is for
	came  time.Duration // when it came
	since time.Duration // when the first packet came that no receipt is sent for
	owed  uint8         // packets that no receipt is sent for
	hurry bool          // one is wanted at once
}

func (r *receiver) judge(number psn) verdict {
	switch ahead := number - r.want; {
	case number.before(r.want):
		return duplicate
	case ahead >= window:
		return beyond
	case r.seen.has(ahead):
		return duplicate
	case ahead > 0:
		return early
	}
	return inOrder
}

// owe notes that a receipt is wanted for a packet.
func (r *receiver) owe(now time.Duration, h *header, urgent bool) {
	if r.owed == 0 {
		r.since = now
	}
	if r.owed < 255 {
		r.owed++
	}
	r.left, r.came = h.left, now
	r.hurry = r.hurry || urgent || h.flags&flagUrgent != 0
}

// hold notes that a packet has come that cannot be delivered yet.
func (r *receiver) hold(number psn) { r.seen.set(number - r.want) }

// holds reports whether the packet that is wanted has come.
func (r *receiver) holds() bool { return r.seen[0]&1 != 0 }

// lag owes a receipt because packets that had to wait were delivered: the peer may wait
// for that.
func (r *receiver) lag(now time.Duration) {
	if r.owed == 0 {
		r.owed, r.since = 1, now
	}
}

// deliver notes that the packet that was wanted is delivered.
func (r *receiver) deliver() {
	r.want++
	r.seen.shift()
}

// receiptDue reports whether a receipt should leave now, with a packet or without.
func (r *receiver) receiptDue(now time.Duration) bool {
	return r.owed > 0 && (r.hurry || r.owed >= receiptEvery || now-r.since >= receiptDelay)
}

// wake is when receiptDue becomes true.
func (r *receiver) wake() time.Duration {
	switch {
	case r.owed == 0:
		return never
	case r.hurry || r.owed >= receiptEvery:
		return 0
	}
	return r.since + receiptDelay
}

// write puts the receipt into a packet. If something is missing, only a receipt alone tells
// what.
func (r *receiver) write(now time.Duration, h *header) {
	h.want = r.want
	if r.owed > 0 {
		h.flags |= flagHeld
		h.held = r.left + stampOf(now-r.came)
	}
	if h.kind.numbered() && r.seen != (sightings{}) {
		return
	}
	h.sighted = r.seen
	r.owed, r.hurry = 0, false
}
