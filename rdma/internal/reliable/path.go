package reliable

import "time"

// path is what is kept about a path to a peer and back.
type path struct {
	cong  congestion
	multi *multi // nil: it is the only path

	// The packets in flight.
	packets  *ring[packet]
	lookAt   time.Duration // when an older packet without an ack counts as lost
	expireAt time.Duration // when the ack timeout expires
	first    Number        // oldest that is not settled, or was lost a short time ago
	fresh    Number        // of the next packet
	largest  Number        // after the largest that an ack has reported
	end      Number        // after the largest received
	underWay int           // cost of the packets in state underWay

	// The packets received.
	gaps       *gaps  // which before end are missing, nil: none
	endAt      stamp  // arrival of the largest
	dueAt      stamp  // when the ack must be sent, if one is pending
	span       uint16 // how many numbers before end are recorded
	ackPending uint16 // packets received since the last ack
	urgent     bool   // an ack is requested, or a gap must be reported

	silences uint8 // consecutive timeouts of acks
	doubtful bool  // there may be packets in state doubtful
}

func newPath(p *Params) path {
	at := path{cong: newCongestion(p.packet()), lookAt: Never, expireAt: Never}
	at.cong.atLeast = float32(p.DelayFloor)
	return at
}

// gaps is a set of missing packets: bit i is the packet i before the largest received.
type gaps [packetWindow / 64]uint64

func (g *gaps) add(i uint32)    { g[i/64] |= 1 << (i % 64) }
func (g *gaps) remove(i uint32) { g[i/64] &^= 1 << (i % 64) }

// shift makes room for n later packets.
func (g *gaps) shift(n uint32) {
	if n >= packetWindow {
		*g = gaps{}
		return
	}
	words, rest := int(n/64), n%64
	for i := len(g) - 1; i >= 0; i-- {
		var word uint64
		if i >= words {
			word = g[i-words] << rest
			if i > words {
				word |= g[i-words-1] >> (64 - rest)
			}
		}
		g[i] = word
	}
}

// words returns how many words are sent: those up to the last member.
func (g *gaps) words() int {
	n := len(g)
	for n > 0 && g[n-1] == 0 {
		n--
	}
	return n
}

// skips reports whether a packet leaves a gap behind the largest received.
func (p *path) skips(n Number) bool { return p.end.Before(n) }

// receive records count packets from n on. gaps is not nil if they leave a gap. It
// returns true if an ack should be sent at once: packets are missing, or these are late
// (RFC 9000 section 13.2.1).
func (p *path) receive(now time.Duration, n Number, count int) (disordered bool) {
	if n.Before(p.end) {
		for ; count > 0 && n.Before(p.end); count, n = count-1, n+1 {
			if i := uint32(p.end - 1 - n); p.gaps != nil && i < packetWindow {
				p.gaps.remove(i)
			}
		}
		return true
	}
	missing := uint32(n - p.end)
	all := missing + uint32(count)
	p.end += Number(all)
	p.endAt = stampOf(now)
	p.span = uint16(min(uint32(p.span)+all, packetWindow))
	if p.gaps != nil {
		p.gaps.shift(all)
		for i := uint32(count); i < min(all, packetWindow); i++ {
			p.gaps.add(i)
		}
	}
	return missing > 0
}
