package soft

import "time"

// pace decides how long a calling application is left alone before the progress thread
// checks again whether it still calls.
//
// If every application has its own core, one that has not called for some microseconds
// is computing, and a check once a millisecond costs nothing. If applications share
// cores, one that wants to call may have to wait for a core. It then seems to be
// computing, and the progress thread takes over and must be notified when it is back,
// all the time and for nothing (measured: 16 ranks on two cores took ten times as long
// for a barrier). So the pause doubles each time the application was back at once, and
// halves after it was really away.
type pace struct {
	pause time.Duration
	left  time.Time
}

const (
	shortestPause = time.Millisecond
	longestPause  = 32 * time.Millisecond
	// backAtOnce is an absence that does not count: less than a time slice.
	backAtOnce = time.Millisecond
	// reallyAway is longer than the time slices of a few other processes explain.
	reallyAway = 4 * time.Millisecond
)

// next returns how long to leave an application alone that has just called.
func (p *pace) next() time.Duration {
	p.pause = max(p.pause, shortestPause)
	now := p.pause
	p.pause = max(now-now/16, shortestPause)
	return now
}

// away records that the application seems to be away.
func (p *pace) away(now time.Time) { p.left = now }

// back records that the application is back, or that it only waited. It returns true if
// taking over was needless and the application should be left alone.
func (p *pace) back(now time.Time, waited bool) (needless bool) {
	switch gone := now.Sub(p.left); {
	case waited || gone < backAtOnce:
		p.pause = min(2*max(p.pause, shortestPause), longestPause)
		return true
	case gone > reallyAway:
		p.pause = max(p.pause/2, shortestPause)
	}
	return false
}
