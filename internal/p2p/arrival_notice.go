package p2p

// Arrival notices. A collective that sends first to peers that have arrived (T2 6.4)
// needs no extra message: a peer that offers a buffer for our next message of an
// envelope has posted the receive for it, and a receive whose message has been announced
// has a sender.

// OfferBlocking is Offer for a receive of a rank that only waits for it, such as one in
// a blocking collective. It can offer its buffer over any device that supports writes:
// what the device leaves to this rank's CPU is done at once.
func (m *Machine) OfferBlocking(x *Xfer) { m.offer(x, true) }

// HasOffer reports whether the peer has offered a buffer for our next message of an
// envelope.
func (l *Link) HasOffer(ctx uint32, tag int32) bool {
	if len(l.offers) == 0 {
		return false
	}
	key := envelopeKey(ctx, tag)
	for i := range l.offers {
		if o := &l.offers[i]; o.key == key && o.skip == 0 {
			return true
		}
	}
	return false
}

// Announced reports whether the message of a receive has arrived or is announced.
func (x *Xfer) Announced() bool {
	return x.stage > stagePosted && x.stage != stageReady && x.stage != stageCancelling
}
