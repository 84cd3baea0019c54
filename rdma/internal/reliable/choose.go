package reliable

import (
	"math/bits"
	"time"
)

// Which path carries what is sent next: each segment goes to the path that will have
// delivered it first, by its bandwidth and by what is in flight on it.
//
// Much is divided by water-filling: all paths should finish at the same moment, so each
// gets what its bandwidth allows until then, minus what it has in flight. A path that would
// get little gets nothing.

const (
	// MaxPaths is the maximum number of paths to a peer.
	MaxPaths = 8
	// stickiness is how many bytes more than another a path may have in flight and still
	// get the next segment, if the peer used it last. Acks are piggybacked on replies, so
	// two peers that alternate should use one path.
	stickiness = 4 << 10
	// minStripe is the shortest part for which another path is worth its cost. T2 chapter
	// 3 has 1 KB where the network interface does the work; here a processor does.
	minStripe = 8 << 10
)

// plan is how what is queued is divided among the paths.
type plan struct {
	members uint32  // the paths that carry it
	queued  int     // its cost
	level   float64 // when all of them have delivered it, in nanoseconds from now
	fastest float64 // bandwidth of the fastest path
	window  float64 // cost that nearly fills the peer's reorder buffer, per bandwidth; 0: far from it
}

// Pick returns the path for Next, -1 if nothing may be transmitted now.
func (s *Peer[T]) Pick(now time.Duration) int {
	if s.Paths() == 1 {
		return 0
	}
	if on := s.probeDue(now); on >= 0 {
		return on
	}
	if s.lost == 0 && !s.mayCut() {
		return -1
	}
	if s.first == s.fresh {
		s.begin(now)
	}
	l := s.plan()
	best, soonest := -1, 0.0
	for i := range s.Paths() {
		p := s.path(i)
		if now < l.sendAt(i, p) {
			continue
		}
		n := min(l.queued, minStripe)
		if i == int(s.preferred) {
			n -= stickiness
		}
		at := float64(p.underWay+n)/p.bandwidth(l.fastest) + float64(p.cong.smoothed)/2
		if best < 0 || at < soonest {
			best, soonest = i, at
		}
	}
	return best
}

// plan divides what is queued.
func (s *Peer[T]) plan() (l plan) {
	l.members, l.fastest = s.candidates()
	if l.queued = s.queuedCost(minStripe); l.queued <= minStripe {
		return l
	}
	l.queued = s.queuedCost(maxQueued)
	for {
		speed, water, n := 0.0, float64(l.queued), 0
		l.window = 0
		for i := range s.Paths() {
			if p := s.path(i); l.members>>i&1 != 0 {
				speed += p.bandwidth(l.fastest)
				water += float64(p.underWay)
				n++
			}
		}
		l.level = water / speed
		if segments := float64(s.fresh - s.first); n > 1 && s.lost == 0 && segments > Window/4 {
			l.window = (water - float64(l.queued)) / segments * (Window * 3 / 4) / speed
		}
		poorest, least := -1, 0.0
		for i := range s.Paths() {
			if l.members>>i&1 == 0 {
				continue
			}
			if gets := l.gets(s.path(i)); poorest < 0 || gets < least {
				poorest, least = i, gets
			}
		}
		if n == 1 || least >= minStripe {
			return l
		}
		l.members &^= 1 << poorest
	}
}

// sendAt returns when a path may carry what is queued, Never if not before an ack. One of
// several paths fills the peer's reorder buffer only in proportion to its bandwidth: what is
// in flight on a slow one would hold up the others. Lost packets empty that buffer, so
// nothing but the path's own window limits them.
func (l *plan) sendAt(i int, p *path) time.Duration {
	if l.members>>i&1 == 0 || p.room() == 0 || !p.cong.permitsLater(p.underWay) ||
		l.window > 0 && p.underWay > 0 && float64(p.underWay) >= l.window*p.bandwidth(l.fastest) {
		return Never
	}
	if p.cong.free {
		return 0
	}
	return p.cong.paceAt
}

// gets returns the share of a path in what is queued.
func (l *plan) gets(p *path) float64 { return l.level*p.bandwidth(l.fastest) - float64(p.underWay) }

// maxQueued is how much of what is queued is looked at.
const maxQueued = 1 << 20

// queuedCost returns the cost of what is not segmented or is lost, or at least limit.
func (s *Peer[T]) queuedCost(limit int) int {
	each := s.pool.packet()
	n := int(s.lost) * cost(each)
	for m := s.cutting; m != nil && n < limit; m = m.Following {
		rest := m.Length - m.Cut
		n += rest + overhead*max((rest+each-1)/each, 1)
	}
	return n
}

// bandwidth returns the cost per nanosecond that a path carries: what was measured while it
// was busy, or else what its window allows. A path of which neither is known counts as the
// fastest.
func (p *path) bandwidth(fastest float64) float64 {
	switch {
	case p.multi.rate > 0:
		return max(p.multi.rate, fastest/16) // a slow path must be measured too
	case p.cong.sample:
		return float64(p.cong.window) / float64(p.cong.lastRound)
	}
	return fastest
}

const (
	// The minimum cost and time of a measurement of the bandwidth.
	measuredCost = 64 << 10
	measuredTime = time.Millisecond
)

// meter updates the bandwidth when packets have arrived.
func (p *path) meter(now time.Duration, came int) {
	m := p.multi
	if m == nil {
		return
	}
	m.metered += came
	if took := now - m.meterAt; m.metered >= measuredCost && took >= measuredTime {
		seen := float64(m.metered) / float64(took)
		if m.rate == 0 {
			m.rate = seen
		}
		m.rate += (seen - m.rate) / 4
		m.meterAt, m.metered = now, 0
	}
}

// share returns how many packets of a message a path may take at once.
func (s *Peer[T]) share(p *path) int {
	if s.Paths() == 1 {
		return MaxRun
	}
	l := s.plan()
	if l.queued <= minStripe || bits.OnesCount32(l.members) == 1 {
		return MaxRun
	}
	return max(int(l.gets(p))/(s.pool.Each+overhead), 1)
}

// sendAt returns when what is queued may be transmitted, Never if not before an ack.
func (s *Peer[T]) sendAt() time.Duration {
	l := plan{members: 1}
	if s.Paths() > 1 {
		l = s.plan()
	}
	at := Never
	for i := range s.Paths() {
		at = min(at, l.sendAt(i, s.path(i)))
	}
	return at
}
