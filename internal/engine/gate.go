package engine

// The gate of a job's barrier: a counter on the board that all ranks of the host see.
// The last rank to arrive opens it. Waiting ranks poll meanwhile, because peers may
// need an answer from them.

import "github.com/muster-mpi/muster/internal/pmi"

// HasGate reports whether the job has a gate.
func (e *Engine) HasGate() bool { return e.board != nil }

// Arrive counts this rank in at the gate of the job, with a hash of its calls.
func (e *Engine) Arrive(calls uint64) (opening uint64, a pmi.Arrival) { return e.board.Arrive(calls) }

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
	e.lock()
	s := e.newStrategy()
	opened := false
	for !opened {
		if opened = e.board.Opened(opening); opened {
			break
		}
		found := false
		if e.driver == nil {
			found = e.poll() > 0
		}
		if len(e.connecting) > 0 {
			e.openAll()
		}
		step := s.next(found, e.mu.wanted.Load() != 0)
		if step == stepPark || e.failed != nil || e.broken != nil && e.broken[ctx] != nil {
			break
		}
		e.pause(&s, step)
	}
	e.endWait(&s)
	if !opened {
		e.board.FallAsleep(e.rank, opening)
	}
	e.unlock()
	return opened || e.board.Opened(opening) && e.board.WakeUp(e.rank, opening)
}
