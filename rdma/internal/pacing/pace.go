package pacing

import "time"

// Pace is how long a program that calls is left alone before somebody looks whether it
// still does. Where every program has a core, who has not called for some microseconds
// computes, and a look once a millisecond costs nothing. Where programs share cores, one
// that wants to call may have to wait for a core: it looks as if it computed, somebody
// attends in its place, and must be told when it is back, all the time and for nothing
// (measured: 16 ranks on two cores took ten times as long for a barrier). So each time
// that it was back at once, it is left alone for twice as long, and half as long again
// after it was really away.
type Pace struct {
	pause time.Duration
	left  time.Time
}

const (
	shortestPause = time.Millisecond
	longestPause  = 32 * time.Millisecond
	// backAtOnce is an absence that was none: less than a time slice.
	backAtOnce = time.Millisecond
	// reallyAway is more than time slices of others explain, if there are few of them.
	reallyAway = 4 * time.Millisecond
)

// Pause is how long to leave the program alone that was just seen calling.
func (p *Pace) Pause() time.Duration {
	p.pause = max(p.pause, shortestPause)
	now := p.pause
	p.pause = max(now-now/16, shortestPause)
	return now
}

// Away notes that the program seems to be away.
func (p *Pace) Away(now time.Time) { p.left = now }

// Back notes that it is back, or that it only waited. It is true if nobody need have
// attended, and the program should be left alone.
func (p *Pace) Back(now time.Time, waited bool) (needless bool) {
	switch gone := now.Sub(p.left); {
	case waited || gone < backAtOnce:
		p.pause = min(2*max(p.pause, shortestPause), longestPause)
		return true
	case gone > reallyAway:
		p.pause = max(p.pause/2, shortestPause)
	}
	return false
}
