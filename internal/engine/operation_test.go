package engine

import (
	"runtime"
	"testing"
)

type operation func()

func (f operation) Operate() { f() }

// A call made by an operation panics, with a biased and with an ordinary lock. Another
// goroutine waits for the lock.
func TestOperationCalls(t *testing.T) {
	for _, biased := range []bool{false, true} {
		for _, held := range []bool{false, true} {
			e := &Engine{}
			e.held.mu.shared = !biased || !canBias()
			for range 2 * biasAfter {
				e.lock()
				e.held.unlock()
			}
			if held {
				e.lock()
			}
			other := make(chan struct{})
			func() {
				defer func() {
					if p := recover(); p != (OperationCallsError{}) {
						t.Errorf("biased %v, held %v: the call in an operation panicked with %v", biased, held, p)
					}
				}()
				run := e.RunOperation
				if held {
					run = e.held.RunOperation
				}
				run(operation(func() {
					go func() {
						e.lock()
						e.held.unlock()
						close(other)
					}()
					for e.held.mu.wanted.Load() == 0 {
						runtime.Gosched() // until it waits for the lock
					}
					select {
					case <-other:
						t.Error("another goroutine took a lock that is held")
					default:
					}
					e.lock()
				}))
			}()
			if held {
				e.held.unlock()
			}
			<-other
			if e.held.mu.operating.Load() {
				t.Error("the lock is still marked as operating")
			}
			e.lock()
			e.held.unlock()
		}
	}
}
