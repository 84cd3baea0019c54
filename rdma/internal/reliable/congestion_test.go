package reliable

import (
	"testing"
	"time"
)

// TestPacingEnds: packets are probes for a while, with a small window and a round-trip time of
// seconds, as after a stop. The next packet may be sent within a second.
func TestPacingEnds(t *testing.T) {
	c := newCongestion(1400)
	c.addSample(0, 2*time.Second)
	c.window = c.unit * minShare
	now := time.Duration(0)
	for range 100 {
		now += maxRTO
		c.free = true
		c.pace(now, 1400)
	}
	if c.paceAt > now {
		t.Errorf("probes reserve time: the next packet is due after %v", c.paceAt-now)
	}
	for range 3 {
		c.pace(now, 1400)
	}
	if c.paceAt > now+time.Second {
		t.Errorf("the next packet is due after %v", c.paceAt-now)
	}
}
