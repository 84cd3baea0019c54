package p2p

// Cancelling an unmatched receive. While its RTR is open, the sender may be writing
// already. An RTR of a later receive of the envelope counts this receive, so it would
// refer to another message if this one were removed. So all of these RTRs are revoked
// first:
//
//	sender                receiver
//	       ◀────────────── REVOKE     (Cancel; one for each RTR)
//	REVOKED ─────────────▶ no RTR is open any more: the receive is cancelled
//
// The sender answers in any case, and in order: if it has used the RTR before, the RTS
// arrives before the answer, the receive is matched, and cancelling has failed. Meanwhile
// no receive of the envelope sends an RTR: it could not count the receives ahead of it.

// Cancel cancels an unmatched receive. If pending, it will be cancelled when the sender
// agrees, unless a message matches it first; the completion shows which. Sends cannot be
// cancelled: MPI 4.0 deprecated it, and the packets may have been sent already.
func (m *Machine) Cancel(x *Xfer) (cancelled, pending bool) {
	if x.cancelling {
		return false, true
	}
	if x.Send || x.stage != stagePosted && x.stage != stageReady {
		return false, false
	}
	if !m.revokeFrom(x) {
		m.finishCancelled(x)
		return true, false
	}
	x.cancelling = true
	x.entry.cancels++
	if x.stage == stagePosted {
		x.stage = stageCancelling
	}
	return false, true
}

// revokeFrom revokes the RTRs of a receive and of those behind it. It returns false if
// there are none.
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

// arriveRevoke removes an RTR, if it is unused, and answers.
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

// arriveRevoked ends an RTR that was not used, and completes the receives that waited for
// it. A receive that was matched meanwhile has no RTR any more.
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
			m.finishCancelled(y)
		}
		y = before
	}
}

// finishCancelled completes a receive as cancelled, or with an error if Drop has cancelled it.
func (m *Machine) finishCancelled(x *Xfer) {
	m.unpost(x, offerDropped)
	if x.Err = m.dropped[x.Ctx]; x.Err == nil {
		x.Cancelled = true
	}
	m.complete(x)
}
