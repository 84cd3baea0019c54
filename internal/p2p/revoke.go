package p2p

// Taking back a receive that no message has met. While an RTR is out for it, the
// sender may be writing already; and an RTR of a later receive of the envelope
// counts this one, so that it would be for another message if this one were gone.
// So all of these are revoked first:
//
//	sender                receiver
//	       ◀────────────── REVOKE     (Cancel; one for each RTR)
//	REVOKED ─────────────▶ none is out any more: the receive ends, cancelled
//
// The sender answers in any case, and in order: if it has used the RTR before, the
// RTS comes before the answer, the receive is met, and the cancelling has failed.
// Meanwhile no receive of the envelope sends an RTR: it could not say how many are
// ahead of it.

// Cancel takes back a receive that no message has met. If pending, it will be
// taken back when the sender agrees, unless a message meets it before that; its
// end tells. Sends cannot be called back: MPI 4.0 deprecated it, and the packets
// may be gone already.
func (m *Machine) Cancel(x *Xfer) (cancelled, pending bool) {
	if x.cancelling {
		return false, true
	}
	if x.Send || x.stage != stagePosted && x.stage != stageReady {
		return false, false
	}
	if !m.revokeFrom(x) {
		m.cancelled(x)
		return true, false
	}
	x.cancelling = true
	x.entry.cancels++
	if x.stage == stagePosted {
		x.stage = stageCancelling
	}
	return false, true
}

// revokeFrom asks for the RTRs of a receive and of those behind it. It is false
// if none is out.
func (m *Machine) revokeFrom(x *Xfer) (any bool) {
	l := x.Link
	if l == nil || l.offered == 0 {
		return false
	}
	for y := x; y != nil; y = y.next {
		if y.stage != stageReady {
			continue
		}
		any = true
		if !y.revoking {
			y.revoking = true
			wr := m.packet(l)
			m.control(wr, l, kindRevoke, y.handle, 0, 0)
		}
	}
	return any
}

// arriveRevoke forgets an RTR, if it is still here, and says so.
func (m *Machine) arriveRevoke(l *Link, handle uint64) {
	for i := range l.offers {
		if l.offers[i].handle == handle {
			l.dropOffer(i)
			break
		}
	}
	wr := m.packet(l)
	m.control(wr, l, kindRevoked, handle, 0, 0)
}

// arriveRevoked ends an RTR that was not used, and the receives that waited for
// it. A receive that a message has met meanwhile has no RTR any more.
func (m *Machine) arriveRevoked(l *Link, handle uint64) {
	x := m.find(handle)
	if x == nil || x.stage != stageReady || !x.revoking || x.Link != l {
		return
	}
	m.closeOffer(x, offerRevoked)
	x.revoking = false
	if x.cancelling {
		x.stage = stageCancelling
	}
	for y := x.entry.posted.tail; y != nil && y.stage != stageReady; {
		before := y.prev
		if y.cancelling {
			m.cancelled(y)
		}
		y = before
	}
}

// cancelled ends a receive without a message.
func (m *Machine) cancelled(x *Xfer) {
	m.unpost(x, offerDropped)
	x.Cancelled = true
	m.complete(x)
}
