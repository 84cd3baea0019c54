package mpi

// Put and Get (MPI-4.1 sections 12.3.2, 12.3.3), and their forms with a request (12.3.5).

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/longcopy"
)

// Put writes buf into the memory of target, from element disp on. It may return before
// the operation is complete: see [Win].
func (w *Win[T]) Put(buf []T, target, disp int) error {
	h := w.access("Put", target, len(buf))
	if to := w.part(target); to != nil && isShort(buf) && w.epochs.Open(target) && !w.alarm.Load() {
		if uint(disp) <= uint(len(to)) && len(buf) <= len(to)-disp {
			copy(to[disp:], buf)
			return h.finish(nil)
		}
	}
	return h.finish(w.putSlow("Put", buf, target, disp, nil))
}

// Get reads the memory of target, from element disp on, into buf. It may return before
// the operation is complete: see [Win].
func (w *Win[T]) Get(buf []T, target, disp int) error {
	h := w.access("Get", target, len(buf))
	if from := w.part(target); from != nil && isShort(buf) && w.epochs.Open(target) && !w.alarm.Load() {
		if uint(disp) <= uint(len(from)) && len(buf) <= len(from)-disp {
			copy(buf, from[disp:])
			return h.finish(nil)
		}
	}
	return h.finish(w.getSlow("Get", buf, target, disp, nil))
}

// isShort reports a buffer for the built-in copy. Longer ones take the slow path.
func isShort[T any](buf []T) bool { return len(buf)*sizeOf[T]() < longcopy.Shortest }

// putSlow is a put that fails, is long, has a request, or reaches memory that is not mapped.
func (w *Win[T]) putSlow(op string, buf []T, target, disp int, batch *engine.Batch) error {
	region, offset, err := w.locate(op, len(buf), target, disp)
	if err != nil {
		return err
	}
	if to := w.part(target); w.far == nil || to != nil && batch == nil {
		longcopy.Copy(rawBytes(to[disp:]), rawBytes(buf))
		return nil
	}
	w.far.Put(target, region, offset, rawBytes(buf), batch)
	return nil
}

// getSlow is the same for a get.
func (w *Win[T]) getSlow(op string, buf []T, target, disp int, batch *engine.Batch) error {
	region, offset, err := w.locate(op, len(buf), target, disp)
	if err != nil {
		return err
	}
	if from := w.part(target); w.far == nil || from != nil && batch == nil {
		longcopy.Copy(rawBytes(buf), rawBytes(from[disp:]))
		return nil
	}
	w.far.Get(target, region, offset, rawBytes(buf), batch)
	return nil
}

// RPut is [Win.Put] with a request, which is complete when buf may be changed again. Only
// a flush ensures that the data has arrived. The target must be locked.
func (w *Win[T]) RPut(buf []T, target, disp int) Request {
	return w.accessRequest("RPut", target, len(buf), func(b *engine.Batch) error {
		return w.putSlow("RPut", buf, target, disp, b)
	})
}

// RGet is [Win.Get] with a request, which is complete when buf is filled. The target must
// be locked.
func (w *Win[T]) RGet(buf []T, target, disp int) Request {
	return w.accessRequest("RGet", target, len(buf), func(b *engine.Batch) error {
		return w.getSlow("RGet", buf, target, disp, b)
	})
}

// access reports to hooks that a call accesses n elements of target.
func (w *Win[T]) access(op string, target, n int) *hookedCall {
	if !w.hooked {
		return nil
	}
	return w.c.begin(op, CallAccess, target, AnyTag, n*sizeOf[T]())
}

// accessRequest makes a call with a request for n elements. start gets a batch if the
// operation may not be complete when it returns.
func (w *Win[T]) accessRequest(op string, target, n int, start func(*engine.Batch) error) Request {
	h := w.c.beginStart(op, CallAccess, target, AnyTag, n*sizeOf[T]())
	return h.finishStart(w.batchRequest(op, target, start))
}

func (w *Win[T]) batchRequest(op string, target int, start func(*engine.Batch) error) Request {
	if err := w.check(op, target); err != nil {
		return w.c.refusedRequest(err)
	}
	if !w.epochs.Passive(target) {
		return w.c.refusedRequest(w.refuse(ErrRMASync, op, "rank %d is not locked: requests are for Lock and LockAll", target))
	}
	if w.far == nil {
		return w.c.refusedRequest(start(nil))
	}
	b := w.c.e.NewBatch()
	if err := start(b); err != nil {
		return w.c.refusedRequest(err)
	}
	return Request{c: w.c, op: w.c.e.Seal(b)}
}
