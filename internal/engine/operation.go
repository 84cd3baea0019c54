package engine

// User functions in reductions. They run with the lock held and must not call package
// mpi (MPI-4.1 section 6.9.5). A function that does would wait for a lock that its own
// goroutine holds, or, with a biased lock, enter the engine in an inconsistent state. So
// the bias is suspended meanwhile, and a goroutine that waits for the lock checks whether
// a user function has called it.

import (
	"runtime"
	"strings"
	"sync/atomic"
)

// Operation is a user function with its arguments.
type Operation interface{ Operate() }

// OperationCallsError is the panic value of a call made by an operation.
type OperationCallsError struct{}

func (OperationCallsError) Error() string {
	return "the operation calls package mpi, which MPI-4.1 section 6.9.5 forbids: let Combine only compute, and communicate before or after the reduction"
}

// RunOperation runs an operation.
func (r *Engine) RunOperation(op Operation) {
	e := r.lock()
	defer e.unlock()
	e.RunOperation(op)
}

// RunOperation runs an operation. InOperation searches the stack for this function's
// name.
//
//go:noinline
func (e *Held) RunOperation(op Operation) {
	g := e.mu.guard()
	defer e.mu.unguard(g)
	op.Operate()
}

// guarded is the state that unguard restores.
type guarded struct {
	took bool
	lent uintptr
}

// guard makes every goroutine, the owner included, wait for a lock that is held.
func (s *spinLock) guard() (g guarded) {
	s.operating.Store(true)
	if s.biased() {
		// Take the ordinary lock as well. Its current holder either revokes the bias
		// for good, or borrows the lock and gives up soon (lock.go).
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

// InOperation reports whether an operation has called the caller.
func InOperation() bool {
	var pcs [64]uintptr
	n := runtime.Callers(2, pcs[:])
	for skip := 2; n > 0; skip, n = skip+n, runtime.Callers(skip+n, pcs[:]) {
		frames := runtime.CallersFrames(pcs[:n])
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if strings.HasSuffix(f.Function, "/internal/engine.(*Held).RunOperation") {
				return true
			}
		}
	}
	return false
}
