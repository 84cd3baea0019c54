package rail

import "time"

// A path is one rail to one peer. It remembers what was given to the rail and has not
// arrived, and judges by it how fast the rail is and whether it answers. Time comes in as
// an argument.
//
// A rail of its own is patient: it cannot tell a dead link from a peer that computes. A
// path can, by comparing. If something that was given to another rail later has arrived,
// the peer is there, and the path is in doubt. If it stays so for a while, it is left.

type pathState uint8

const (
	untried pathState = iota // nothing has arrived over it yet
	good                     // it answers
	left                     // it does not, while others do
	gone                     // its device says that the peer is not there
)

var pathStateNames = [...]string{"untried", "good", "left", "gone"}

func (s pathState) String() string { return pathStateNames[s] }

const (
	maxTickets = 64 // pieces that may be under way on a path
	// A rail is given what keeps it busy for so long, and as long again as it takes for
	// something to arrive. With more, a slow rail would hold up what fast ones carry.
	backlogTime = 2 * time.Millisecond
	minBacklog  = 64 << 10

	// shortestDoubt is the least time for which a path is given the benefit of doubt.
	// The device below repeats what is lost within this time.
	shortestDoubt = 40 * time.Millisecond
	// untriedDoubt is that of a path over which nothing has arrived yet.
	untriedDoubt = 5 * time.Millisecond
	// quietTime is after how long without an answer other paths are tried, to see
	// whether the peer is there at all.
	quietTime = 20 * time.Millisecond
	// tryEvery is how often a path that is lost is tried again while its peer is
	// being talked to, and any path when there is doubt.
	tryEvery = 250 * time.Millisecond

	// A speed is taken from no less than so much.
	measuredBytes = 96 << 10
	measuredTime  = 2 * time.Millisecond
	// slowest is the share of the fastest path's speed that a path is credited with at
	// least, so that one that was slow gets something to be measured by.
	slowest = 1.0 / 16
)

// ticket is something that was given to the rail.
type ticket struct {
	at     time.Duration
	number uint32 // of the piece
	bytes  uint32
	epoch  uint8
	kind   kind
	open   bool
}

// tickets is the memory for them. A path with nothing under way has none.
type tickets [maxTickets]ticket

type path struct {
	tickets       *tickets
	first         uint32 // the oldest ticket that is open
	next          uint32 // the next one
	state         pathState
	full          bool // its device takes nothing more until the next Poll
	reached       bool // the peer can be addressed
	backlog       int
	speed         float64       // bytes a nanosecond
	measured      bool          // speed is not only what its device says
	quickest      time.Duration // in which something has arrived
	since         time.Duration // when the measurement began
	arrived       int           // bytes that have arrived since
	doubt         time.Duration // since when another path has done better; 0: no doubt
	triedAt       time.Duration // when a hello was sent last
	helloInFlight bool          // a hello is under way
	ackInFlight   bool          // an ack is under way
	helloEpoch    uint8         // the epoch in which the peer has been sent one
	helloSent     bool          // greeted counts
}

// busy reports whether something is under way on it.
func (p *path) busy() bool { return p.first != p.next }

// room reports whether another ticket of n bytes may be opened.
func (p *path) room(n int) bool {
	most := max(int(p.speed*float64(backlogTime+2*p.quickest)), minBacklog)
	return p.next-p.first < maxTickets && (p.backlog == 0 || p.backlog+n <= most)
}

// open notes that something was given to the rail, under the number next.
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

// close takes a ticket back. It is false for one that is not open: its path was reset.
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

// delivered takes note that what the ticket stands for has arrived. It is true if the
// path was lost before.
func (p *path) delivered(now time.Duration, t *ticket) (back bool) {
	back = p.state != good
	p.state, p.doubt = good, 0
	if took := now - t.at; p.quickest == 0 || took < p.quickest {
		p.quickest = took
	}
	p.measure(now, int(t.bytes))
	return back
}

// measure takes the speed while there is something to do all the time.
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

// oldest is when the oldest of what is under way was given to the rail.
func (p *path) oldest() time.Duration { return p.tickets[p.first%maxTickets].at }

// compare takes note that something given to another path at the time at has arrived.
func (p *path) compare(now, at time.Duration) {
	if p.state <= good && p.doubt == 0 && p.busy() && p.oldest() < at {
		p.doubt = max(now, 1)
	}
}

// doubtEnds is when a path that is in doubt is left: after what it may need for all it
// has to do, and some more.
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

// quietEnds is when it is time to see whether other paths answer.
func (p *path) quietEnds() time.Duration {
	if p.state > good || p.doubt != 0 || !p.busy() {
		return never
	}
	return p.oldest() + quietTime
}

// never is later than any time.
const never = time.Duration(1<<63 - 1)
