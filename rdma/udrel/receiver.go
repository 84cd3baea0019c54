package udrel

import "time"

// The receiving half of a peer, without device or clock. classify classifies a packet,
// hold and deliver record it, and ackDue and write produce acks.

const (
	// ackEvery is how many packets share one ack (T1 6.6.1).
	ackEvery = 50
	// ackDelay is how long an ack may wait for a packet to be piggybacked on.
	ackDelay = time.Millisecond
)

// classification is what a sequence number means to the receiver.
type classification uint8

const (
	inOrder   classification = iota // the next one
	early                           // one of those behind it
	duplicate                       // already received
	beyond                          // beyond the window
)

// receiver is the receiving half of a peer.
type receiver struct {
	want       psn
	seen       receiveHistory
	left       stamp         // send time of the packet that the next ack is for
	came       time.Duration // when it arrived
	since      time.Duration // arrival of the first unacked packet
	ackPending uint8         // packets received and not acked
	ackNow     bool          // an ack is requested at once
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

// queueAck makes an ack pending for a packet.
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

// hold records a packet that cannot be delivered yet.
func (r *receiver) hold(number psn) { r.seen.set(number - r.want) }

// holds reports whether the next packet in order has arrived.
func (r *receiver) holds() bool { return r.seen[0]&1 != 0 }

// ackDelivered makes an ack pending because packets from the reorder buffer were
// delivered: the peer may wait for that.
func (r *receiver) ackDelivered(now time.Duration) {
	if r.ackPending == 0 {
		r.ackPending, r.since = 1, now
	}
}

// deliver records the delivery of the next packet.
func (r *receiver) deliver() {
	r.want++
	r.seen.shift()
}

// ackDue reports whether an ack should be sent now, with a packet or without.
func (r *receiver) ackDue(now time.Duration) bool {
	return r.ackPending > 0 && (r.ackNow || r.ackPending >= ackEvery || now-r.since >= ackDelay)
}

// wake returns when ackDue becomes true.
func (r *receiver) wake() time.Duration {
	switch {
	case r.ackPending == 0:
		return never
	case r.ackNow || r.ackPending >= ackEvery:
		return 0
	}
	return r.since + ackDelay
}

// write puts the ack into a packet. Only an ack without a segment has room for the
// receive history.
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
