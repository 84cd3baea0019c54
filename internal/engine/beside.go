package engine

// Several engines in one process: that of its job, and one for each job that it has joined since
// (mpi, join.go). MPI has one rule of progress for all of them: while a call waits for one, the
// others answer too. A waiter polls the others whenever it yields or is about to park, without its
// own lock, and parks only for moments, as nothing wakes it for what arrives there.

import "slices"

// SetBeside sets the other engines of this process.
func (r *Engine) SetBeside(others []*Engine) {
	e := r.lock()
	e.beside = slices.Clone(others)
	if e.waits.parked {
		e.home.cq.Wake()
	}
	e.unlock()
}

// pollBeside polls the other engines. The caller does not hold the lock.
func pollBeside(others []*Engine) {
	for _, r := range others {
		r.poll()
	}
}

// poll polls once, unless a goroutine drives already.
func (r *Engine) poll() {
	e := r.lock()
	if !e.closed && e.waits.driver == nil {
		e.poll()
		if len(e.links.connecting) > 0 {
			e.openAll()
		}
	}
	e.unlock()
}
