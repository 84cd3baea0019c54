package engine

// Operations of the user inside of a reduction. They run with the lock held and must
// not call this package (MPI-4.1 section 6.9.5). One that does would wait for a lock
// that its own goroutine has, or, where the lock is biased, walk into the middle of
// what the engine is doing. So the bias is put aside meanwhile, and whoever then waits
// for the lock looks whether it was called by the operation.

import (
	"runtime"
	"strings"
	"sync/atomic"
)

// Operation is a function of the user with its arguments.
type Operation interface{ Operate() }

// OperationCallsError is the value of the panic in a call that an operation has made.
type OperationCallsError struct{}

func (OperationCallsError) Error() string {
	return "the operation calls package mpi, which MPI-4.1 section 6.9.5 forbids: let Combine only compute, and communicate before or after the reduction"
}

// RunOperation runs an operation; held says that the caller has the lock. Its name is
// what insideOperation looks for.
//
//go:noinline
func (e *Engine) RunOperation(op Operation, held bool) {
	if !held {
		e.lock()
		defer e.unlock()
	}
	g := e.mu.guard()
	defer e.mu.unguard(g)
	op.Operate()
}

// InOperation reports whether the caller was called by an operation.
func (e *Engine) InOperation() bool { return insideOperation() }

// guarded is what guard has changed.
type guarded struct {
	took bool
	lent uintptr
}

// guard makes every caller wait for a lock that is held, its owner included.
func (s *spinLock) guard() (g guarded) {
	s.operating.Store(true)
	if s.biased() {
		// The ordinary lock as well. Who has it now takes the bias away for good, or
		// borrows the lock and gives up soon (lock.go).
		for i := 0; i < guardTries; i++ {
			if g.took = s.state.CompareAndSwap(0, 1); g.took {
				break
			}
			backOff(i)
		}
		if !g.took {
			return g
		}
	}
	if g.lent = atomic.LoadUintptr(&s.bias); g.lent != 0 {
		atomic.StoreUintptr(&s.bias, 0)
	}
	return g
}

// guardTries is more than a borrower needs to give up.
const guardTries = 200

func (s *spinLock) unguard(g guarded) {
	s.operating.Store(false)
	if g.lent != 0 {
		atomic.StoreUintptr(&s.bias, g.lent)
	}
	if g.took {
		s.state.Store(0)
	}
}

// insideOperation reports whether the caller was called by an operation.
func insideOperation() bool {
	var pcs [64]uintptr
	n := runtime.Callers(2, pcs[:])
	for skip := 2; n > 0; skip, n = skip+n, runtime.Callers(skip+n, pcs[:]) {
		frames := runtime.CallersFrames(pcs[:n])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if strings.HasSuffix(f.Function, "/internal/engine.(*Engine).RunOperation") {
				return true
			}
		}
	}
	return false
}
