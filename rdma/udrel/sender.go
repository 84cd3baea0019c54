package udrel

import "time"

// The sending half of a peer, without device or clock. push queues a message, next
// returns the next packet to send or retransmit, acknowledge processes an ack, and
// expire handles timeouts.
//
// T1 6.6.1 has sequence numbers, an ack for every 50 messages, and timeouts of a
// fraction of a second. Here the timeout is derived from the round-trip time (RFC
// 6298). An ack also reports packets received out of order, so that only the missing
// ones are retransmitted. The window adapts to what the path carries: the buffers of a
// socket or receive queue overflow before a wire does.

const (
	// minRTO is longer than a peer delays an unrequested ack.
	minRTO     = 5 * time.Millisecond
	maxRTO     = 500 * time.Millisecond
	initialRTO = 20 * time.Millisecond
	// packetThreshold is how many later packets must arrive before one counts as lost.
	packetThreshold = 3
	// minWindow and initialWindow bound the packets in flight.
	minWindow     = 4
	initialWindow = 16
)

// packetState is the state of a numbered packet.
type packetState uint8

const (
	stateNone     packetState = iota
	statePending              // to be sent, for the first time or again
	stateInFlight             // sent
	stateAcked                // the peer has it
)

// sentPacket is a numbered packet.
type sentPacket struct {
	message     *message
	offset      int32
	length      int32
	left        time.Duration
	tries       uint8
	packetState packetState
}

type sendWindow [window]sentPacket

// sender is the sending half of a peer. An idle one has no send window.
type sender struct {
	sendWindow *sendWindow
	queue      *message // the first not fully segmented
	tail       *message
	due        time.Duration // of the retransmission timeout
	smoothed   time.Duration // round-trip time; 0: not measured
	spread     time.Duration
	first      psn // the oldest that is not acked
	number     psn // of the next packet
	again      psn // losses before it belong to one event
	scan       psn // no packet before it is pending
	waiting    uint8
	inFlight   uint8
	cwnd       uint8
	gained     uint8 // packets acked since cwnd last grew
	ssthresh   uint8 // from here on cwnd grows slowly
	backoff    uint8 // consecutive doublings of the timeout
}

// windowPool lends send windows to senders with packets in flight.
type windowPool struct {
	free     []*sendWindow
	made     int
	repeated uint64
}

func (h *windowPool) take() *sendWindow {
	if n := len(h.free); n > 0 {
		f := h.free[n-1]
		h.free = h.free[:n-1]
		return f
	}
	h.made++
	return new(sendWindow)
}

// push queues a message.
func (s *sender) push(m *message) {
	if s.tail == nil {
		s.queue = m
	} else {
		s.tail.following = m
	}
	s.tail = m
	m.following, m.pieces, m.cut = nil, 0, 0
}

// idle reports whether nothing is to be sent or acked.
func (s *sender) idle() bool { return s.queue == nil && s.first == s.number }

// next returns the next packet that may be sent now.
func (s *sender) next(now time.Duration, h *windowPool) (psn, *sentPacket) {
	if s.cwnd == 0 {
		s.cwnd, s.ssthresh = initialWindow, window
	}
	if s.inFlight >= s.cwnd {
		return 0, nil
	}
	if s.waiting > 0 {
		for ; s.scan != s.number; s.scan++ {
			if f := &s.sendWindow[s.scan%window]; f.packetState == statePending {
				if f.tries > 0 {
					h.repeated++
				}
				s.waiting--
				return s.scan, s.leaves(now, f)
			}
		}
	}
	if s.queue == nil || s.number-s.first >= window {
		return 0, nil
	}
	if s.sendWindow == nil {
		s.sendWindow = h.take()
	}
	m, number := s.queue, s.number
	f := &s.sendWindow[number%window]
	*f = sentPacket{message: m, offset: int32(m.cut), length: int32(m.pieceAt(m.cut))}
	m.cut += int(f.length)
	m.pieces++
	if m.cut == m.length() {
		m.whole = true
		if s.queue = m.following; s.queue == nil {
			s.tail = nil
		}
		m.following = nil
	}
	if s.scan == number { // nothing is pending
		s.scan++
	}
	s.number++
	return number, s.leaves(now, f)
}

func (s *sender) leaves(now time.Duration, f *sentPacket) *sentPacket {
	f.packetState, f.left = stateInFlight, now
	if f.tries < 255 {
		f.tries++
	}
	if s.inFlight++; s.inFlight == 1 || s.due == never {
		s.due = now + s.timeout()
	}
	return f
}

// undoSend undoes the sending of a packet that the device did not accept.
func (s *sender) undoSend(n psn) {
	if s.sendWindow == nil || n.before(s.first) {
		return // it was abandoned
	}
	f := &s.sendWindow[n%window]
	if f.packetState != stateInFlight {
		return
	}
	f.packetState = statePending
	f.tries--
	s.inFlight--
	s.wait(n)
}

func (s *sender) wait(n psn) {
	s.waiting++
	if n.before(s.scan) {
		s.scan = n
	}
}

// urgent reports whether to request an ack at once: the user waits for the completion,
// or too much is in flight.
func (s *sender) urgent(f *sentPacket) bool {
	last := f.message.whole && int(f.offset+f.length) == f.message.length()
	return f.tries > 1 || last && f.message.awaited && s.queue == nil || s.number-s.first == window/2 || s.inFlight == s.cwnd
}

// timeout returns the retransmission timeout of RFC 6298 section 2, doubled after each
// expiry.
func (s *sender) timeout() time.Duration {
	t := initialRTO
	if s.smoothed > 0 {
		t = min(max(s.smoothed+4*s.spread, minRTO), maxRTO)
	}
	return min(t<<s.backoff, maxRTO)
}

// acknowledge processes an ack: everything before want and everything in seen has
// arrived. It returns the list of messages that have arrived completely. It ignores an
// invalid ack.
func (s *sender) acknowledge(now time.Duration, want psn, seen *receiveHistory, h *windowPool) (done *message) {
	if want.before(s.first) || s.number.before(want) {
		return nil
	}
	var end **message = &done
	newlyAcked, highest := false, want
	arrive := func(n psn) {
		f := &s.sendWindow[n%window]
		switch f.packetState {
		case stateAcked, stateNone:
			return
		case stateInFlight:
			s.inFlight--
		case statePending:
			s.waiting--
		}
		newlyAcked = true
		s.grow()
		m := f.message
		*f = sentPacket{packetState: stateAcked}
		if m.pieces--; m.pieces == 0 && m.whole {
			*end, m.following = m, nil
			end = &m.following
		}
	}
	for n := s.first; n != want; n++ {
		arrive(n)
		s.sendWindow[n%window].packetState = stateNone
	}
	s.first = want
	if s.scan.before(want) {
		s.scan = want
	}
	if seen != nil {
		for i := range psn(window) {
			if n := want + i; n.before(s.number) && seen.has(i) {
				arrive(n)
				highest = n
			}
		}
		s.lost(now, highest)
	}
	if newlyAcked {
		s.backoff = 0
		s.due = now + s.timeout()
	}
	s.releaseWindow(h)
	return done
}

// lost marks packets as lost that later ones have overtaken, unless they were
// retransmitted since.
func (s *sender) lost(now time.Duration, highest psn) {
	for n := s.first; n != s.number && (n + packetThreshold - 1).before(highest); n++ {
		f := &s.sendWindow[n%window]
		if f.packetState != stateInFlight || f.tries > 1 && now-f.left < s.smoothed+2*s.spread {
			continue
		}
		s.markLost(n, f)
	}
}

// markLost makes a packet pending again and reduces cwnd, once for each loss event.
func (s *sender) markLost(n psn, f *sentPacket) {
	f.packetState = statePending
	s.inFlight--
	s.wait(n)
	if !n.before(s.again) {
		s.cwnd = max(s.cwnd/2, minWindow)
		s.ssthresh, s.again, s.gained = s.cwnd, s.number, 0
	}
}

// grow increases cwnd: by one for each acked packet in slow start, later by one for
// each window.
func (s *sender) grow() {
	if s.cwnd >= window {
		return
	}
	if s.gained++; s.cwnd < s.ssthresh || s.gained >= s.cwnd {
		s.cwnd++
		s.gained = 0
	}
}

// measure adds a round-trip sample (RFC 6298 section 2).
func (s *sender) measure(trip time.Duration) {
	if trip < 0 || trip > time.Minute {
		return
	}
	trip = max(trip, time.Microsecond)
	if s.smoothed == 0 {
		s.smoothed, s.spread = trip, trip/2
		return
	}
	off := s.smoothed - trip
	if off < 0 {
		off = -off
	}
	s.spread += (off - s.spread) / 4
	s.smoothed += (trip - s.smoothed) / 8
}

// expire handles the timeout. It returns true if the peer should be probed: everything
// was received, and it has no room for more or its ack was lost.
func (s *sender) expire(now time.Duration) (probe bool) {
	if s.first == s.number || now < s.due {
		return false
	}
	// All count as lost. Few are sent at once, and the ack for those reports which of
	// the others have arrived.
	for n := s.first; n != s.number; n++ {
		if f := &s.sendWindow[n%window]; f.packetState == stateInFlight {
			s.markLost(n, f)
		}
	}
	if s.waiting > 0 {
		s.cwnd = minWindow
	}
	if s.backoff < 8 {
		s.backoff++
	}
	s.due = now + s.timeout()
	return s.waiting == 0
}

// wake returns when expire has work.
func (s *sender) wake() time.Duration {
	if s.first == s.number {
		return never
	}
	return s.due
}

// releaseWindow returns the send window if nothing is in flight.
func (s *sender) releaseWindow(h *windowPool) {
	if s.first == s.number && s.sendWindow != nil {
		h.free = append(h.free, s.sendWindow)
		s.sendWindow, s.due = nil, never
	}
}

// abandon returns the list of unfinished messages and resets the sender.
func (s *sender) abandon(h *windowPool) (list *message) {
	end := &list
	add := func(m *message) {
		if *end, m.following = m, nil; true {
			end = &m.following
		}
	}
	var latest *message
	for n := s.first; n != s.number; n++ {
		f := &s.sendWindow[n%window]
		if m := f.message; m != nil && m != latest {
			latest = m
			m.pieces = 0
			if m != s.queue {
				add(m)
			}
		}
		*f = sentPacket{}
	}
	for m := s.queue; m != nil; {
		following := m.following
		add(m)
		m = following
	}
	s.queue, s.tail, s.first, s.scan, s.waiting, s.inFlight = nil, nil, s.number, s.number, 0, 0
	s.releaseWindow(h)
	return list
}
