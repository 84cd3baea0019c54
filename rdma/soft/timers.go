package soft

import "time"

// Timers: when service has work although nothing arrives and nobody calls.

// serviceDue reports whether service has work. While nothing is in flight, it does not
// read the clock.
func (d *Device) serviceDue() bool {
	if d.serviceAt == never {
		return false
	}
	d.tick()
	return d.now >= d.serviceAt
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
				at = min(at, p.AckWake(d.now, k))
			}
		}
	}
	return at
}
