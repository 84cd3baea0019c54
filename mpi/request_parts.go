package mpi

// Requests with several operations: one of Isendrecv has a receive and a send, and in check
// mode one of a collective also has the messages that compare the calls (check_coll.go).
// Such a request is complete when all of them are. Calls that test, and calls with a context,
// complete none of them before.

import "github.com/muster-mpi/muster/internal/engine"

// several reports whether a request may have several operations.
func (more *requestMore) several() bool {
	return more != nil && (more.send != nil || more.check != nil && more.check.calls != nil)
}

// ofCollective reports whether the operation of a request is a message of a collective call, or of a
// goroutine that accesses a file.
func (more *requestMore) ofCollective() bool {
	return more != nil && (more.made != nil || more.file != nil || more.check != nil && more.check.calls != nil)
}

// pendingOp returns an operation of the request that is not complete, if there is one.
func (r Request) pendingOp() engine.Op {
	if r.more == nil {
		return r.op
	}
	if s := r.more.send; s != nil && !s.done() {
		return s.op
	}
	if k := r.more.check; k != nil && k.calls != nil {
		return k.calls.pendingOp(r.op)
	}
	return r.op
}
