package udrel

import "time"

// The sending half of what is kept of a peer, without device or clock: push takes a
// message, next cuts the next packet or repeats one, acknowledge hears what has come, and
// expire what time tells.
//
// T1 6.6.1 has sequence numbers, an ack for every 50 messages, and time-outs of a
// fraction of a second. Here a time-out is measured from the round trip (RFC 6298), a
// ack also reports which packets have come out of order, so that the few that are
// missing alone go again, and as much is under way as the path has shown to carry: the
// buffers of a socket or of a receive queue overflow before a wire does.

const (
	// minRTO is more than a peer keeps an ack that nobody asks for.
	minRTO     = 5 * time.Millisecond
	maxRTO     = 500 * time.Millisecond
	initialRTO = 20 * time.Millisecond
	// passed is how many later packets must have come for one to count as lost.
	packetThreshold = 3
	// least and first packets that may be under way.
	minWindow     = 4
	initialWindow = 16
)

// fate is what became of a packet.
type packetState uint8

const (
	stateNone     packetState = iota
	statePending              // is to leave, for the first time or again
	stateInFlight             // has left
	stateAcked                // the peer has it
)

// flight is a packet that has a number.
type sentPacket struct {
	message     *message
	offset      int32
	length      int32
	left        time.Duration
	tries       uint8
	packetState packetState
}

type sendWindow [window]sentPacket

// sender is what is kept of a peer for sending. An idle one has no send windows.
type sender struct {
	sendWindow *sendWindow
	queue      *message // the first that is not all cut
	tail       *message
	due        time.Duration // of the time-out
	smoothed   time.Duration // round trip, 0: never measured
	spread     time.Duration
	first      psn // the oldest that the peer may want
	number     psn // of the next packet
	again      psn // losses before it belong to one event
	scan       psn // no packet before it is waiting
	waiting    uint8
	inFlight   uint8
	cwnd       uint8
	gained     uint8 // packets that came since allowed has grown
	ssthresh   uint8 // from here on it grows slowly
	backoff    uint8 // times that the time-out was doubled
}

// window pool lends send windows to senders that have something under way.
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

// push takes a message.
func (s *sender) push(m *message) {
	if s.tail == nil {
		s.queue = m
	} else {
		s.tail.following = m
	}
	s.tail = m
	m.following, m.pieces, m.cut = nil, 0, 0
}

// idle reports whether nothing is to be sent or to be heard of.
func (s *sender) idle() bool { return s.queue == nil && s.first == s.number }

// next gives the next packet that may leave now.
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
	if s.scan == number { // nothing waits
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

// stays takes back that a packet has left: the device had no room.
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

// urgent reports whether a packet should be answered at once: somebody waits for its
// ack, or too much is under way.
func (s *sender) urgent(f *sentPacket) bool {
	last := f.message.whole && int(f.offset+f.length) == f.message.length()
	return f.tries > 1 || last && f.message.awaited && s.queue == nil || s.number-s.first == window/2 || s.inFlight == s.cwnd
}

// timeout is RFC 6298 section 2, with more patience each time nothing came.
func (s *sender) timeout() time.Duration {
	t := initialRTO
	if s.smoothed > 0 {
		t = min(max(s.smoothed+4*s.spread, minRTO), maxRTO)
	}
	return min(t<<s.backoff, maxRTO)
}

// acknowledge hears an ack: all before want has come, and what is sighted. It gives the
// messages that have come as a whole, in a list. Nonsense is no ack.
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

// lost marks what others have overtaken, unless it has left again since.
func (s *sender) lost(now time.Duration, highest psn) {
	for n := s.first; n != s.number && (n + packetThreshold - 1).before(highest); n++ {
		f := &s.sendWindow[n%window]
		if f.packetState != stateInFlight || f.tries > 1 && now-f.left < s.smoothed+2*s.spread {
			continue
		}
		s.markLost(n, f)
	}
}

// miss lets a packet leave again, and less be under way, once for each event.
func (s *sender) markLost(n psn, f *sentPacket) {
	f.packetState = statePending
	s.inFlight--
	s.wait(n)
	if !n.before(s.again) {
		s.cwnd = max(s.cwnd/2, minWindow)
		s.ssthresh, s.again, s.gained = s.cwnd, s.number, 0
	}
}

// gain lets more be under way: at first one for each that comes, later one for a
// whole window of them.
func (s *sender) grow() {
	if s.cwnd >= window {
		return
	}
	if s.gained++; s.cwnd < s.ssthresh || s.gained >= s.cwnd {
		s.cwnd++
		s.gained = 0
	}
}

// measure takes in a round trip (RFC 6298 section 2).
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

// expire does what is due. It is true if the peer should be asked what it has: all has
// come, and it has no room for more, or its word was lost.
func (s *sender) expire(now time.Duration) (probe bool) {
	if s.first == s.number || now < s.due {
		return false
	}
	// All count as lost. Few leave at once, and the ack for those reports which of the
	// others have come.
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

// wake is when expire has something to do.
func (s *sender) wake() time.Duration {
	if s.first == s.number {
		return never
	}
	return s.due
}

// releaseWindow returns the send windows back if nothing is under way.
func (s *sender) releaseWindow(h *windowPool) {
	if s.first == s.number && s.sendWindow != nil {
		h.free = append(h.free, s.sendWindow)
		s.sendWindow, s.due = nil, never
	}
}

// abandon gives all messages that have not come, in a list, and keeps none.
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
