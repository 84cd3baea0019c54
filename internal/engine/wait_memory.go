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

// PollOnce polls the devices once. n counts the calls of one wait. After Spin calls,
// PollOnce also yields the core; after Spin and Yield calls, idle is true and the
// caller should sleep until a message wakes it. The error reports why the rank can no
// longer communicate, or why the collectives of the context ctx have failed.
func (e *Engine) PollOnce(n int, ctx uint32) (idle bool, err error) {
	e.lock()
	if e.driver == nil {
		e.poll()
	}
	if len(e.connecting) > 0 {
		e.openAll()
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
