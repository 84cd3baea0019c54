package mpi

// Accumulates (MPI-4.1 section 12.3.4): calls that atomically read, change and write the
// memory of another rank.

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/rma"
)

// Replace is the operation of accumulates that stores the new value.
func Replace[T Elem]() Op[T] { return Op[T]{predefined: replace[T]{}} }

// NoOp is the operation of accumulates that keeps the old value. With it, GetAccumulate
// and FetchAndOp read atomically.
func NoOp[T Elem]() Op[T] { return Op[T]{predefined: noOp[T]{}} }

type (
	replace[T Elem] struct{}
	noOp[T Elem]    struct{}
)

func (replace[T]) combine(inout, in []T) { copy(inout, in) }
func (noOp[T]) combine(inout, in []T)    {}
func (replace[T]) code() rma.Op          { return rma.Replace }
func (noOp[T]) code() rma.Op             { return rma.NoOp }

// Accumulate combines each element of buf with an element of target, from disp on. Each
// element is updated atomically, and accumulates of one rank to one element happen in the
// order of the calls. The operation is a predefined one, Replace or NoOp.
func (w *Win[T]) Accumulate(buf []T, target, disp int, op func() Op[T]) error {
	h := w.access("Accumulate", target, len(buf))
	return h.finish(w.accumulate("Accumulate", buf, nil, target, disp, operation(op), nil))
}

// GetAccumulate is [Win.Accumulate] that also stores the old values in result, which is as
// long as buf. With NoOp, buf may be nil.
func (w *Win[T]) GetAccumulate(buf, result []T, target, disp int, op func() Op[T]) error {
	h := w.access("GetAccumulate", target, len(result))
	return h.finish(w.getAccumulate("GetAccumulate", buf, result, target, disp, operation(op), nil))
}

// FetchAndOp is [Win.GetAccumulate] of one element. result is set after a flush or at the
// end of the epoch; on mapped memory, when FetchAndOp returns.
func (w *Win[T]) FetchAndOp(value T, result *T, target, disp int, op func() Op[T]) error {
	h, o := w.access("FetchAndOp", target, 1), operation(op)
	if w.control != nil && o.predefined != nil && uint(target) < uint(w.c.size) && w.epochs.Open(target) && !w.alarm.Load() {
		if to := w.part(target); uint(disp) < uint(len(to)) {
			if fetchNative(&w.elements, &to[disp], &value, result, o.predefined.code()) {
				return h.finish(nil)
			}
		}
	}
	return h.finish(w.accumulate("FetchAndOp", []T{value}, sliceOf(result), target, disp, o, nil))
}

// CompareAndSwap stores value at element disp of target if expected is there, and stores
// the old value in result, as FetchAndOp does. Elements are compared bit by bit.
func (w *Win[T]) CompareAndSwap(expected, value T, result *T, target, disp int) error {
	h := w.access("CompareAndSwap", target, 1)
	if w.control != nil && uint(target) < uint(w.c.size) && w.epochs.Open(target) && !w.alarm.Load() {
		if to := w.part(target); uint(disp) < uint(len(to)) {
			if swapNative(&w.elements, &to[disp], &expected, &value, result) {
				return h.finish(nil)
			}
		}
	}
	return h.finish(w.compareAndSwap(expected, value, result, target, disp))
}

func (w *Win[T]) compareAndSwap(expected, value T, result *T, target, disp int) error {
	const call = "CompareAndSwap"
	region, offset, err := w.locate(call, 1, target, disp)
	if err != nil {
		return err
	}
	a, b, was := rawBytes([]T{expected}), rawBytes([]T{value}), rawBytes(sliceOf(result))
	if w.far != nil {
		w.far.CompareSwap(target, region, offset, a, b, was)
		return nil
	}
	return w.runAlone(call, target, func() {
		mem := rawBytes(w.part(target)[disp : disp+1])
		copy(was, mem)
		if string(mem) == string(a) {
			copy(mem, b)
		}
	})
}

// RAccumulate is [Win.Accumulate] with a request, which is complete when buf may be
// changed again. The target must be locked.
func (w *Win[T]) RAccumulate(buf []T, target, disp int, op func() Op[T]) Request {
	o := operation(op)
	return w.accessRequest("RAccumulate", target, len(buf), func(b *engine.Batch) error {
		return w.accumulate("RAccumulate", buf, nil, target, disp, o, b)
	})
}

// RGetAccumulate is [Win.GetAccumulate] with a request, which is complete when result is
// filled. The target must be locked.
func (w *Win[T]) RGetAccumulate(buf, result []T, target, disp int, op func() Op[T]) Request {
	o := operation(op)
	return w.accessRequest("RGetAccumulate", target, len(result), func(b *engine.Batch) error {
		return w.getAccumulate("RGetAccumulate", buf, result, target, disp, o, b)
	})
}

func (w *Win[T]) getAccumulate(call string, buf, result []T, target, disp int, op Op[T], batch *engine.Batch) error {
	_, read := op.predefined.(noOp[T])
	if len(result) != len(buf) && !(read && buf == nil) {
		return w.refuse(ErrCount, call, "%d elements to combine and room for %d results", len(buf), len(result))
	}
	if len(result) == 0 {
		return nil
	}
	if read {
		buf = nil
	}
	return w.accumulate(call, buf, result, target, disp, op, batch)
}

// accumulate implements all accumulates. result is nil if it is not needed.
func (w *Win[T]) accumulate(call string, buf, result []T, target, disp int, op Op[T], batch *engine.Batch) error {
	if op.predefined == nil {
		return w.refuse(ErrOp, call, "operation %q is not predefined, so the target cannot execute it (MPI-4.1 section 12.3.4)", op.Name())
	}
	code := op.predefined.code()
	if code < rma.Replace && w.elements.Kernel(code) == nil {
		return w.refuse(ErrOp, call, "operation %q is not defined for the elements of the window", op.Name())
	}
	n := max(len(buf), len(result))
	region, offset, err := w.locate(call, n, target, disp)
	if err != nil {
		return err
	}
	if w.far != nil {
		w.far.Accumulate(target, region, offset, code, rawBytes(buf), rawBytes(result), &w.elements, batch)
		return nil
	}
	to := w.part(target)[disp : disp+n]
	if combineNative(&w.elements, to, buf, result, code) {
		return nil
	}
	return w.runAlone(call, target, func() {
		copy(result, to)
		if buf != nil {
			op.Apply(to, buf)
		}
	})
}
