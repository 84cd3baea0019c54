package mpi

// Windows: memory that other ranks reach without the owner's help (MPI-4.1 chapter
// 12). The road of a put:
//
//	Put                       win_move.go: rank, place and epoch are checked
//	 ├ copy                   memory in reach: of one process, or mapped by all of a host
//	 └ engine.Window.Put      the device writes into the target's memory; without such a
//	                          device, a request that the target's progress serves
//
// Accumulates on memory that all ranks have in reach are instructions of the
// processor (win_atomic_unsafe.go); else they are requests, all of them, so that one
// place is never changed in two ways. It is the same with locks (win_lock.go): words
// beside the memory, or requests.
//
// win_create.go makes windows, win_sync.go has fences and post-start-complete-wait.

import (
	"errors"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/rma"
)

// Win is a window on memory of all ranks of a communicator, n elements of T each.
// Places in it are counted in elements.
//
// A rank may be reached only in an epoch: between two [Win.Fence], between
// [Win.Start] and [Win.Complete], or while it is locked. What a call has started
// ends with the epoch, or with a flush: until then the buffer given to a Put or
// Accumulate must not be changed, and that of a Get not be read.
//
// Puts and gets may be made by many goroutines at once; synchronisation by one at a
// time.
type Win[T Elem] struct {
	window
	mem    []T
	direct [][]T // by rank: memory in reach, nil if it is not
}

// window is what does not depend on the type of elements.
type window struct {
	c        *Comm // its own, for its messages and barriers
	name     string
	flavour  flavour
	epochs   *rma.Epochs
	elements rma.Elements
	lengths  []int // by rank: elements; nil with dynamic memory
	// control is the words of each rank if all have all memory in reach; else far
	// carries what goes by device or request.
	control []*control
	held    []bool // by rank: this rank's lock there is exclusive
	far     *engine.Window
	alarm   *atomic.Bool // the engine's: calls that wait for nobody look at it
	release []func() error
	freed   bool

	posts, ends []engine.Op // of post-start-complete-wait: sent, awaited
	awaiting    bool
}

// flavour is how a window was made.
type flavour uint8

const (
	overMemory flavour = iota
	allocated
	shared
	dynamic
)

var flavourNames = [...]string{"CreateWin", "AllocateWin", "AllocateSharedWin", "CreateDynamicWin"}

func (f flavour) String() string { return flavourNames[f] }

// Memory is this rank's own part, nil if the window is dynamic. While others may
// reach it, the program reads and writes it as MPI has it: after a synchronisation,
// or with the operations of the window itself.
func (w *Win[T]) Memory() []T { return w.mem }

// Len is the number of elements of a rank's part.
func (w *Win[T]) Len(rank int) int {
	if w.lengths == nil || uint(rank) >= uint(len(w.lengths)) {
		return 0
	}
	return w.lengths[rank]
}

// Comm is the ranks of the window. It is the window's own communicator: its
// point-to-point messages are the window's.
func (w *Win[T]) Comm() *Comm { return w.c }

// Direct reports whether a rank's memory is in reach of this rank's processor, so that
// puts and gets are copies.
func (w *Win[T]) Direct(rank int) bool {
	return uint(rank) < uint(len(w.direct)) && w.direct[rank] != nil
}

// Query gives a rank's part of a window that [AllocateSharedWin] has made, to be used
// like own memory.
func (w *Win[T]) Query(rank int) ([]T, error) {
	const op = "Query"
	if err := w.check(op, rank); err != nil {
		return nil, err
	}
	if w.flavour != shared {
		return nil, w.refuse(ErrRMAFlavor, op, "the window was made by %v; only that of AllocateSharedWin is shared", w.flavour)
	}
	return w.direct[rank], nil
}

// Attach lets others reach memory in a dynamic window. The result is the place of its
// first element, for others to count from: it must be told to them.
func (w *Win[T]) Attach(mem []T) (int, error) {
	const op = "Attach"
	if err := w.check(op, w.c.rank); err != nil {
		return 0, err
	}
	if w.flavour != dynamic {
		return 0, w.refuse(ErrRMAFlavor, op, "the window was made by %v; use CreateDynamicWin", w.flavour)
	}
	if len(mem) == 0 || len(mem) > regionMask {
		return 0, w.refuse(ErrRMAAttach, op, "%d elements cannot be attached", len(mem))
	}
	return int(w.far.Attach(rawBytes(mem))) << regionBits, nil
}

// Detach ends what Attach began, by the place that it gave.
func (w *Win[T]) Detach(disp int) error {
	const op = "Detach"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if w.flavour != dynamic || disp&regionMask != 0 || !w.far.Detach(uint64(disp)>>regionBits) {
		return w.refuse(ErrRMAAttach, op, "no memory is attached at displacement %d: use the one that Attach returned, once", disp)
	}
	return nil
}

// A place in a dynamic window is the number of a region and an element of it.
const (
	regionBits = 40
	regionMask = 1<<regionBits - 1
)

// Free ends the window. All ranks call it, after their last epoch. Memory that the
// window has allocated is gone then.
func (w *Win[T]) Free() error {
	const op = "Win.Free"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if err := w.epochs.Idle(); err != nil {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	var errs []error
	if w.far != nil {
		if r, err := w.far.FlushAll(op, false); err != nil {
			errs = append(errs, w.failure(err, op, r))
		}
	}
	if err := w.c.barrier(op); err != nil {
		return err
	}
	w.freed = true
	w.mem, w.direct = nil, nil
	for _, release := range w.release {
		errs = append(errs, release())
	}
	errs = append(errs, w.c.Free())
	return errors.Join(errs...)
}

// check says what is wrong with a window or rank.
func (w *window) check(op string, rank int) error {
	switch {
	case w.freed:
		return w.refuse(ErrWin, op, "the window has been freed")
	case uint(rank) >= uint(w.c.size):
		return w.refuse(ErrRank, op, "there is no rank %d: %s has ranks 0 to %d", rank, w.name, w.c.size-1)
	}
	return nil
}

// place checks a call that reaches n elements at disp of a rank, and gives the region
// and the offset in bytes. It is the slow road: the fast one checks the same.
func (w *window) locate(op string, n, rank, disp int) (region, offset uint64, err error) {
	if err := w.check(op, rank); err != nil {
		return 0, 0, err
	}
	if err := w.cause(op, rank); err != nil {
		return 0, 0, err
	}
	if !w.epochs.Open(rank) {
		return 0, 0, w.refuse(ErrRMASync, op, "rank %d may not be reached now: call Fence, Start or Lock first", rank)
	}
	if w.flavour == dynamic {
		if disp < 1<<regionBits {
			return 0, 0, w.refuse(ErrDisp, op, "place %d is none that Attach has given", disp)
		}
		return uint64(disp) >> regionBits, uint64(disp&regionMask) * uint64(w.elements.Size), nil
	}
	if have := w.lengths[rank]; disp < 0 || disp > have || n > have-disp {
		return 0, 0, w.refuse(ErrRMARange, op, "elements %d to %d are not in the window: rank %d has %d", disp, disp+n-1, rank, have)
	}
	return 0, uint64(disp) * uint64(w.elements.Size), nil
}

// cause is the error for a call with a rank if the job has lost one, else nil. Puts and
// gets of memory in reach, locks that nobody holds and flushes of what was a copy
// wait for nobody, and so would never learn that the rank whose memory it is has died.
func (w *window) cause(op string, rank int) error {
	if !w.alarm.Load() {
		return nil
	}
	return w.causeOf(op, rank)
}

func (w *window) causeOf(op string, rank int) error {
	if err := w.c.e.Cause(); err != nil {
		return w.failure(err, op, rank)
	}
	return nil
}

func (w *window) refuse(class Class, op, format string, args ...any) error {
	return w.c.refuse(class, op, format, args...)
}

// failure adds to an error of the engine what was being done.
func (w *window) failure(err error, op string, rank int) error {
	e := w.c.failure(err, op, rank, noTag, 0).(*Error)
	var refused *engine.Refused
	if errors.As(err, &refused) {
		switch refused.Outcome {
		case rma.OutOfBounds:
			e.Class, e.Hint = ErrRMARange, "the memory was detached, or the place is wrong"
		case rma.BadOp:
			e.Class = ErrOp
		case rma.NotLocked:
			e.Class = ErrRMASync
		}
	}
	return e
}
