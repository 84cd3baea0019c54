package pacing

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	now := time.Unix(1, 0)
	away := func(p *Pace, d time.Duration, waited bool) bool {
		p.Away(now)
		now = now.Add(d)
		return p.Back(now, waited)
	}
	var p Pace
	if got := p.Pause(); got != shortestPause {
		t.Errorf("the first pause is %v, want %v", got, shortestPause)
	}
	// Time slices of others: it is left alone for longer and longer, up to a bound.
	last := time.Duration(0)
	for range 20 {
		if !away(&p, 100*time.Microsecond, false) {
			t.Error("an absence of 100µs should have been needless to attend to")
		}
		if got := p.Pause(); got <= last && got < longestPause*15/16 || got > longestPause {
			t.Errorf("after needless attendance the pause went from %v to %v", last, got)
		} else {
			last = got
		}
	}
	// It computes: after a few times somebody is there soon.
	for range 6 {
		if away(&p, 10*time.Millisecond, false) {
			t.Error("10 ms away, and it counts as needless")
		}
	}
	if got := p.Pause(); got != shortestPause {
		t.Errorf("after real absences the pause is %v, want %v", got, shortestPause)
	}
	// Who waits in the library is not away, however long.
	if !away(&p, time.Second, true) {
		t.Error("a second of waiting counts as absence")
	}
	// Between the two nothing changes, and calling alone brings the pause down.
	before := p.pause
	if away(&p, 2*time.Millisecond, false) || p.pause != before {
		t.Errorf("2 ms away changed the pause from %v to %v", before, p.pause)
	}
	for range 40 {
		p.Pause()
	}
	if p.pause != shortestPause {
		t.Errorf("a program that keeps calling is left alone for %v", p.pause)
	}
}
