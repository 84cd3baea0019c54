package dgram

import (
	"math/bits"
	"time"
)

// How the sending half processes acks. acknowledge measures the round-trip time, counts
// what has arrived, detects loss and returns finished messages. expire handles the
// absence of acks.
//
// Loss is detected by time, as in RACK (RFC 8985): a datagram is lost when one that was
// sent later has arrived, and a reordering delay has passed since. The ack echoes the
// send time of the latest arrival, so a retransmitted datagram is not ambiguous.

// ack reports which datagrams a receiver has.
type ack struct {
	next  psn            // the first missing one
	seen  receiveHistory // arrivals beyond next
	stamp stamp          // send time of the latest arrival, by the sender's clock
	held  uint16         // ack delay at the receiver in microseconds
}

// stamp is a time on the wire: 32 bits of microseconds.
type stamp uint32

func stampOf(now time.Duration) stamp { return stamp(now / time.Microsecond) }

// since returns the time from the stamp to now. The result is meaningless beyond an
// hour.
func (t stamp) since(now time.Duration) time.Duration {
	return time.Duration(stampOf(now)-t) * time.Microsecond
}

// maxRTT is the longest round-trip time that is accepted as a sample.
const maxRTT = time.Minute

// acknowledge processes an ack and returns the list of finished messages, in the order
// in which they were pushed. It ignores an ack that is older than the newest one, or
// names datagrams that were never sent.
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

// measure takes a round-trip sample from the echoed stamp.
func (s *sender) measure(now time.Duration, r *ack) {
	age := r.stamp.since(now)
	trip := age - time.Duration(r.held)*time.Microsecond
	if trip < 0 || age > maxRTT {
		return
	}
	s.newestSent = max(s.newestSent, (now/time.Microsecond)*time.Microsecond-age)
	s.cong.sampled(now, trip)
}

// advance removes everything before next.
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

// mark records which datagrams beyond the first missing one have arrived.
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

// findLost marks the datagrams to retransmit and returns their cost. lookAt is when
// those that may still arrive are checked again.
func (s *sender) findLost(now time.Duration) (gone int) {
	s.lookAt = never
	if s.arrived == 0 && s.at(s.first).at >= s.newestSent {
		return 0 // everything in flight was sent after the latest arrival
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

// expire does what is due at now. The first timeout retransmits the oldest datagram,
// because the last datagram of a burst may be lost with none behind it that reveals the
// loss. The second timeout marks everything in flight as lost.
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
