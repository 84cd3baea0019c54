package engine

// The gate of a job's barrier: a counter on the board that all ranks of the host see.
// The last rank to arrive opens it. Waiting ranks poll meanwhile, because peers may
// need an answer from them.

import "github.com/muster-mpi/muster/internal/pmi"

// HasGate reports whether the job has a gate.
func (r *Engine) HasGate() bool { return r.held.board.IsShared() }

// Arrive counts this rank in at the gate of the job, with a hash of its calls.
func (r *Engine) Arrive(calls uint64) (opening uint64, a pmi.Arrival) {
	return r.held.board.Arrive(calls)
}

// OpenGate releases the other ranks and calls wake for those that are asleep.
func (r *Engine) OpenGate(opening uint64, wake func(rank int) error) error {
	s := &r.held.setup
	s.board.Open(opening)
	for rank := range s.size {
		if rank != s.rank && s.board.WakeUp(rank, opening) {
			if err := wake(rank); err != nil {
				return err
			}
		}
	}
	return nil
}

// AwaitGate polls until the gate opens, for as long as a wait spins and yields. It
// returns false if the gate has not opened by then: a message will wake the rank.
func (r *Engine) AwaitGate(opening uint64, ctx uint32) bool {
	e := r.lock()
	opened := false
	e.pollUntil(func() bool {
		opened = e.board.Opened(opening)
		return opened || e.errIn(ctx) != nil
	})
	if !opened {
		e.board.FallAsleep(e.rank, opening)
	}
	e.unlock()
	return opened || e.board.Opened(opening) && e.board.WakeUp(e.rank, opening)
}
