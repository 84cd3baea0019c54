package hybrid

import "github.com/muster-mpi/muster/rdma"

// Which peers get a connection. Over a connection the kernel handles acks, and a message
// that is longer than a datagram goes in one piece. So a message, in either direction,
// earns its peer a point, and another one for every datagram that it fills; points are
// halved at every tick, and measure how busy a peer has been recently. A peer with enough of
// them gets a connection. When all are in use, it gets one only if it is clearly busier than
// the least busy peer that has one, which then goes back to datagrams; otherwise it is
// refused, and rests for some ticks before it may ask again, longer each time. The margin
// and the rest prevent two peers of the same kind from displacing each other forever.
//
// Short messages save less than long ones, and each connection takes memory and is polled. So
// a peer whose points come from short messages must also have its share of all points: a rank
// that exchanges short messages with few peers has connections to them, one that exchanges
// them with everybody has none.
//
// Nothing here uses a clock or a device: the caller counts, calls tick, and carries out
// the decisions of consider.

const longest = 6 // maximum number of doublings of a rest

// rules are the parameters of the policy.
type rules struct {
	most   int    // maximum number of connections
	piece  int    // bytes per point
	short  uint32 // additional points per message
	earn   uint32 // points required for a connection
	share  uint32 // without enough points for long messages, 1/share of all points is required as well
	margin uint32 // a new peer must have this many times the points of the one it replaces
	// recycleAfter, if not 0, is the number of points after which a connection is closed
	// again, used or not. Tests use it to keep peers moving.
	recycleAfter uint32
}

// score is the policy's state of a peer.
type score struct {
	peer        rdma.PeerID
	points      uint32
	long        uint32 // of those, by the bytes of messages
	since       uint32 // points since it was connected, for recycleAfter
	rest        uint16 // ticks until it may ask again
	refusals    uint8  // refusals in a row
	holds       bool   // it has a connection, or is getting one
	evicting    bool   // it has to make room
	established bool   // its connection was established
}

// tally counts the decisions.
type tally struct {
	up      uint64 // connections established
	down    uint64 // of those, ended to make room
	refused uint64 // times that a peer was refused
	failed  uint64 // times that a connection was not established, or broke
}

type policy struct {
	rules
	tally
	open  int    // connections, including those being made or closed
	total uint64 // points of all peers
	known []*score
}

// add adds a peer.
func (p *policy) add(s *score, peer rdma.PeerID) {
	s.peer = peer
	p.known = append(p.known, s)
}

// use counts a message. It returns true if the peer may be due for a connection, or for
// the end of the one it has.
func (p *policy) use(s *score, length int) bool {
	earned := p.short
	if length >= p.piece {
		n := uint32(length / p.piece)
		earned += n
		s.long = min(s.long+n, 1<<30)
	}
	if earned == 0 {
		return false
	}
	s.points = min(s.points+earned, 1<<30)
	p.total += uint64(earned)
	if s.holds {
		s.since += earned
		return p.recycles(s)
	}
	return p.earns(s)
}

// earns reports whether a peer without a connection is busy enough for one.
func (p *policy) earns(s *score) bool {
	return s.points >= p.earn && s.rest == 0 && (s.long >= p.earn || uint64(s.points)*uint64(p.share) >= p.total)
}

func (p *policy) recycles(s *score) bool {
	return p.recycleAfter > 0 && s.holds && !s.evicting && s.since >= p.recycleAfter
}

// decision is the result of consider.
type decision uint8

const (
	keep    decision = iota // no change
	promote                 // it gets a connection
	evict                   // another one must go first; this one asks again later
	demote                  // it goes back to datagrams
)

// consider decides about a peer. With evict it returns the peer that must go.
func (p *policy) consider(s *score) (v decision, evicting *score) {
	switch {
	case p.recycles(s):
		s.evicting = true
		p.down++
		return demote, nil
	case s.holds || !p.earns(s):
		return keep, nil
	case p.open < p.most:
		return promote, nil
	}
	least, leaves := p.least()
	if leaves { // room is being made already
		s.rest = 1
		return keep, nil
	}
	if least == nil || least.points*p.margin >= s.points {
		p.refuse(s)
		return keep, nil
	}
	least.evicting = true
	s.rest = 1
	p.down++
	return evict, least
}

// least returns the least busy peer that has a connection, and whether one is being
// evicted.
func (p *policy) least() (least *score, leaves bool) {
	for _, s := range p.known {
		switch {
		case !s.holds:
		case s.evicting:
			leaves = true
		case least == nil || s.points < least.points:
			least = s
		}
	}
	return least, leaves
}

// refuse makes a peer wait, twice as long each time.
func (p *policy) refuse(s *score) {
	p.refused++
	s.rest = 1 << min(s.refusals, longest)
	s.refusals++
}

// considerOffer decides about the offer of a peer. With evict the offer is to be refused
// now, and another peer goes so that it can be repeated.
func (p *policy) considerOffer(s *score) (v decision, evicting *score) {
	if s.holds || p.open < p.most {
		return promote, nil
	}
	if s.points = max(s.points, p.earn); s.rest > 0 {
		return keep, nil
	}
	return p.consider(s)
}

// take records that a peer is getting a connection.
func (p *policy) take(s *score) {
	if !s.holds {
		s.holds, s.evicting, s.established, s.since = true, false, false, 0
		p.open++
	}
}

// establish records that its connection carries messages.
func (p *policy) establish(s *score) {
	if !s.established {
		s.established = true
		p.up++
	}
}

// give records that a connection has ended.
func (p *policy) give(s *score) {
	if s.holds {
		s.holds, s.evicting = false, false
		p.open--
	}
}

// fail records that a connection was not established, or broke: the peer rests.
func (p *policy) fail(s *score) {
	p.failed++
	s.rest = 1 << min(s.refusals, longest)
	s.refusals++
}

// tick ends an interval.
func (p *policy) tick() {
	p.total = 0
	for _, s := range p.known {
		s.points /= 2
		s.long /= 2
		p.total += uint64(s.points)
		if s.rest > 0 {
			s.rest--
		} else if s.points == 0 || s.holds {
			s.refusals = 0
		}
	}
}
