package engine

// The gate of a job's barrier: a counter on the board that all ranks of the host
// see. Who arrives last opens it; those who wait poll meanwhile, for others may need
// an answer from them.

import "time"

// Arrive counts this rank in at the gate of the job; 0 if it has none.
func (e *Engine) Arrive() (opening uint64, last bool) { return e.board.Arrive() }

// OpenGate lets the others go, and calls wake for those who are asleep.
func (e *Engine) OpenGate(opening uint64, wake func(rank int) error) error {
	e.board.Open(opening)
	for r := range e.size {
		if r != e.rank && e.board.WakeUp(r, opening) {
			if err := wake(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// AwaitGate waits for the gate to open, as long as waiting without sleep makes
// sense. If it has not opened then, it says so: a message will come.
func (e *Engine) AwaitGate(opening uint64, ctx uint32) bool {
	var long time.Time // since when the core is given away
	for i := range e.spin + e.yields {
		if e.board.Opened(opening) {
			e.waitedLong(long)
			e.lockAndResumeThread()
			return true
		}
		e.lock()
		if e.undriven() {
			e.takeOver()
			e.poll()
		}
		if i&63 == 63 {
			e.checkDeaths()
		}
		failed := e.failed != nil || e.broken != nil && e.broken[ctx] != nil
		e.unlock()
		if failed {
			break
		}
		if i >= e.spin {
			if long.IsZero() {
				long = time.Now()
			}
			e.yieldCore(i)
		}
	}
	e.waitedLong(long)
	e.board.FallAsleep(e.rank, opening)
	e.lockAndResumeThread()
	return e.board.Opened(opening) && e.board.WakeUp(e.rank, opening)
}

// waitedLong counts a wait, if it was a long one.
func (e *Engine) waitedLong(since time.Time) {
	if !since.IsZero() {
		e.lock()
		e.waited.since(since)
		e.unlock()
	}
}
