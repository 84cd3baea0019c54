package rail

import "time"

// A path is one rail to one peer. It records what was given to the rail and has not
// arrived, and derives from it how fast the rail is and whether it delivers. Time is an
// argument.
//
// The device of a rail has a long timeout: it cannot distinguish a failed link from a
// peer that computes. A path can, by comparison. If something that was given to another
// rail later has arrived, the peer is alive, and the path is in doubt. A path that
// stays in doubt for a while is left.

type pathState uint8

const (
	untried pathState = iota // nothing has arrived over it yet
	good                     // it delivers
	left                     // it does not, while others do
	gone                     // its device has declared the peer gone
)

var pathStateNames = [...]string{"untried", "good", "left", "gone"}

func (s pathState) String() string { return pathStateNames[s] }

const (
	maxTickets = 64 // pieces in flight on a path
	// A rail is given what keeps it busy for backlogTime plus two delivery times. With
	// more, a slow rail would delay what fast ones carry.
	backlogTime = 2 * time.Millisecond
	minBacklog  = 64 << 10

	// shortestDoubt is the minimum time that a path may stay in doubt. The device below
	// retransmits what is lost within this time.
	shortestDoubt = 40 * time.Millisecond
	// untriedDoubt is that of a path over which nothing has arrived yet.
	untriedDoubt = 5 * time.Millisecond
	// quietTime is after how long without a delivery other paths are tried, to find out
	// whether the peer is alive.
	quietTime = 20 * time.Millisecond
	// tryEvery is how often a path that was left is tried again while its peer is in
	// use, and any path when there is doubt.
	tryEvery = 250 * time.Millisecond

	// The minimum bytes and time of a speed measurement.
	measuredBytes = 96 << 10
	measuredTime  = 2 * time.Millisecond
	// slowest is the minimum share of the fastest path's speed that a path is credited
	// with, so that a slow path still gets pieces to be measured by.
	slowest = 1.0 / 16
)

// ticket is a send that was posted to the rail.
type ticket struct {
	at     time.Duration
	number uint32 // of the piece
	bytes  uint32
	epoch  uint8
	kind   kind
	open   bool
}

// tickets is the memory for them. A path with nothing in flight has none.
type tickets [maxTickets]ticket

type path struct {
	tickets       *tickets
	first         uint32 // the oldest open ticket
	next          uint32 // the next one
	state         pathState
	full          bool // its device accepts nothing more until the next Poll
	reached       bool // the peer can be addressed
	backlog       int
	speed         float64       // bytes per nanosecond
	measured      bool          // speed is not only the device's estimate
	quickest      time.Duration // shortest delivery time
	since         time.Duration // start of the speed measurement
	arrived       int           // bytes that have arrived since
	doubt         time.Duration // since when another path has done better; 0: no doubt
	triedAt       time.Duration // last hello sent
	helloInFlight bool          // a hello is in flight
	ackInFlight   bool          // an ack is in flight
	helloEpoch    uint8         // epoch of the last hello
	helloSent     bool          // helloEpoch is valid
}

// busy reports whether something is in flight on it.
func (p *path) busy() bool { return p.first != p.next }

// room reports whether another ticket of n bytes may be opened.
func (p *path) room(n int) bool {
	most := max(int(p.speed*float64(backlogTime+2*p.quickest)), minBacklog)
	return p.next-p.first < maxTickets && (p.backlog == 0 || p.backlog+n <= most)
}

// open records a send on the rail, as ticket next.
func (p *path) open(now time.Duration, t ticket) {
	if p.backlog == 0 {
		p.since, p.arrived = now, 0
	}
	t.at, t.open = now, true
	p.tickets[p.next%maxTickets] = t
	p.next++
	p.backlog += int(t.bytes)
}

// pending reports whether a ticket is open.
func (p *path) pending(n uint32) bool {
	return n-p.first < p.next-p.first && p.tickets[n%maxTickets].open
}

// close closes a ticket. It returns false for one that is not open: its path was reset.
func (p *path) close(n uint32) (t ticket, ok bool) {
	if !p.pending(n) {
		return ticket{}, false
	}
	e := &p.tickets[n%maxTickets]
	t = *e
	e.open = false
	p.backlog -= int(t.bytes)
	for p.busy() && !p.tickets[p.first%maxTickets].open {
		p.first++
	}
	return t, true
}

// delivered records the arrival of a ticket. It returns true if the path was not good
// before.
func (p *path) delivered(now time.Duration, t *ticket) (back bool) {
	back = p.state != good
	p.state, p.doubt = good, 0
	if took := now - t.at; p.quickest == 0 || took < p.quickest {
		p.quickest = took
	}
	p.measure(now, int(t.bytes))
	return back
}

// measure updates the speed while the rail is busy all the time.
func (p *path) measure(now time.Duration, bytes int) {
	p.arrived += bytes
	took := now - p.since
	if p.arrived < measuredBytes || took < measuredTime && p.backlog > 0 {
		return
	}
	if took > 0 {
		seen := float64(p.arrived) / float64(took)
		if !p.measured {
			p.speed, p.measured = seen, true // the first measurement counts in full
		}
		p.speed += (seen - p.speed) / 4
	}
	p.since, p.arrived = now, 0
}

// oldest returns when the oldest ticket was opened.
func (p *path) oldest() time.Duration { return p.tickets[p.first%maxTickets].at }

// compare records the arrival of something that was given to another path at the time
// at.
func (p *path) compare(now, at time.Duration) {
	if p.state <= good && p.doubt == 0 && p.busy() && p.oldest() < at {
		p.doubt = max(now, 1)
	}
}

// doubtEnds returns when a path in doubt is left: after the time it may need for its
// backlog, plus a margin.
func (p *path) doubtEnds() time.Duration {
	if p.doubt == 0 {
		return never
	}
	benefit := shortestDoubt
	if p.state == untried {
		benefit = untriedDoubt
	}
	return p.doubt + benefit + 4*time.Duration(float64(p.backlog)/p.speed)
}

// quietEnds returns when to try other paths.
func (p *path) quietEnds() time.Duration {
	if p.state > good || p.doubt != 0 || !p.busy() {
		return never
	}
	return p.oldest() + quietTime
}

// never is later than any time.
const never = time.Duration(1<<63 - 1)
