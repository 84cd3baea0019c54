package soft

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	now := time.Unix(1, 0)
	away := func(p *pace, d time.Duration, waited bool) bool {
		p.away(now)
		now = now.Add(d)
		return p.back(now, waited)
	}
	var p pace
	if got := p.next(); got != shortestPause {
		t.Errorf("the first pause is %v, want %v", got, shortestPause)
	}
	// Time slices of other processes: the pause grows up to a bound.
	last := time.Duration(0)
	for range 20 {
		if !away(&p, 100*time.Microsecond, false) {
			t.Error("back reports an absence of 100µs as real")
		}
		if got := p.next(); got <= last && got < longestPause*15/16 || got > longestPause {
			t.Errorf("after a needless takeover the pause went from %v to %v", last, got)
		} else {
			last = got
		}
	}
	// The application computes: after a few absences the pause is short again.
	for range 6 {
		if away(&p, 10*time.Millisecond, false) {
			t.Error("back reports an absence of 10 ms as needless")
		}
	}
	if got := p.next(); got != shortestPause {
		t.Errorf("after real absences the pause is %v, want %v", got, shortestPause)
	}
	// An application that waits in the library is not away, however long.
	if !away(&p, time.Second, true) {
		t.Error("a second of waiting counts as an absence")
	}
	// Absences between the two bounds change nothing, and calls alone shorten the
	// pause.
	before := p.pause
	if away(&p, 2*time.Millisecond, false) || p.pause != before {
		t.Errorf("2 ms away changed the pause from %v to %v", before, p.pause)
	}
	for range 40 {
		p.next()
	}
	if p.pause != shortestPause {
		t.Errorf("an application that keeps calling is left alone for %v", p.pause)
	}
}
