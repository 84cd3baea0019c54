package engine

// Waiting for something that is not a message: a word in memory that ranks share.
// The caller looks at it, and calls PollOnce between looks, so that this rank's
// messages move, deaths are noticed, and the core goes to those who can use it.

import "github.com/muster-mpi/muster/internal/pmi"

// ShowWaiting writes on the board that the rank sleeps between calls of PollOnce. Whom it
// waits for is not known: a word in memory does not report who will change it.
func (e *Engine) ShowWaiting(c *Comm, op string) {
	e.lock()
	defer e.unlock()
	e.board.Waiting(e.rank, e.describeProbe(c, op, pmi.PeerNone, pmi.TagNone))
}

// ShowRunning takes it back.
func (e *Engine) ShowRunning() {
	e.lock()
	defer e.unlock()
	e.board.Running(e.rank)
}

// PollOnce polls once. n counts the calls of one wait: after as many as a waiter of
// messages would spin, it gives way to others, and after as many as that one would
// yield it says that the caller should sleep, by receiving a message that wakes it.
// The error is why the rank can no longer communicate, or why the collectives of the
// context ctx have failed.
func (e *Engine) PollOnce(n int, ctx uint32) (sleepy bool, err error) {
	e.lock()
	if e.driver == nil {
		e.poll()
	}
	if n >= e.spin && n&63 == 0 {
		e.checkDeaths()
	}
	err = e.failed
	if err == nil && e.broken != nil {
		err = e.brokenError(ctx)
	}
	e.unlock()
	if err != nil || n < e.spin {
		return false, err
	}
	e.yieldCore(n)
	return n >= e.spin+e.yields, nil
}
