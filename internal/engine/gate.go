package engine

// The gate of a job's barrier: a counter on the board that all ranks of the host see.
// The last rank to arrive opens it. Waiting ranks poll meanwhile, because peers may
// need an answer from them.

import "time"

// Arrive counts this rank in at the gate of the job. It returns 0 if the job has no
// gate.
func (e *Engine) Arrive() (opening uint64, last bool) { return e.board.Arrive() }

// OpenGate releases the other ranks and calls wake for those that are asleep.
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

// AwaitGate polls until the gate opens, for as long as a wait spins and yields. It
// returns false if the gate has not opened by then: a message will wake the rank.
func (e *Engine) AwaitGate(opening uint64, ctx uint32) bool {
	var long time.Time // when yielding began
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
		if len(e.connecting) > 0 {
			e.openAll()
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

// waitedLong counts a wait that yielded.
func (e *Engine) waitedLong(since time.Time) {
	if !since.IsZero() {
		e.lock()
		e.waited.since(since)
		e.unlock()
	}
}
