package reliable

import (
	"math"
	"time"
)

// Congestion control, for one path. The signal is delay. While the round-trip time is
// near the minimum, the window grows. When the queueing delay exceeds queueTarget, the
// window shrinks by the excess, once per round trip. Delay alone does not shrink it
// far: a peer that shares its processor with others acks late over an idle network.
// Loss shrinks the window only when it is more than random, because a link that drops
// one datagram in a hundred should still be used fully. Under heavy incast the window
// falls below one datagram, and pacing spreads the datagrams over several round trips,
// as in Swift (Kumar et al., SIGCOMM 2020).

const (
	// queueTarget is the queueing delay that counts as a short queue.
	queueTarget = 500 * time.Microsecond
	// minRTTAge is how long the minimum round-trip time is valid: routes change.
	minRTTAge = 10 * time.Second
	// overhead is the cost of a datagram besides its payload.
	overhead = 256

	firstWindow = 10        // datagrams (RFC 6928)
	minShare    = 1.0 / 32  // of a datagram: the smallest window
	burst       = 128 << 10 // bytes that may be sent back to back: a sender that pacing stops may wait for its next time slice
	leastBurst  = 8         // datagrams that may be, however long
	paceGain    = 1.25      // pace faster than the window requires, so that it is used
	chanceLoss  = 0.02      // share of loss that does not indicate congestion
	heavyLoss   = 0.125     // share of loss that does
	lossFloor   = 4         // datagrams: loss below half shrinks the window no further
	delayFloor  = 128 << 10 // bytes: delay alone shrinks the window no further
	selfWindow  = 20        // datagrams to a peer on this host, initially and at any delay
	selfUnit    = 32 << 10  // cost from which a datagram must be for this host: no link carries it
	wholeRuns   = 4         // segments in the window from which on it is rounded up to whole ones
	delayedCut  = 0.8       // how strongly excess delay shrinks the window
	deepestCut  = 0.5       // strongest reduction in one round trip
	initialRTO  = 20 * time.Millisecond
	minRTO      = 2 * time.Millisecond
	minProbe    = 400 * time.Microsecond
	maxRTO      = 32 * time.Millisecond // between two retransmissions

	longestPause = time.Second // that pacing makes, however long a round trip took
)

// cost returns what a packet of n bytes counts in the window.
func cost(n int) int { return n + overhead }

// trip is a round-trip time in nanoseconds. It has 32 bits, because every idle peer has
// several: a longer one counts as noTrip-1, which is two seconds.
type trip int32

const noTrip trip = math.MaxInt32

func tripOf(t time.Duration) trip { return trip(max(min(t, time.Duration(noTrip-1)), 0)) }

func (t trip) duration() time.Duration { return time.Duration(t) }

// congestion limits how much may be in flight on a path.
type congestion struct {
	unit      float32 // cost of a full datagram
	window    float32 // cost that may be in flight
	threshold float32 // below it the window doubles per round trip (slow start)
	atLeast   float32 // Params.DelayFloor
	paceAt    time.Duration

	smoothed, varied trip // round-trip time and its variation (RFC 6298)
	least, leastNow  trip // minimum of the last period and of this one
	lastRound        trip // minimum of the last round, or of this one
	thisRound        trip
	delayed          trip // smallest excess delay of this round, or noTrip
	full             bool // the window was used up in this round
	sample           bool // any round-trip sample was taken
	free             bool // the next packet is a probe, which the window does not limit

	leastUntil            time.Duration // when the period of leastNow ends
	roundEnd              time.Duration // of the current round trip
	arrivedCost, lostCost float32       // in this round
}

func newCongestion(length int) congestion {
	unit := float32(cost(length))
	c := congestion{unit: unit, window: firstWindow * unit, threshold: 1e18, least: noTrip, leastNow: noTrip, thisRound: noTrip, delayed: noTrip}
	if unit >= selfUnit {
		c.window = c.floor()
	}
	return c
}

// floor returns the window below which delay alone does not shrink it. Between
// processes of one host there is no queue except the socket of a peer that does not
// poll, and a megabyte should be sent in one go.
func (c *congestion) floor() float32 {
	if c.unit >= selfUnit {
		return selfWindow * c.unit
	}
	return max(delayFloor, c.atLeast, lossFloor*c.unit)
}

// permits reports whether a datagram may be sent now.
func (c *congestion) permits(now time.Duration, underWay int) bool {
	return (now >= c.paceAt || c.free) && c.permitsLater(underWay)
}

// permitsLater reports whether a datagram may be sent as soon as pacing permits. One
// always may when nothing is in flight: a window below one datagram is pacing alone. A
// probe always may (RFC 9002 section 7.5).
func (c *congestion) permitsLater(underWay int) bool {
	return c.free || underWay == 0 || float32(underWay)+c.unit <= c.window
}

// packets returns how many packets a segment may have, up to most: as many as the window has
// room for, and at least one. A window of several such segments is rounded up to whole ones:
// otherwise acks would cut them shorter and shorter.
func (c *congestion) packets(underWay, most int) int {
	if wholeRuns*float32(most)*c.unit <= c.window {
		return most
	}
	return min(max(1, int((c.window-float32(underWay))/c.unit)), most)
}

// pace reserves the time that a cost of n takes at the rate of the window. That rate
// uses the minimum round-trip time of a round: a standing queue is in every sample of
// it, and a peer that waited for its processor only in some.
func (c *congestion) pace(now time.Duration, n int) {
	probe := c.free
	c.free = false
	if !c.sample || probe {
		return // the rate is unknown, or does not limit it
	}
	allowance := min(max(burst, leastBurst*c.unit), c.window)
	if c.window < c.unit {
		allowance = 0
	}
	perCost := float32(c.lastRound) / (c.window * paceGain)
	earliest := now - time.Duration(allowance*perCost)
	c.paceAt = min(max(c.paceAt, earliest)+time.Duration(float32(n)*perCost), now+longestPause)
}

// addSample adds a round-trip sample.
func (c *congestion) addSample(now, took time.Duration) {
	t := tripOf(max(took, time.Microsecond))
	if !c.sample {
		c.sample = true
		c.smoothed, c.varied, c.lastRound = t, t/2, t
		c.roundEnd, c.leastUntil = now+took, now+minRTTAge
	} else { // RFC 6298 section 2.3
		c.varied += (max(c.smoothed-t, t-c.smoothed) - c.varied) / 4
		c.smoothed += (t - c.smoothed) / 8
	}
	if now >= c.leastUntil {
		c.least, c.leastNow, c.leastUntil = c.leastNow, noTrip, now+minRTTAge
	}
	c.leastNow = min(c.leastNow, t)
	c.least = min(c.least, t)
	c.delayed = min(c.delayed, t-c.least-tripOf(queueTarget))
	c.thisRound = min(c.thisRound, t)
	c.lastRound = min(c.lastRound, t)
}

// timeout returns the retransmission timeout: RFC 6298 section 2, with a smaller
// minimum than the Internet's, plus the receiver's ack delay.
func (c *congestion) timeout(ackDelay time.Duration) time.Duration {
	if !c.sample {
		return initialRTO
	}
	return max(minRTO, c.smoothed.duration()+4*c.varied.duration()+ackDelay)
}

// probe returns when to retransmit one datagram to elicit an ack (RFC 8985 section
// 7.2). It may be early: one spurious datagram does little harm. held is the receiver's
// maximum ack delay.
func (c *congestion) probe(held time.Duration) time.Duration {
	if !c.sample {
		return initialRTO
	}
	return max(minProbe, 2*c.smoothed.duration()+2*c.varied.duration()+held)
}

// reordering returns how much later than its successors a datagram may arrive without
// being declared lost (RFC 8985 section 6.2 step 4).
func (c *congestion) reordering() time.Duration {
	if c.least == noTrip {
		return initialRTO
	}
	return max(c.smoothed.duration()/4, 20*time.Microsecond)
}

// countAck accounts for an ack: came and gone are the costs that arrived and were lost,
// before is the cost that was in flight.
func (c *congestion) countAck(now time.Duration, came, gone, before int) {
	c.arrivedCost += float32(came)
	c.lostCost += float32(gone)
	if float32(before)+c.unit >= c.window {
		c.full = true
	}
	recovers := c.window < c.floor()
	if c.full && c.lostCost == 0 && (c.delayed <= 0 || recovers) {
		if c.window < c.threshold {
			c.window += float32(came)
		} else {
			c.window += c.unit * float32(came) / max(c.window, c.unit)
		}
	}
	if c.sample && now >= c.roundEnd {
		c.endRound(now)
	}
}

// endRound adjusts the window and starts the next round.
func (c *congestion) endRound(now time.Duration) {
	factor, floor := float32(1), min(c.floor(), c.window)
	if c.delayed > 0 && c.delayed != noTrip {
		factor = max(1-delayedCut*float32(c.delayed)/float32(c.smoothed), deepestCut)
	}
	if c.lostCost > 0 {
		cut, share := float32(1), c.lostCost/(c.lostCost+c.arrivedCost)
		if c.lostCost <= c.unit && share <= 0.5 {
			share = 0 // a single loss is random, however few the others were
		}
		switch {
		case share > heavyLoss:
			cut = max(1-share, deepestCut)
		case share > chanceLoss:
			cut = 1 - share/2
		}
		switch {
		case share >= 0.5 || share > chanceLoss && factor < 1:
			floor = c.unit * minShare
		case share > chanceLoss:
			floor = min(lossFloor*c.unit, c.window)
		}
		factor = min(factor, cut)
		if factor == 1 && c.full { // random loss: grow as in a round without it
			c.window += c.unit * min(1, c.arrivedCost/max(c.window, c.unit))
		}
	}
	if less := max(c.window*factor, floor); less < c.window {
		c.window, c.threshold = less, less
	}
	if c.thisRound != noTrip {
		c.lastRound, c.thisRound = c.thisRound, noTrip
	}
	c.arrivedCost, c.lostCost, c.delayed, c.full = 0, 0, noTrip, false
	c.roundEnd = now + c.smoothed.duration()
}

// silent resets the window of a path that was left: what was known about it no longer
// holds.
func (c *congestion) silent() {
	c.threshold = max(c.window/2, c.floor())
	c.window = c.unit
}
