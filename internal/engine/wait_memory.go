package engine

// Waiting for a word in memory that ranks share. The caller reads the word and calls
// PollOnce between reads, so that messages progress, dead ranks are detected, and
// other threads get the core.

import (
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// ShowWaiting records on the board that the rank sleeps between calls of PollOnce.
// The peer is unknown: any rank may change the word.
func (r *Engine) ShowWaiting(c *Comm, op string) {
	e := r.lock()
	defer e.unlock()
	e.board.Waiting(e.rank, e.describeProbe(c, op, pmi.PeerNone, pmi.TagNone))
}

// ShowsWaits reports whether PollOnce records waits on the board (Config.ShowWaits).
func (r *Engine) ShowsWaits() bool { return r.held.cfg.ShowWaits }

// ShowRunning records on the board that the wait is over.
func (r *Engine) ShowRunning() {
	e := r.lock()
	defer e.unlock()
	e.board.Running(e.rank)
}

// pollUntil polls until done, for as long as a wait spins and yields. It returns false if the
// caller should sleep then.
func (e *Held) pollUntil(done func() bool) bool {
	s := e.newStrategy()
	defer e.endWait(&s)
	for !done() {
		found := e.pollIfIdle()
		step := s.next(found, e.mu.wanted.Load() != 0)
		if step == stepPark {
			return done()
		}
		e.pause(&s, step)
	}
	return true
}

// pollFor polls until done, at most for a time. It returns false if the time is over.
func (e *Held) pollFor(limit time.Duration, done func() bool) bool {
	s := e.newStrategy()
	defer e.endWait(&s)
	for end := e.clock() + limit; !done(); {
		if e.clock() > end {
			return false
		}
		found := e.pollIfIdle()
		e.pause(&s, s.next(found, e.mu.wanted.Load() != 0))
	}
	return true
}

// pollIfIdle polls unless another goroutine drives, connects links, and reports whether the
// poll had a result.
func (e *Held) pollIfIdle() (found bool) {
	found = e.waits.driver == nil && e.poll() > 0
	if len(e.links.connecting) > 0 {
		e.openAll()
	}
	return found
}

// PollOnce polls the devices, once or while something comes. n counts the calls of one
// wait. After Spin calls, PollOnce also yields the core; after Spin and Yield calls, idle
// is true and the caller should sleep until a message wakes it. The error reports why the
// rank can no longer communicate, or why the collectives of the context have failed. With
// Config.ShowWaits the caller must call ShowRunning after the wait; op is the call that is shown.
func (r *Engine) PollOnce(c *Comm, op string, n int) (idle bool, err error) {
	e := r.lock()
	defer e.unlock()
	e.calls++
	s := strategy{spin: e.pollsPerYield(), yields: e.yields, first: n, idle: n}
	step := stepPoll
	for range drainPolls {
		found := e.waits.driver == nil && e.poll() > 0
		if step = s.next(found, e.mu.wanted.Load() != 0); !found || step != stepPoll {
			break
		}
	}
	if len(e.links.connecting) > 0 {
		e.openAll()
	}
	if err = e.errIn(c.Ctx); err != nil {
		return false, err
	}
	if e.cfg.ShowWaits && n == s.spin && step == stepYield {
		e.board.Waiting(e.rank, e.describeProbe(c, op, pmi.PeerNone, pmi.TagNone))
	}
	e.pause(&s, step)
	e.endWait(&s) // the caller may not come back
	if s.long != 0 && n > s.spin {
		e.waits.stats.times-- // the wait was counted when it yielded for the first time
	}
	return step == stepPark, nil
}
