package engine

// Waiting for a word in memory that ranks share. The caller reads the word and calls
// PollOnce between reads, so that messages progress, dead ranks are detected, and
// other threads get the core.

import "github.com/muster-mpi/muster/internal/pmi"

// ShowWaiting records on the board that the rank sleeps between calls of PollOnce.
// The peer is unknown: any rank may change the word.
func (e *Engine) ShowWaiting(c *Comm, op string) {
	e.lock()
	defer e.unlock()
	e.board.Waiting(e.rank, e.describeProbe(c, op, pmi.PeerNone, pmi.TagNone))
}

// ShowRunning records on the board that the wait is over.
func (e *Engine) ShowRunning() {
	e.lock()
	defer e.unlock()
	e.board.Running(e.rank)
}

// PollOnce polls the devices, once or while something comes. n counts the calls of one
// wait. After Spin calls, PollOnce also yields the core; after Spin and Yield calls, idle
// is true and the caller should sleep until a message wakes it. The error reports why the
// rank can no longer communicate, or why the collectives of the context ctx have failed.
func (e *Engine) PollOnce(n int, ctx uint32) (idle bool, err error) {
	e.lock()
	defer e.unlock()
	e.calls++
	s := strategy{spin: e.spin, yields: e.yields, first: n, idle: n}
	step := stepPoll
	for range drainPolls {
		found := e.driver == nil && e.poll() > 0
		if step = s.next(found, e.mu.wanted.Load() != 0); !found || step != stepPoll {
			break
		}
	}
	if len(e.connecting) > 0 {
		e.openAll()
	}
	err = e.failed
	if err == nil && e.broken != nil {
		err = e.brokenError(ctx)
	}
	if err != nil {
		return false, err
	}
	e.pause(&s, step)
	e.endWait(&s) // the caller may not come back
	if s.long != 0 && n > e.spin {
		e.waited.times-- // the wait was counted when it yielded for the first time
	}
	return step == stepPark, nil
}
