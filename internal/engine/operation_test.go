package engine

import (
	"testing"
	"time"
)

type operation func()

func (f operation) Operate() { f() }

// A call that an operation makes is found out, with a lock that its goroutine owns and
// with an ordinary one; another goroutine only waits.
func TestOperationCalls(t *testing.T) {
	for _, biased := range []bool{false, true} {
		for _, held := range []bool{false, true} {
			e := &Engine{}
			e.mu.shared = !biased || !canBias()
			for range 2 * biasAfter {
				e.lock()
				e.unlock()
			}
			if held {
				e.lock()
			}
			other := make(chan struct{})
			func() {
				defer func() {
					if p := recover(); p != (OperationCallsError{}) {
						t.Errorf("biased %v, held %v: the call of an operation ended with %v", biased, held, p)
					}
				}()
				e.RunOperation(operation(func() {
					go func() {
						e.lock()
						e.unlock()
						close(other)
					}()
					time.Sleep(5 * time.Millisecond)
					select {
					case <-other:
						t.Error("another goroutine got a lock that is held")
					default:
					}
					e.lock()
				}), held)
			}()
			if held {
				e.unlock()
			}
			<-other
			if e.mu.operating.Load() {
				t.Error("the operation is over")
			}
			e.lock()
			e.unlock()
		}
	}
}
