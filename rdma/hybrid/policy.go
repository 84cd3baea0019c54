package hybrid

import "github.com/muster-mpi/muster/rdma"

// Who earns a connection. What a connection saves is the cutting: a message that is longer
// than a datagram goes over it in one piece, as TCP sees it, with receipts that are the
// kernel's business. A message that fits one datagram is as fast without. So a message,
// either way, earns its peer a point for every datagram that it fills; points are halved at
// every tick, and report how busy a peer has been of late. A peer with enough of them
// gets a connection. When all are taken, it gets
// one only if it is clearly busier than the least busy peer that has one, which then goes
// back to datagrams; otherwise it is refused, and rests for some ticks before it may ask
// again, longer each time. The margin and the rest keep two peers of the same kind from
// taking the place from each other for ever.
//
// Nothing here knows a clock or a device: the shell counts, calls tick, and does what
// consider says.

const longest = 6 // doublings of a rest

// rules are the numbers of the policy.
type rules struct {
	most   int    // connections
	piece  int    // bytes that earn a point
	short  uint32 // points that a message earns beside
	earn   uint32 // points that earn a connection
	margin uint32 // a newcomer has so many times the points of who must go
	// tire, if not 0, is the number of points after which a connection is closed again, used
	// or not. Tests use it to keep peers moving.
	recycleAfter uint32
}

// score is what the policy keeps of a peer.
type score struct {
	peer        rdma.PeerID
	points      uint32
	since       uint32 // points since it was connected, for tire
	rest        uint16 // ticks until it may ask again
	refusals    uint8  // refusals in a row
	holds       bool   // it has a connection, or is getting one
	evicting    bool   // it was told to make room
	established bool   // its connection has come about
}

// tally is what the policy has decided so far.
type tally struct {
	up      uint64 // connections that came about
	down    uint64 // of those, told to make room
	refused uint64 // times that a peer was refused
	failed  uint64 // times that a connection did not come about, or broke
}

type policy struct {
	rules
	tally
	open  int // connections, with those that are being made or closed
	known []*score
}

// meet begins to count for a peer.
func (p *policy) meet(s *score, peer rdma.PeerID) {
	s.peer = peer
	p.known = append(p.known, s)
}

// use counts a message. It returns true if the peer may ask for a connection, or has tired of
// the one it has.
func (p *policy) use(s *score, length int) bool {
	earned := p.short + uint32(length/p.piece)
	if earned == 0 {
		return false
	}
	s.points = min(s.points+earned, 1<<30)
	if s.holds {
		s.since += earned
		return p.recycles(s)
	}
	return s.points >= p.earn && s.rest == 0
}

func (p *policy) recycles(s *score) bool {
	return p.recycleAfter > 0 && s.holds && !s.evicting && s.since >= p.recycleAfter
}

// decision is what to do about a peer.
type decision uint8

const (
	keep    decision = iota // as it is
	promote                 // it gets a connection
	evict                   // another one must go first; it asks again later
	demote                  // it goes back to datagrams
)

// consider decides about a peer. With replace comes who must go.
func (p *policy) consider(s *score) (v decision, evicting *score) {
	switch {
	case p.recycles(s):
		s.evicting = true
		p.down++
		return demote, nil
	case s.holds || s.rest > 0 || s.points < p.earn:
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

// least returns the least busy peer that has a connection, and whether one is on its way out.
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

// considerOffer decides about the offer of a peer. With replace it is to be refused now, and
// somebody goes so that it can come again.
func (p *policy) considerOffer(s *score) (v decision, evicting *score) {
	if s.holds || p.open < p.most {
		return promote, nil
	}
	if s.points = max(s.points, p.earn); s.rest > 0 {
		return keep, nil
	}
	return p.consider(s)
}

// take notes that a peer is getting a connection.
func (p *policy) take(s *score) {
	if !s.holds {
		s.holds, s.evicting, s.established, s.since = true, false, false, 0
		p.open++
	}
}

// arrived notes that its connection carries messages.
func (p *policy) arrived(s *score) {
	if !s.established {
		s.established = true
		p.up++
	}
}

// give notes that a connection is no more.
func (p *policy) give(s *score) {
	if s.holds {
		s.holds, s.evicting = false, false
		p.open--
	}
}

// fail notes that a connection did not come about, or broke: the peer rests.
func (p *policy) fail(s *score) {
	p.failed++
	s.rest = 1 << min(s.refusals, longest)
	s.refusals++
}

// tick lets an interval pass.
func (p *policy) tick() {
	for _, s := range p.known {
		s.points /= 2
		if s.rest > 0 {
			s.rest--
		} else if s.points == 0 || s.holds {
			s.refusals = 0
		}
	}
}
