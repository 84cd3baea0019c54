package udrel

import "time"

// The receiving half of what is kept of a peer, without device or clock: judge says what a
// packet is, accept and deliver book it, ackDue and write make acks.

const (
	// ackEvery is how many packets are received for by one ack (T1 6.6.1).
	ackEvery = 50
	// ackDelay is how long an ack may wait for a packet to ride on.
	ackDelay = time.Millisecond
)

// classification is what a packet is to the receiver.
type classification uint8

const (
	inOrder   classification = iota // the one that is wanted
	early                           // one of those behind it
	duplicate                       // one that has come
	beyond                          // one that may not have left yet
)

// receiver is what is kept of a peer for receiving.
type receiver struct {
	want       psn
	seen       receiveHistory
	left       stamp         // of the packet that the next ack is for
	came       time.Duration // when it came
	since      time.Duration // when the first packet came that no ack is sent for
	ackPending uint8         // packets that no ack is sent for
	ackNow     bool          // one is wanted at once
}

func (r *receiver) classify(number psn) classification {
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

// owe notes that an ack is wanted for a packet.
func (r *receiver) queueAck(now time.Duration, h *header, urgent bool) {
	if r.ackPending == 0 {
		r.since = now
	}
	if r.ackPending < 255 {
		r.ackPending++
	}
	r.left, r.came = h.left, now
	r.ackNow = r.ackNow || urgent || h.flags&flagUrgent != 0
}

// hold notes that a packet has come that cannot be delivered yet.
func (r *receiver) hold(number psn) { r.seen.set(number - r.want) }

// holds reports whether the packet that is wanted has come.
func (r *receiver) holds() bool { return r.seen[0]&1 != 0 }

// lag owes an ack because packets that had to wait were delivered: the peer may wait
// for that.
func (r *receiver) ackDelivered(now time.Duration) {
	if r.ackPending == 0 {
		r.ackPending, r.since = 1, now
	}
}

// deliver notes that the packet that was wanted is delivered.
func (r *receiver) deliver() {
	r.want++
	r.seen.shift()
}

// ackDue reports whether an ack should leave now, with a packet or without.
func (r *receiver) ackDue(now time.Duration) bool {
	return r.ackPending > 0 && (r.ackNow || r.ackPending >= ackEvery || now-r.since >= ackDelay)
}

// wake is when ackDue becomes true.
func (r *receiver) wake() time.Duration {
	switch {
	case r.ackPending == 0:
		return never
	case r.ackNow || r.ackPending >= ackEvery:
		return 0
	}
	return r.since + ackDelay
}

// write puts the ack into a packet. If something is missing, only an ack alone tells
// what.
func (r *receiver) write(now time.Duration, h *header) {
	h.want = r.want
	if r.ackPending > 0 {
		h.flags |= flagHeld
		h.held = r.left + stampOf(now-r.came)
	}
	if h.kind.numbered() && r.seen != (receiveHistory{}) {
		return
	}
	h.history = r.seen
	r.ackPending, r.ackNow = 0, false
}
