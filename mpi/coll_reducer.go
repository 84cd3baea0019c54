package mpi

// From operations on elements to reductions of bytes, which is what the engine
// knows. A function of the user runs in the middle of a collective, with the
// engine's lock held; one that panics must not leave it so. The collective goes on,
// since other ranks wait for what this one has still to send, and ends with an
// error that shows where the function was.

import (
	"fmt"
	"runtime/debug"

	"github.com/muster-mpi/muster/internal/engine"
)

// opReducer is an operation for the engine. It stays with its Collective, so that a
// call allocates nothing for it.
type opReducer[T any] struct {
	op   Op[T]
	call string
}

func setReducer[T any](co *engine.Collective, op Op[T]) {
	r, ok := co.Reducer.(*opReducer[T])
	if !ok {
		r = new(opReducer[T])
		co.Reducer = r
	}
	r.op, r.call = op, co.Call
}

// Reduce sets inout to in ∘ inout.
func (r *opReducer[T]) Reduce(inout, in []byte) error {
	if p := r.op.predefined; p != nil {
		p.combine(elements[T](inout), elements[T](in))
		return nil
	}
	return r.users(elements[T](inout), elements[T](in))
}

func (r *opReducer[T]) users(inout, in []T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &opError{r.call, fmt.Errorf("the operation %q panicked: %v\n\n%s", r.op.Name, p, debug.Stack())}
		}
	}()
	r.op.Combine(inout, in)
	return nil
}

// opError is the error of a function of the user, on its way through the engine.
type opError struct {
	call string
	err  error
}

func (e *opError) Error() string { return e.err.Error() }
func (e *opError) Unwrap() error { return e.err }
