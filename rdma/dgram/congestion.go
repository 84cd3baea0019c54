package dgram

import "time"

// Congestion control, for one peer. The delay is the signal: while the round
// trip is near the least one seen, the window grows; when a queue stands in the
// path longer than queueTarget, the window shrinks by the excess, once per round
// trip. Delay alone does not shrink it far: a peer that shares its processor with others
// answers late over an idle network. Loss shrinks it only when it is more than chance, because a link that
// drops one datagram in a hundred is no reason to leave it idle. Under heavy
// incast the window falls below one datagram, and pacing spreads the datagrams
// over several round trips (the idea is Swift's, Kumar et al., SIGCOMM 2020).

const (
	// queueTarget is the waiting in queues that is still taken for a short one.
	queueTarget = 500 * time.Microsecond
	// minRTTAge is how long the least round trip is believed: routes change.
	minRTTAge = 10 * time.Second
	// overhead is what a datagram costs on the way beside its bytes.
	overhead = 256

	firstWindow = 10        // datagrams (RFC 6928)
	minShare    = 1.0 / 32  // of a datagram: the smallest window
	burst       = 8         // datagrams that may leave back to back
	paceGain    = 1.25      // faster than the window asks for, so that it is used
	chanceLoss  = 0.02      // a share of loss that says nothing of queues
	heavyLoss   = 0.125     // one that says much
	lossFloor   = 4         // datagrams: loss below half does not shrink the window further
	delayFloor  = 128 << 10 // bytes: delay alone does not shrink the window further
	selfWindow  = 20        // datagrams to a peer on this host, at first and whatever the delay
	selfUnit    = 32 << 10  // and the cost from which a datagram goes to one: no link carries it
	delayedCut  = 0.8       // how strongly excess delay shrinks the window
	deepestCut  = 0.5       // the most that one round trip can take away
	initialRTO  = 20 * time.Millisecond
	minRTO      = 2 * time.Millisecond
	minProbe    = 400 * time.Microsecond
)

// cost is what a segment of n bytes counts in the window.
func cost(n int) int { return n + overhead }

// congestion says how much may be under way to a peer.
type congestion struct {
	unit      float64 // the cost of a full datagram
	window    float64 // the cost that may be under way
	threshold float64 // below it the window doubles per round trip
	paceAt    time.Duration

	smoothed, varied time.Duration // round trip and its variation (RFC 6298)
	least, leastNow  time.Duration // in the last period, and in this one
	leastUntil       time.Duration // when this period ends
	lastRound        time.Duration // the least of the last round, or of this one
	thisRound        time.Duration

	roundEnd              time.Duration // of the present round trip
	arrivedCost, lostCost float64       // in this round
	delayed               time.Duration // the least excess delay of this round, or never
	full, sample          bool          // window used up in this round; sampled at all
}

func newCongestion(mss int) congestion {
	unit := float64(cost(mss))
	c := congestion{unit: unit, window: firstWindow * unit, threshold: 1e18, least: never, leastNow: never, thisRound: never, delayed: never}
	if unit >= selfUnit {
		c.window = c.floor()
	}
	return c
}

// floor is the window below which delay alone does not shrink it. On the way from a host to
// itself there is no queue but the socket of a peer that does not look at it, and a megabyte
// should leave in one go.
func (c *congestion) floor() float64 {
	if c.unit >= selfUnit {
		return selfWindow * c.unit
	}
	return max(delayFloor, lossFloor*c.unit)
}

// permits reports whether a datagram may leave now.
func (c *congestion) permits(now time.Duration, underWay int) bool {
	return now >= c.paceAt && c.permitsLater(underWay)
}

// permitsLater reports whether one may leave as soon as pacing lets it. One always
// may when nothing is under way: a window below one datagram is pacing alone.
func (c *congestion) permitsLater(underWay int) bool {
	return underWay == 0 || float64(underWay)+c.unit <= c.window
}

// transmitted reserves the time that n bytes take at the rate of the window. The round
// trip for that is the least of a round: a standing queue is in every sample of it, and a
// peer that was kept from its processor only in some.
func (c *congestion) transmitted(now time.Duration, n int) {
	if !c.sample {
		return // nothing is known of the rate
	}
	allowance := min(burst*c.unit, c.window)
	if c.window < c.unit {
		allowance = 0
	}
	perCost := float64(c.lastRound) / (c.window * paceGain)
	earliest := now - time.Duration(allowance*perCost)
	c.paceAt = max(c.paceAt, earliest) + time.Duration(float64(cost(n))*perCost)
}

// sampled takes in a round trip.
func (c *congestion) sampled(now, trip time.Duration) {
	trip = max(trip, time.Microsecond)
	if !c.sample {
		c.sample = true
		c.smoothed, c.varied, c.lastRound = trip, trip/2, trip
		c.roundEnd, c.leastUntil = now+trip, now+minRTTAge
	} else { // RFC 6298 section 2.3
		c.varied += (max(c.smoothed-trip, trip-c.smoothed) - c.varied) / 4
		c.smoothed += (trip - c.smoothed) / 8
	}
	if now >= c.leastUntil {
		c.least, c.leastNow, c.leastUntil = c.leastNow, never, now+minRTTAge
	}
	c.leastNow = min(c.leastNow, trip)
	c.least = min(c.least, trip)
	c.delayed = min(c.delayed, trip-c.least-queueTarget)
	c.thisRound = min(c.thisRound, trip)
	c.lastRound = min(c.lastRound, trip)
}

// timeout is how long an ack may take: RFC 6298 section 2, with a smaller least
// value than the Internet's, and the time that a receiver may hold it.
func (c *congestion) timeout() time.Duration {
	if !c.sample {
		return initialRTO
	}
	return max(minRTO, c.smoothed+4*c.varied+ackDelay)
}

// probe is when to send one datagram again to provoke an ack (RFC 8985 section 7.2). It
// may be early: one datagram too many does little harm. held is how long the receiver may
// hold the ack.
func (c *congestion) probe(held time.Duration) time.Duration {
	if !c.sample {
		return initialRTO
	}
	return max(minProbe, 2*c.smoothed+2*c.varied+held)
}

// reordering is how much later than its successors a datagram may come without
// being taken for lost (RFC 8985 section 6.2 step 4).
func (c *congestion) reordering() time.Duration {
	if c.least == never {
		return initialRTO
	}
	return max(c.smoothed/4, 20*time.Microsecond)
}

// settled takes in what an ack told: so much cost has arrived, so much is lost,
// and so much was under way before.
func (c *congestion) settled(now time.Duration, came, gone, before int) {
	c.arrivedCost += float64(came)
	c.lostCost += float64(gone)
	if float64(before)+c.unit >= c.window {
		c.full = true
	}
	recovers := c.window < c.floor()
	if c.full && c.lostCost == 0 && (c.delayed <= 0 || recovers) {
		if c.window < c.threshold {
			c.window += float64(came)
		} else {
			c.window += c.unit * float64(came) / max(c.window, c.unit)
		}
	}
	if c.sample && now >= c.roundEnd {
		c.endRound(now)
	}
}

// endRound judges a round trip and begins the next.
func (c *congestion) endRound(now time.Duration) {
	factor, floor := 1.0, min(c.floor(), c.window)
	if c.delayed > 0 && c.delayed != never {
		factor = max(1-delayedCut*float64(c.delayed)/float64(c.smoothed), deepestCut)
	}
	if c.lostCost > 0 {
		cut, share := 1.0, c.lostCost/(c.lostCost+c.arrivedCost)
		if c.lostCost <= c.unit && share < 0.5 {
			share = 0 // a single one is chance, however few the others were
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
		if factor == 1 && c.full { // chance: the round grows like one without it
			c.window += c.unit * min(1, c.arrivedCost/max(c.window, c.unit))
		}
	}
	if less := max(c.window*factor, floor); less < c.window {
		c.window, c.threshold = less, less
	}
	if c.thisRound != never {
		c.lastRound, c.thisRound = c.thisRound, never
	}
	c.arrivedCost, c.lostCost, c.delayed, c.full = 0, 0, never, false
	c.roundEnd = now + c.smoothed
}

// silent is for a peer of whom nothing was heard for two timeouts in a row: what
// was known of the path is no longer true.
func (c *congestion) silent() {
	c.threshold = max(c.window/2, c.floor())
	c.window = c.unit
}
