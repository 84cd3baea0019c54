package mpi

// Active target synchronization (MPI-4.1 sections 12.5.1, 12.5.2): fences, and
// post-start-complete-wait, whose signals are empty messages of the window.

import (
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Fence completes the operations of all ranks and begins the next epoch, in which every
// rank may access every other. All ranks call it.
func (w *Win[T]) Fence() error { return w.fence("Fence", false) }

// FenceEnd is the last [Win.Fence]: no epoch follows it.
func (w *Win[T]) FenceEnd() error { return w.fence("FenceEnd", true) }

func (w *window) fence(op string, last bool) error {
	h := w.c.begin(op, CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.fenceEpoch(op, last))
}

func (w *window) fenceEpoch(op string, last bool) error {
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if err := w.epochs.Fence(last); err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	failed := w.flushAll(op, false)
	// A rank that has failed still enters the barrier, or the others would wait.
	if err := w.c.barrier(op); err != nil {
		return err
	}
	return failed
}

// Post begins an epoch in which the ranks of a group may access this rank's memory. It
// does not wait.
func (w *Win[T]) Post(origins *Group) error {
	h := w.c.begin("Post", CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.post(origins))
}

func (w *Win[T]) post(origins *Group) error {
	const op = "Post"
	ranks, err := w.members(op, origins)
	if err != nil {
		return err
	}
	if err := w.epochs.Post(ranks); err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	for _, r := range ranks {
		w.signal(r, engine.PostTag)
	}
	return nil
}

// Start begins an epoch in which this rank accesses the ranks of a group. It waits until
// they have called Post.
func (w *Win[T]) Start(targets *Group) error {
	h := w.c.begin("Start", CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.start(targets))
}

func (w *Win[T]) start(targets *Group) error {
	const op = "Start"
	ranks, err := w.members(op, targets)
	if err != nil {
		return err
	}
	if err := w.epochs.Start(ranks); err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	for _, r := range ranks {
		if _, err := w.c.e.Recv(&w.c.pt, op, w.c.world(r), int32(r), engine.PostTag, nil); err != nil {
			return w.failure(err, op, r)
		}
	}
	return nil
}

// Complete ends the epoch that Start began. It completes all operations of this rank.
func (w *Win[T]) Complete() error {
	h := w.c.begin("Complete", CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.completeEpoch())
}

func (w *Win[T]) completeEpoch() error {
	const op = "Complete"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	ranks, err := w.epochs.Complete()
	if err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	var failed error
	for _, r := range ranks {
		if w.far != nil {
			if err := w.far.Flush(op, r, false); err != nil && failed == nil {
				failed = w.failure(err, op, r)
			}
		}
		w.signal(r, engine.CompleteTag)
	}
	return failed
}

// Wait ends the epoch that Post began. It waits until all ranks of the group have called
// Complete.
func (w *Win[T]) Wait() error {
	h := w.c.begin("Win.Wait", CallSync, ProcNull, AnyTag, 0)
	return h.finish(w.wait())
}

func (w *Win[T]) wait() error {
	const op = "Win.Wait"
	if err := w.awaitOrigins(op); err != nil {
		return err
	}
	var failed error
	for _, o := range w.ends {
		if _, err := w.c.e.Wait(engine.NoContext, &w.c.pt, op, o); err != nil && failed == nil {
			failed = w.failure(err, op, ProcNull)
		}
	}
	w.endExposure()
	if err := w.waitSignals(op); failed == nil {
		failed = err
	}
	return failed
}

// Test reports whether [Win.Wait] would return at once, and ends the epoch if so.
func (w *Win[T]) Test() (bool, error) {
	h := w.c.begin("Win.Test", CallSync, ProcNull, AnyTag, 0)
	done, err := w.test()
	return done, h.finish(err)
}

func (w *Win[T]) test() (bool, error) {
	const op = "Win.Test"
	if err := w.awaitOrigins(op); err != nil {
		return false, err
	}
	w.c.e.Progress()
	for _, o := range w.ends {
		if !w.c.e.Done(o) {
			return false, nil
		}
	}
	return true, w.wait()
}

// awaitOrigins posts the receives for the end of an exposure epoch, once.
func (w *window) awaitOrigins(op string) error {
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	ranks, open := w.epochs.Exposure()
	if !open {
		return w.refuse(ErrRMASync, op, "there is no epoch: call Post first")
	}
	if w.awaiting {
		return nil
	}
	w.awaiting = true
	for _, r := range ranks {
		w.ends = append(w.ends, w.c.e.Irecv(&w.c.pt, w.c.world(r), int32(r), engine.CompleteTag, nil))
	}
	return nil
}

// endExposure ends an exposure epoch.
func (w *window) endExposure() {
	w.ends, w.awaiting = w.ends[:0], false
	w.epochs.EndExposure()
}

// signal sends an empty message. It does not wait: the peer may receive it only after what
// this rank does next.
func (w *window) signal(rank int, tag int32) {
	if o := w.c.e.Isend(&w.c.pt, w.c.world(rank), tag, nil, p2p.Standard); o.Active() {
		w.posts = append(w.posts, o)
	}
}

// waitSignals waits for signals that have not been sent yet.
func (w *window) waitSignals(op string) (failed error) {
	for _, o := range w.posts {
		if _, err := w.c.e.Wait(engine.NoContext, &w.c.pt, op, o); err != nil && failed == nil {
			failed = w.failure(err, op, ProcNull)
		}
	}
	w.posts = w.posts[:0]
	return failed
}

// members returns the ranks of a group in the window.
func (w *window) members(op string, g *Group) ([]int, error) {
	if err := w.check(op, w.c.rank); err != nil {
		return nil, err
	}
	if g == nil {
		return nil, w.refuse(ErrGroup, op, "the group is nil")
	}
	ranks := make([]int, g.Size())
	mine := w.c.peers()
	for i := range ranks {
		if ranks[i] = mine.indexOf(g.world(i)); ranks[i] < 0 {
			return nil, w.refuse(ErrGroup, op, "rank %d of the group (rank %d of the world) is not in %s", i, g.world(i), w.name)
		}
	}
	return ranks, nil
}

// Sync orders the memory accesses of this rank before and after it (MPI_Win_sync). It is
// for windows whose memory the rank reads and writes directly while others access it.
func (w *Win[T]) Sync() error {
	if err := w.check("Sync", w.c.rank); err != nil {
		return err
	}
	var fence atomic.Uint32
	fence.Add(1) // a full barrier, for the processor and the compiler
	return nil
}
