package soft

import "time"

// Timers: when service has work although nothing arrives and nobody calls.

// clock is the time of the device, read at most once per call: it can cost as much as a short
// message.
type clock struct {
	start time.Time
	now   time.Duration // at the last reading
	fresh bool          // now is the time of the current call
}

// sinceOpen returns the time since the device was opened.
func (c *clock) sinceOpen() time.Duration { return time.Since(c.start) }

// read sets now, in every call.
func (c *clock) read() { c.now = c.sinceOpen() }

// tick sets now, unless this call has done so.
func (c *clock) tick() {
	if !c.fresh {
		c.fresh = true
		c.read()
	}
}

// pollState is what a call of progress leaves for the next one, and for those who sleep.
type pollState struct {
	idle int // calls without arrivals left before timers are checked
	// serviceAt is when service has work, if nothing arrives and nobody calls.
	serviceAt time.Duration
	arrived   bool // something arrived in this call of progress
	returned  bool // receive buffers were returned or posted since the last service
	polling   bool // Poll makes progress, not the progress thread
	shows     bool // and has completions to return
	// foundAt is when a call has found arrivals last, arrivingAt when the first of those calls did
	// between which there was neither a call without arrivals nor a pause.
	foundAt, arrivingAt time.Duration
}

// longestRead is how long the acks of other peers may be in the socket behind what calls find
// there: a full socket is read in less. Later arrivals came after the timers were due.
const longestRead = 2 * time.Millisecond

// recordArrivals records whether a call has found arrivals.
func (s *pollState) recordArrivals(came bool, now time.Duration) {
	if came {
		if !s.arrived || now-s.foundAt > longestRead {
			s.arrivingAt = now
		}
		s.foundAt = now
	}
	s.arrived = came
}

// unread reports whether more may be in the socket that arrived before now. A process that had no
// core for some time finds there the acks for which its timers wait.
func (s *pollState) unread(now time.Duration) bool {
	return s.arrived && now-s.arrivingAt < longestRead
}

// recordPosted records that receive buffers were posted.
func (s *pollState) recordPosted() { s.serviceAt, s.returned = 0, true }

// serviceDue reports whether service has work. While nothing is in flight, it does not
// read the clock.
func (d *Device) serviceDue() bool {
	if d.polls.serviceAt == never {
		return false
	}
	d.clock.tick()
	return d.clock.now >= d.polls.serviceAt
}

// nextTimer returns when service has work, if nothing arrives and nobody calls. A
// message that waits for a buffer is retried each time.
func (d *Device) nextTimer() time.Duration {
	for _, q := range d.pairs {
		if q != nil && len(q.records) > 0 {
			return 0
		}
	}
	if d.deliverable() {
		return 0
	}
	return d.wake()
}

// deliverable reports whether a message waits for a receive buffer.
func (d *Device) deliverable() bool {
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		for _, p := range q.busy {
			if p.Waiting() {
				return true
			}
		}
	}
	return false
}

// wake returns when service has work.
func (d *Device) wake() time.Duration {
	at := never
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		at = min(at, q.recordsDue())
		for _, p := range q.busy {
			at = min(at, p.SendWake(), p.probeAt(), p.partialsDue())
			for k := range p.Paths() {
				at = min(at, p.AckWake(d.clock.now, k))
			}
		}
	}
	return at
}
