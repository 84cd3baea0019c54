package mpi

// Conversion of operations on elements to reductions of bytes for the engine. A
// user-defined function runs in the middle of a collective, with the engine's lock held; a
// panic must not leave it locked. The panic becomes the error of the call, with the stack,
// and all other ranks are informed: results that include this rank's data are invalid.

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/nodecoll"
)

// opReducer is an operation for the engine. It stays with its Collective, so that a call
// does not allocate one.
type opReducer[T any] struct {
	op        Op[T]
	call      string
	c         *Comm
	inout, in []T // of the running user-defined function
}

// setReducer adds the operation of a reduction to a collective; op is nil if it is none.
func setReducer[T any](c *Comm, co *engine.Collective, op *Op[T]) {
	if op == nil {
		return
	}
	r, ok := co.Reducer.(*opReducer[T])
	if !ok {
		r = new(opReducer[T])
		co.Reducer = r
	}
	r.op, r.call, r.c = *op, co.Call, c
}

// Reduce sets inout to in ∘ inout.
func (r *opReducer[T]) Reduce(h *engine.Held, inout, in []byte) error {
	if p := r.op.predefined; p != nil {
		p.combine(elements[T](inout), elements[T](in))
		return nil
	}
	return r.users(h, elements[T](inout), elements[T](in))
}

func (r *opReducer[T]) users(h *engine.Held, inout, in []T) (err error) {
	defer func() {
		r.inout, r.in = nil, nil
		if p := recover(); p != nil {
			err = newOpError(r.call, r.op.Name(), p)
		}
	}()
	r.inout, r.in = inout, in
	h.RunOperation(r)
	return nil
}

// Operate calls the user-defined function.
func (r *opReducer[T]) Operate() {
	r.c.past.noteOperation(true)
	defer r.c.past.noteOperation(false)
	r.op.user.Combine(r.inout, r.in)
}

// opError is the error of a user-defined function, as it passes through the engine.
type opError struct {
	call  string
	short string // for other ranks
	err   error
}

func (e *opError) Error() string { return e.err.Error() }
func (e *opError) Unwrap() error { return e.err }

func newOpError(call, name string, p any) *opError {
	e := &opError{call: call, short: fmt.Sprintf("the operation %q panicked: %.100s", name, fmt.Sprint(p))}
	e.err = fmt.Errorf("the operation %q panicked: %v\n\n%s", name, p, debug.Stack())
	if calls, ok := p.(error); ok && errors.Is(calls, engine.OperationCallsError{}) {
		e.short = fmt.Sprintf("operation %q: %v", name, calls)
		e.err = fmt.Errorf("operation %q: %w\n\n%s", name, calls, debug.Stack())
	}
	return e
}

// segmentOp runs user-defined functions for collectives in shared memory. These do not hold
// the lock; segmentOp takes it, so that a function that calls this package is detected in
// the same way. The communicator keeps the last one, so that a call does not allocate.
type segmentOp[T any] struct {
	c         *Comm
	op        Op[T]
	inout, in []T
	inside    bool
	combine   func(inout, in []T) // apply
}

func segmentOpOf[T any](c *Comm, op *Op[T]) *segmentOp[T] {
	s, ok := c.node.users.(*segmentOp[T])
	if !ok {
		s = &segmentOp[T]{c: c}
		s.combine = s.apply
		c.node.users = s
	}
	s.op = *op
	return s
}

func (s *segmentOp[T]) apply(inout, in []T) {
	s.inout, s.in, s.inside = inout, in, true
	s.c.e.RunOperation(s)
	s.inout, s.in, s.inside = nil, nil, false
}

// Operate calls the user-defined function.
func (s *segmentOp[T]) Operate() {
	s.c.past.noteOperation(true)
	defer s.c.past.noteOperation(false)
	s.op.user.Combine(s.inout, s.in)
}

// recoverPanic converts a panic of the function to an error and informs all ranks. It is
// deferred.
func (s *segmentOp[T]) recoverPanic(call string, err *error) {
	if !s.inside {
		return // the panic is not the function's
	}
	p := recover()
	s.inout, s.in, s.inside = nil, nil, false
	e := newOpError(call, s.op.Name(), p)
	class, text := s.c.past.fault(e)
	s.c.node.team.Fail(uint8(class), text)
	s.c.e.Break(&s.c.co, e)
	*err = e
}

// usersReduction is reduceInTeam with a user-defined function.
func usersReduction[T Elem](c *Comm, t *nodecoll.Team, k *collCall, op *Op[T]) (err error) {
	s := segmentOpOf(c, op)
	defer s.recoverPanic(k.name, &err)
	return reduceInTeam(t, k, s.combine, op.unit(), !op.ordered())
}

// usersAllreduce is the same for quickAllreduce.
func usersAllreduce[T Elem](c *Comm, t *nodecoll.Team, in, out []T, op *Op[T]) (err error) {
	s := segmentOpOf(c, op)
	defer s.recoverPanic("Allreduce", &err)
	return nodecoll.Allreduce(t, "Allreduce", in, out, s.combine, op.unit(), !op.ordered())
}
