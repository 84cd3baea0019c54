package dgram

import (
	"math/bits"
	"time"
)

// What an ack does to the sending half: acknowledge measures the round trip,
// counts what has arrived, finds what is lost and gives the finished messages
// back; expire acts when no ack comes.
//
// Loss is found by time, as RFC 8985 (RACK) has it: a datagram is lost when one
// that left after it has arrived and it has not, a little later. The ack
// reports when the latest arrival left, so a repeated datagram is no riddle: its
// second departure has another time.

// ack is what a receiver tells of the datagrams it has.
type ack struct {
	next  psn            // the first that it lacks
	seen  receiveHistory // those beyond
	stamp stamp          // when the latest arrival left, by the clock of who sent it
	held  uint16         // microseconds that the ack lay with the receiver
}

// stamp is a time on the wire: microseconds, 32 bits of them.
type stamp uint32

func stampOf(now time.Duration) stamp { return stamp(now / time.Microsecond) }

// since is the time from the stamp to now. It is nonsense beyond an hour.
func (t stamp) since(now time.Duration) time.Duration {
	return time.Duration(stampOf(now)-t) * time.Microsecond
}

// maxRTT is the longest round trip that is believed.
const maxRTT = time.Minute

// acknowledge takes in an ack and gives the list of messages that are finished,
// in the order in which they were pushed. An ack that is older than one taken in
// before, or speaks of datagrams that were never sent, changes nothing.
func (s *sender) acknowledge(now time.Duration, r *ack) *message {
	if r.next.before(s.first) || s.fresh.before(r.next) || s.first == s.fresh {
		return nil
	}
	before := s.underWay
	s.measure(now, r)
	finished := s.advance(r.next)
	if s.first == s.fresh {
		s.cong.settled(now, before, 0, before)
		s.reset()
		return finished
	}
	s.mark(&r.seen)
	came := before - s.underWay
	gone := s.findLost(now)
	s.cong.settled(now, came, gone, before)
	s.lastAckAt = now
	if came > 0 {
		s.silences = 0
		s.expireAt = now + s.ackTimeout()
	}
	return finished
}

// measure learns the round trip from the stamp that came back.
func (s *sender) measure(now time.Duration, r *ack) {
	age := r.stamp.since(now)
	trip := age - time.Duration(r.held)*time.Microsecond
	if trip < 0 || age > maxRTT {
		return
	}
	s.newestSent = max(s.newestSent, (now/time.Microsecond)*time.Microsecond-age)
	s.cong.sampled(now, trip)
}

// advance forgets everything before next.
func (s *sender) advance(next psn) (finished *message) {
	var last *message
	for ; s.first != next; s.first++ {
		e := s.at(s.first)
		switch e.state {
		case underWay:
			s.underWay -= cost(int(e.length))
		case arrived:
			s.arrived--
		case lost:
			s.lost--
		}
		if e.last {
			last = e.message
		}
		e.message = nil
	}
	if last != nil {
		finished, s.oldest = s.oldest, last.following
		last.following = nil
	}
	return finished
}

// mark notes which datagrams beyond the first missing one have arrived.
func (s *sender) mark(seen *receiveHistory) {
	for w, word := range seen {
		for ; word != 0; word &= word - 1 {
			p := s.first + psn(w*64+bits.TrailingZeros64(word))
			if !p.before(s.fresh) {
				return
			}
			switch e := s.at(p); e.state {
			case underWay:
				s.underWay -= cost(int(e.length))
				s.arrived++
				e.state = arrived
			case lost: // it was only late
				s.lost--
				s.arrived++
				e.state = arrived
			}
		}
	}
}

// findLost marks what must go again and gives its cost. What may still come is
// looked at again at lookAt.
func (s *sender) findLost(now time.Duration) (gone int) {
	s.lookAt = never
	if s.arrived == 0 && s.at(s.first).at >= s.newestSent {
		return 0 // everything under way left after the latest arrival
	}
	for p := s.first; p != s.fresh; p++ {
		e := s.at(p)
		if e.state != underWay || e.at >= s.newestSent {
			continue
		}
		if due := e.at + s.cong.smoothed + s.cong.reordering(); now < due {
			s.lookAt = min(s.lookAt, due)
			continue
		}
		gone += s.lose(e)
		s.lostAt = max(stampOf(now), 1)
	}
	return gone
}

func (s *sender) lose(e *sent) int {
	e.state = lost
	s.lost++
	s.underWay -= cost(int(e.length))
	return cost(int(e.length))
}

// expire does what is due at now. The first silence sends the oldest datagram
// again, because the last of a burst may have been lost with nothing behind it to
// tell; a second one takes everything under way for lost.
func (s *sender) expire(now time.Duration) {
	if now >= s.lookAt {
		before := s.underWay
		s.cong.settled(now, 0, s.findLost(now), before)
	}
	if now < s.expireAt {
		return
	}
	s.lostAt = max(stampOf(now), 1)
	if s.silences < 255 {
		s.silences++
	}
	for p := s.first; p != s.fresh; p++ {
		if e := s.at(p); e.state == underWay {
			s.lose(e)
			if s.silences == 1 {
				break
			}
		}
	}
	if s.silences == 2 {
		s.cong.silent()
	}
	s.expireAt = now + s.ackTimeout()
}
