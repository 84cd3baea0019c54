package reliable

import "time"

// How the sending half processes acks. Acknowledge measures the round-trip time, counts
// what has arrived, detects loss and returns finished messages. Expire handles the
// absence of acks.
//
// Loss is detected by time, as in RACK (RFC 8985): a packet is lost when one that was
// sent later on the same path has arrived, and a reordering delay has passed since.
// Numbers are not used again, so a retransmitted packet is not ambiguous (RFC 9002
// section 4.2).
//
// A message is finished when the cumulative part of an ack covers it. An ack of a packet
// alone does not finish anything: a receiver may drop an incomplete segment whose
// packets it has acked, as TCP's may drop what it has reported in a SACK (RFC 2018
// section 8).

// MaxWords is the maximum number of words of an ack.
const MaxWords = packetWindow / 64

// Ack reports what a receiver has.
type Ack struct {
	Next    Sequence         // the first missing segment
	End     Number           // after the largest packet received on the path
	Span    uint16           // how many packets before End the ack reports
	Held    uint16           // time since the largest has arrived, in microseconds
	Path    uint8            // on which the packets have arrived
	Words   uint8            // of Missing, the others are zero
	Missing [MaxWords]uint64 // bit i is the packet i before the largest
}

// has reports whether the ack reports a packet before End as received.
func (r *Ack) has(n Number) bool {
	i := uint32(r.End - 1 - n)
	return i < uint32(r.Span) && (i >= 64*uint32(r.Words) || r.Missing[i/64]>>(i%64)&1 == 0)
}

// misses reports whether the ack reports a packet before End as missing.
func (r *Ack) misses(n Number) bool { return uint32(r.End-1-n) < uint32(r.Span) && !r.has(n) }

// maxRTT is the longest round-trip time that is accepted as a sample.
const maxRTT = time.Minute

// Acknowledge processes an ack and returns the list of finished messages, in the order
// in which they were segmented. It ignores an ack that is older than the newest one, or
// names packets that were never sent.
func (s *Peer[T]) Acknowledge(now time.Duration, r *Ack) *Message[T] {
	if int(r.Path) >= s.Paths() || s.fresh.Before(r.Next) {
		return nil
	}
	p := s.path(int(r.Path))
	if p.fresh.Before(r.End) {
		return nil
	}
	s.recordProof(int(r.Path), r)
	if s.first == s.fresh || s.Paths() == 1 && r.Next.Before(s.first) {
		s.late(now, p, r)
		return nil
	}
	before := p.underWay
	p.measure(now, r)
	s.compare(now, p, r)
	judged := s.judge(now, p, r)
	var finished *Message[T]
	if s.first.Before(r.Next) {
		finished = s.advance(r.Next)
	}
	if s.first == s.fresh {
		p.meter(now, before)
		p.cong.countAck(now, before, judged, before)
		s.resetPath(p)
		s.finish(now)
		return finished
	}
	s.settle(now, p, r)
	came := before - p.underWay
	gone := judged + s.findLost(now, p)
	p.meter(now, came)
	p.cong.countAck(now, came, gone, before)
	s.lastAckAt = now
	if came > 0 {
		p.silences = 0
		p.expireAt = now + s.ackTimeout(p)
	}
	if p.underWay == 0 && s.others(p) {
		p.expireAt = Never
	}
	return finished
}

// measure takes a round-trip sample if the largest packet is reported for the first
// time (RFC 9002 section 5.1).
func (p *path) measure(now time.Duration, r *Ack) {
	if !p.first.Before(r.End) || !p.largest.Before(r.End) || r.Span == 0 {
		return
	}
	p.largest = r.End
	e := p.packets.at(uint32(r.End - 1))
	if took := now - e.at - time.Duration(r.Held)*time.Microsecond; e.state != settled && took >= 0 && took <= maxRTT {
		p.cong.addSample(now, took)
	}
}

// advance removes the segments before next.
func (s *Peer[T]) advance(next Sequence) (finished *Message[T]) {
	var last *Message[T]
	for ; s.first != next; s.first++ {
		e := s.at(s.first)
		if e.last {
			last = e.message
		}
		s.forget(e)
	}
	if last != nil {
		finished, s.oldest = s.oldest, last.Following
		last.Following = nil
	}
	return finished
}

// settle records which packets have arrived, and forgets the oldest.
func (s *Peer[T]) settle(now time.Duration, p *path, r *Ack) {
	for n := p.first; n.Before(r.End); n++ {
		e := p.packets.at(uint32(n))
		if e.state == settled || !e.sequence.Before(s.first) && !r.has(n) {
			continue
		}
		if e.state == underWay {
			p.underWay -= int(e.cost)
		}
		e.state = settled
		if e.sequence.Before(s.first) {
			continue
		}
		g, bit := s.at(e.sequence), uint64(1)<<e.position
		g.arrived |= bit
		if g.lost&bit != 0 { // it was only late
			g.lost &^= bit
			s.lost--
		}
	}
	// A packet that was declared lost may be late: its ack saves a retransmission.
	for ; p.first != p.fresh; p.first++ {
		e := p.packets.at(uint32(p.first))
		if e.state == underWay || e.state != settled && now < e.at+4*p.cong.smoothed.duration() {
			break
		}
	}
}

// findLost marks the packets to retransmit and returns their cost. lookAt is when those
// that may still arrive are checked again.
func (s *Peer[T]) findLost(now time.Duration, p *path) (gone int) {
	p.lookAt = Never
	for n := p.first; n.Before(p.largest); n++ {
		e := p.packets.at(uint32(n))
		if e.state != underWay {
			continue
		}
		if due := e.at + p.cong.smoothed.duration() + p.cong.reordering(); now < due {
			p.lookAt = min(p.lookAt, due)
			continue
		}
		gone += s.lose(p, e)
		s.lostAt = max(stampOf(now), 1)
	}
	return gone
}

// lose declares a packet lost.
func (s *Peer[T]) lose(p *path, e *packet) int {
	e.state = lost
	p.underWay -= int(e.cost)
	if !e.sequence.Before(s.first) {
		s.want(s.at(e.sequence), uint64(1)<<e.position)
	}
	return int(e.cost)
}

// want marks packets of a segment for retransmission unless they have arrived.
func (s *Peer[T]) want(g *segment[T], positions uint64) {
	for fresh := positions &^ (g.arrived | g.lost); fresh != 0; fresh &= fresh - 1 {
		g.lost |= fresh & -fresh
		s.lost++
	}
}

// Expire does what is due at now. A timeout transmits the oldest packet in flight again,
// because the last packet of a burst may be lost with none behind it that reveals the loss.
// It declares nothing lost and does not shrink the window (RFC 9002 section 6.2):
// where processes share cores, the peer may only wait for its time slice. The next
// ack shows what was lost. unread means that packets have arrived that were not processed
// yet: the ack may be among them, so nothing times out.
func (s *Peer[T]) Expire(now time.Duration, unread bool) {
	for i := range s.Paths() {
		s.expire(now, s.path(i), unread)
	}
}

func (s *Peer[T]) expire(now time.Duration, p *path, unread bool) {
	if now >= p.lookAt {
		before := p.underWay
		p.cong.countAck(now, 0, s.findLost(now, p), before)
	}
	if unread || now < p.expireAt {
		return
	}
	if p.multi != nil && !s.silent(now, p) {
		return
	}
	if p.silences == 0 {
		s.pool.Probes++
	} else {
		s.pool.Timeouts++
	}
	if p.silences < 255 {
		p.silences++
	}
	s.probeOldest(p)
	if s.lost == 0 && !s.others(p) { // the receiver has dropped what it had acked
		g := s.at(s.first)
		g.arrived = 0
		s.want(g, 1<<g.packets-1)
	}
	p.cong.free = true
	p.expireAt = now + s.ackTimeout(p)
}

// probeOldest marks the oldest packet in flight for transmission. An ack of what is sent
// later shows whether it was lost.
func (s *Peer[T]) probeOldest(p *path) {
	for n := p.first; n != p.fresh; n++ {
		if e := p.packets.at(uint32(n)); e.state == underWay {
			s.lose(p, e)
			e.state = doubtful
			p.doubtful = true
			return
		}
	}
}

// judge returns the cost of the doubtful packets that an ack reports as missing.
func (s *Peer[T]) judge(now time.Duration, p *path, r *Ack) (gone int) {
	if !p.doubtful {
		return 0
	}
	p.doubtful = false
	for n := p.first; n != p.fresh; n++ {
		switch e := p.packets.at(uint32(n)); {
		case e.state != doubtful:
		case !n.Before(r.End):
			p.doubtful = true
		case r.misses(n):
			e.state = lost
			s.lostAt = max(stampOf(now), 1)
			gone += int(e.cost)
		}
	}
	return gone
}
