package reliable

import "time"

// Whether a path delivers. A timeout alone does not show that: the peer may compute. But if
// the peer acks what was sent later over another path, it is alive, and the path is left:
// what is in flight on it is transmitted again over the others at once. A wrong decision
// costs only duplicates, which the receiver recognizes by their sequence.
//
// A path that was left, or over which nothing has arrived yet, is probed while the peer is
// in use. A probe is a copy of a packet in flight: its ack shows that the path delivers.

// pathState is what is known about a path.
type pathState uint8

const (
	untried pathState = iota // nothing has arrived over it yet
	good                     // it delivers
	left                     // it does not deliver, while others do
	absent                   // it is the peer's alone, or the peer's endpoint is not known
)

var pathStateNames = [...]string{"untried", "good", "left", "not reached"}

// multi is what is kept about one of several paths.
type multi struct {
	more     []path // in that of the first path: the others
	state    pathState
	silentAt time.Duration // of the first of the consecutive timeouts
	proof    Number        // an ack of it or a later packet shows that the path delivers
	tryAt    time.Duration // when to probe it, unless it delivers
	tryEvery time.Duration
	// What was left of the ack timeout when all segments were finished.
	remaining time.Duration
	via       uint8 // our path on which packets of this path of the peer arrive

	rate    float64       // cost per nanosecond, as measured; 0: not yet (choose.go)
	meterAt time.Duration // start of the measurement
	metered int           // cost that has arrived since
}

const (
	// A path that does not deliver is probed at intervals that double between these.
	minTryEvery = 4 * time.Millisecond
	maxTryEvery = 250 * time.Millisecond
)

// PathCounts counts what has happened to a path, for all peers.
type PathCounts struct {
	Bytes uint64 // sent, with an estimate of the headers
	Left  uint64 // times it was left for a peer because it did not deliver
	Back  uint64 // times it was used again
	Again uint64 // its packets that were sent again over others when it was left
}

// candidates returns the paths that may carry data, and the bandwidth of the fastest. They
// are those that deliver and have no timeout, if there are any. Otherwise it is one of
// those that do best, and probes on the others show more.
func (s *Peer[T]) candidates() (set uint32, fastest float64) {
	const none = 5
	best, rank := 0, none
	for k := range s.Paths() {
		i := (int(s.preferred) + k) % s.Paths()
		p := s.path(i)
		r := p.rank()
		if r == 0 {
			set |= 1 << i
		}
		if r < rank {
			best, rank = i, r
		}
		if r == 0 && (p.multi.rate > 0 || p.cong.sample) {
			fastest = max(fastest, p.bandwidth(0))
		}
	}
	if set == 0 {
		set = 1 << best
	}
	if fastest == 0 {
		fastest = 1
	}
	return set, fastest
}

// rank orders paths, the best first.
func (p *path) rank() int {
	switch {
	case p.multi.state == absent:
		return 5
	case p.multi.state == left:
		return 4
	case p.multi.state == good && p.silences == 0:
		return 0
	case p.silences == 0:
		return 1
	case p.multi.state == good:
		return 2
	}
	return 3
}

// probeDue returns the path to probe now, -1 if there is none.
func (s *Peer[T]) probeDue(now time.Duration) int {
	for i := range s.Paths() {
		if p := s.path(i); now >= s.probeAt(p) && p.room() > 0 {
			return i
		}
	}
	return -1
}

// probeAt returns when to probe a path.
func (s *Peer[T]) probeAt(p *path) time.Duration {
	if p.multi == nil || p.multi.state == good || p.multi.state == absent || s.first == s.fresh {
		return Never
	}
	return p.multi.tryAt
}

// probe transmits a copy of the oldest packet in flight. It counts as lost until its ack
// arrives: no timeout would end the wait for it, so probes would fill the window of the path.
func (s *Peer[T]) probe(now time.Duration, on int) Transmission[T] {
	p := s.path(on)
	before := p.underWay
	t := s.transmission(s.first, p)
	t.Lone, t.Again, t.Urgent, t.DelayAck = t.Packets > 1, true, true, false
	s.transmit(now, p, s.first, 0, 1)
	s.sentOn(now, on, p.underWay-before)
	p.packets.at(uint32(p.fresh-1)).state, p.underWay = lost, before
	return t
}

// sentOn records a transmission on a path.
func (s *Peer[T]) sentOn(now time.Duration, on, n int) {
	p := s.path(on)
	if p.multi == nil {
		return
	}
	s.pool.Counts[on].Bytes += uint64(n)
	if p.underWay == n {
		p.multi.meterAt, p.multi.metered = now, 0
	}
	if m := p.multi; m.state != good {
		m.tryEvery = min(max(2*m.tryEvery, minTryEvery), maxTryEvery)
		m.tryAt = now + m.tryEvery
	}
}

// recordProof records an ack of a path that was not known to deliver.
func (s *Peer[T]) recordProof(on int, r *Ack) {
	p := s.path(on)
	if p.multi == nil || p.multi.state == good || p.multi.state == absent || r.Span == 0 || !p.multi.proof.Before(r.End) {
		return
	}
	if p.multi.state == left {
		s.pool.Counts[on].Back++
	}
	p.multi.state, p.multi.tryEvery, p.silences = good, 0, 0
}

// compare leaves the paths that have not delivered what they were given before something
// that has arrived over another path was sent.
func (s *Peer[T]) compare(now time.Duration, p *path, r *Ack) {
	if !p.first.Before(r.End) || r.Span == 0 {
		return
	}
	at := p.packets.at(uint32(r.End - 1)).at
	for i := range s.Paths() {
		if o := s.path(i); o != p && o.silences > 0 && o.multi.state != left && o.multi.silentAt <= at {
			s.leave(now, i)
		}
	}
}

// leave stops using a path. What is in flight on it is transmitted again.
func (s *Peer[T]) leave(now time.Duration, on int) {
	p, c := s.path(on), &s.pool.Counts[on]
	m := p.multi
	m.state, m.proof, m.tryAt, m.tryEvery = left, p.fresh, now, 0
	p.expireAt, p.lookAt, p.silences = Never, Never, 0
	c.Left++
	for n := p.first; n != p.fresh; n++ {
		if e := p.packets.at(uint32(n)); e.state == underWay {
			s.lose(p, e)
			c.Again++
		}
	}
	p.cong.silent()
}

// late processes an ack of packets whose segments are finished: the peer has reported them
// over another path before.
func (s *Peer[T]) late(now time.Duration, p *path, r *Ack) {
	if p.multi == nil || p.packets == nil || s.first != s.fresh {
		return
	}
	before := p.underWay
	p.measure(now, r)
	s.settle(now, p, r)
	p.meter(now, before-p.underWay)
	p.cong.countAck(now, before-p.underWay, 0, before)
	if p.underWay == 0 {
		s.resetPath(p)
	} else if p.underWay < before {
		p.silences = 0
		p.multi.remaining = s.ackTimeout(p)
	}
}

// finish suspends the wait for acks when all segments are finished. Congestion control
// still uses acks of packets in flight on other paths.
func (s *Peer[T]) finish(now time.Duration) {
	s.pool.segments.giveBack(s.segments)
	s.segments = nil
	for i := range s.Paths() {
		if p := s.path(i); p.underWay == 0 {
			s.resetPath(p)
		} else if p.expireAt != Never {
			p.multi.remaining = max(p.expireAt-now, 0)
			p.expireAt, p.lookAt = Never, Never
		}
	}
}

// begin waits again for acks of packets that were in flight when the last segment was
// finished. The peer has been silent only from now on. A path has not: it waits for the
// rest of its timeout. Otherwise bursts shorter than the timeout would keep a path that
// delivers nothing, with its window full, and never try it again.
func (s *Peer[T]) begin(now time.Duration) {
	s.lastAckAt = now
	for i := range s.Paths() {
		if p := s.path(i); p.underWay > 0 && p.expireAt == Never {
			p.expireAt = now + p.multi.remaining
		}
	}
}

// silent handles a timeout of one of several paths. It forgets packets in flight whose
// segments are finished: that no ack of them arrives does not matter. It returns false if
// there are no others.
func (s *Peer[T]) silent(now time.Duration, p *path) bool {
	for n := p.first; n != p.fresh; n++ {
		if e := p.packets.at(uint32(n)); e.state == underWay && e.sequence.Before(s.first) {
			s.lose(p, e)
		}
	}
	if p.underWay == 0 && (s.others(p) || s.first == s.fresh) {
		p.expireAt = Never
		return false
	}
	if p.silences == 0 {
		p.multi.silentAt = now
	}
	return true
}

// AddPaths adds paths until the peer has n of them.
func (s *Peer[T]) AddPaths(n int) {
	first := s.only.multi
	if first == nil && n > 1 {
		first = new(multi)
		s.only.multi = first
	}
	for s.Paths() < n {
		p := newPath(&s.pool.Params)
		p.multi = new(multi)
		first.more = append(first.more, p)
	}
}

// Reach records whether a path can be used. One that can, and could not before, is tried.
func (s *Peer[T]) Reach(on int, can bool) {
	m := s.path(on).multi
	if !can {
		m.state = absent
	} else if m.state == absent {
		m.state = untried
	}
}

// SetReplyPath records on which of our paths the packets of a path of the peer arrive. Acks of
// them go back over it.
func (s *Peer[T]) SetReplyPath(k, on int) { s.path(k).multi.via = uint8(on) }

// ReplyPath returns what SetReplyPath has recorded.
func (s *Peer[T]) ReplyPath(k int) int {
	if m := s.path(k).multi; m != nil {
		return int(m.via)
	}
	return 0
}

// Prefer records the path that the peer has used last.
func (s *Peer[T]) Prefer(on int) { s.preferred = uint8(on) }

// PathState describes a path in words.
func (s *Peer[T]) PathState(on int) string {
	if on >= s.Paths() || s.path(on).multi == nil {
		return pathStateNames[good]
	}
	return pathStateNames[s.path(on).multi.state]
}

// others reports whether an ack is awaited on another path.
func (s *Peer[T]) others(p *path) bool {
	for i := range s.Paths() {
		if o := s.path(i); o != p && o.expireAt != Never {
			return true
		}
	}
	return false
}
