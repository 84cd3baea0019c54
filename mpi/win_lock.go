package mpi

// Passive target synchronization (MPI-4.1 sections 12.5.3, 12.5.4): locks and flushes. If
// all ranks have mapped all memory, a lock is a ticket lock of three counters beside the
// memory: a rank draws a ticket and waits until it is served. A reader lets the next
// reader in at once; a writer waits until all earlier ranks have left. The lock is fair,
// and the owner of the memory takes no part. Otherwise the target serves requests
// (internal/rma/lock.go).

import (
	"time"

	"github.com/muster-mpi/muster/internal/rma"
)

// LockMode is who else may hold a lock of [Win.Lock].
type LockMode uint8

const (
	LockShared    LockMode = iota // others that lock it shared
	LockExclusive                 // nobody
)

// Lock locks the memory of target. It returns when this rank holds the lock. The target
// need not call anything.
func (w *Win[T]) Lock(target int, mode LockMode) error {
	h := w.c.begin("Lock", CallSync, target, AnyTag, 0)
	return h.finish(w.lockTarget(target, mode))
}

func (w *Win[T]) lockTarget(target int, mode LockMode) error {
	const op = "Lock"
	if mode > LockExclusive {
		return w.refuse(ErrArg, op, "lock mode %d is unknown; use mpi.LockShared or mpi.LockExclusive", mode)
	}
	exclusive := mode == LockExclusive
	if err := w.beginLock(op, target, rma.Hold{Exclusive: exclusive}); err != nil {
		return err
	}
	if err := w.lock(op, target, exclusive); err != nil {
		_, _ = w.epochs.Unlock(target) // it was locked just now
		return err
	}
	return nil
}

func (w *byteWin) LockNoCheck(target int) error {
	h := w.c.begin("LockNoCheck", CallSync, target, AnyTag, 0)
	return h.finish(w.beginLock("Lock", target, rma.Hold{None: true}))
}

func (w *window) beginLock(op string, target int, how rma.Hold) error {
	if err := w.check(op, target); err != nil {
		return err
	}
	if err := w.epochs.Lock(target, how); err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	return nil
}

func (w *window) lock(op string, target int, exclusive bool) error {
	if w.far != nil {
		if err := w.far.Lock(op, target, exclusive); err != nil {
			return w.failure(err, op, target)
		}
		return nil
	}
	if err := w.cause(op, target); err != nil {
		return err
	}
	k := w.control[target]
	serving := &k.readers
	if exclusive {
		serving = &k.writers
	}
	mine := k.next.Add(1) - 1
	if err := w.waitWord(op, target, func() bool { return serving.Load() == mine }); err != nil {
		return err
	}
	if !exclusive {
		k.readers.Add(1) // the next rank may enter if it is a reader, too
	}
	return nil
}

// Unlock completes all operations of this rank at target, and releases the lock.
func (w *Win[T]) Unlock(target int) error {
	h := w.c.begin("Unlock", CallSync, target, AnyTag, 0)
	return h.finish(w.unlockTarget(target))
}

func (w *Win[T]) unlockTarget(target int) error {
	const op = "Unlock"
	if err := w.check(op, target); err != nil {
		return err
	}
	held, err := w.epochs.Unlock(target)
	if err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	if held.None {
		return w.complete(op, target, false)
	}
	if w.far != nil {
		if err := w.far.Unlock(op, target); err != nil {
			return w.failure(err, op, target)
		}
		return nil
	}
	w.unlock(target, held.Exclusive)
	return w.cause(op, target)
}

func (w *window) unlock(target int, exclusive bool) {
	k := w.control[target]
	if exclusive {
		k.readers.Add(1)
	}
	k.writers.Add(1)
}

// LockAll acquires shared locks of all ranks.
func (w *Win[T]) LockAll() error {
	h := w.c.begin("LockAll", CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.lockAll())
}

func (w *Win[T]) lockAll() error {
	const op = "LockAll"
	if err := w.beginLockAll(op, false); err != nil {
		return err
	}
	if w.far != nil {
		if r, err := w.far.LockAll(op); err != nil {
			return w.failure(err, op, r)
		}
		return nil
	}
	for r := range w.control {
		if err := w.lock(op, r, false); err != nil {
			return err
		}
	}
	return nil
}

func (w *byteWin) LockAllNoCheck() error {
	h := w.c.begin("LockAllNoCheck", CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.beginLockAll("LockAll", true))
}

func (w *window) beginLockAll(op string, noCheck bool) error {
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if err := w.epochs.LockAll(); err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	w.noneHeld = noCheck
	return nil
}

// UnlockAll completes all operations of this rank, and releases the locks.
func (w *Win[T]) UnlockAll() error {
	h := w.c.begin("UnlockAll", CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.unlockAll())
}

func (w *Win[T]) unlockAll() error {
	const op = "UnlockAll"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if err := w.epochs.UnlockAll(); err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	if w.noneHeld {
		return w.flushAll(op, false)
	}
	if w.far != nil {
		if r, err := w.far.UnlockAll(op); err != nil {
			return w.failure(err, op, r)
		}
		return nil
	}
	for r := range w.control {
		w.unlock(r, false)
	}
	return w.cause(op, ProcNull)
}

// Flush completes all operations of this rank at target, at both sides. The target must be
// locked.
func (w *Win[T]) Flush(target int) error { return w.flush("Flush", target, false) }

// FlushLocal completes them locally: buffers may be used again, and results are available.
func (w *Win[T]) FlushLocal(target int) error { return w.flush("FlushLocal", target, true) }

func (w *window) flush(op string, target int, local bool) error {
	h := w.c.begin(op, CallSync, target, AnyTag, 0)
	return h.finish(w.flushTarget(op, target, local))
}

func (w *window) flushTarget(op string, target int, local bool) error {
	if uint(target) >= uint(w.c.size) || w.freed || !w.epochs.Passive(target) {
		if err := w.check(op, target); err != nil {
			return err
		}
		return w.refuse(ErrRMASync, op, "rank %d is not locked: a flush is for Lock and LockAll", target)
	}
	return w.complete(op, target, local)
}

// complete completes the operations of this rank at target.
func (w *window) complete(op string, target int, local bool) error {
	if w.far != nil {
		if err := w.far.Flush(op, target, local); err != nil {
			return w.failure(err, op, target)
		}
		return nil
	}
	return w.cause(op, target) // the calls themselves have copied mapped memory
}

// FlushAll is [Win.Flush] for all ranks.
func (w *Win[T]) FlushAll() error { return w.flushEach("FlushAll", false) }

// FlushLocalAll is [Win.FlushLocal] for all ranks.
func (w *Win[T]) FlushLocalAll() error { return w.flushEach("FlushLocalAll", true) }

func (w *window) flushEach(op string, local bool) error {
	h := w.c.begin(op, CallSync, ProcNull, AnyTag, 0)
	err := w.check(op, w.c.rank)
	if err == nil {
		err = w.flushAll(op, local)
	}
	return h.finish(err)
}

func (w *window) flushAll(op string, local bool) error {
	if w.far == nil {
		return w.cause(op, ProcNull)
	}
	if r, err := w.far.FlushAll(op, local); err != nil {
		return w.failure(err, op, r)
	}
	return nil
}

// runAlone calls do while no other accumulate accesses the memory of a rank, for elements
// that the processor cannot update atomically.
func (w *window) runAlone(op string, target int, do func()) error {
	k := w.control[target]
	if err := w.waitWord(op, target, func() bool { return k.busy.CompareAndSwap(0, 1) }); err != nil {
		return err
	}
	do()
	k.busy.Store(0)
	return nil
}

// maxSleep is the longest sleep of a rank that has waited long for a word.
const maxSleep = time.Millisecond

// waitWord polls a word in memory, and serves this rank's messages meanwhile.
func (w *window) waitWord(op string, target int, over func() bool) error {
	sleep := 20 * time.Microsecond
	shown := w.c.e.ShowsWaits() // by PollOnce
	defer func() {
		if shown {
			w.c.e.ShowRunning()
		}
	}()
	for n := 0; !over(); n++ {
		sleepy, err := w.c.e.PollOnce(&w.c.pt, op, n)
		if err != nil {
			return w.failure(err, op, target)
		}
		if sleepy {
			if !shown {
				shown = true
				w.c.e.ShowWaiting(&w.c.pt, op)
			}
			time.Sleep(sleep)
			sleep = min(2*sleep, maxSleep)
		}
	}
	return nil
}
