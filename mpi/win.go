package mpi

// Windows: memory that other ranks access without the owner's participation (MPI-4.1
// chapter 12). The path of a put:
//
//	Put                       win_move.go: rank, displacement and epoch are checked
//	 ├ copy                   mapped memory: of one process, or shared by all ranks of a host
//	 └ engine.Window.Put      the device writes into the target's memory; without such a
//	                          device, a request that the target's progress engine serves
//
// If all ranks have mapped all memory, accumulates are atomic instructions
// (win_atomic_unsafe.go). Otherwise all accumulates are requests, so that an element is
// never updated in two ways. The same holds for locks (win_lock.go): they are words beside
// the memory, or requests.
//
// win_create.go creates windows; win_sync.go has fences and post-start-complete-wait.

import (
	"errors"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/rma"
)

// Win is a window: memory of all ranks of a communicator, n elements of T each, that the
// other ranks can access. Displacements in it count elements.
//
// A rank may be accessed only in an epoch: between two [Win.Fence] calls, between
// [Win.Start] and [Win.Complete], or while it is locked. An operation is complete at the
// end of the epoch, or after a flush. Until then, the buffer of a Put or Accumulate must
// not be changed, and that of a Get not be read. Operations on the own rank are complete
// when the call returns.
//
// Several goroutines may call Put and Get at the same time; only one at a time may call
// the synchronization methods.
type Win[T Elem] struct {
	window
	mem []T
	// direct is the mapped memory, or nil, of the ranks from first on: those of this host,
	// and ranks of others between them.
	direct [][]T
	first  int
}

// part returns the mapped memory of a rank, nil if there is none.
func (w *Win[T]) part(rank int) []T {
	if i := rank - w.first; uint(i) < uint(len(w.direct)) {
		return w.direct[i]
	}
	return nil
}

// lengths holds the number of elements of each rank of a window.
type lengths struct {
	each int
	list []int // nil: each
}

func (l *lengths) of(rank int) int {
	if l.list != nil {
		return l.list[rank]
	}
	return l.each
}

// window is the part of Win that does not depend on the element type.
type window struct {
	c        *Comm // of the window, for its messages and barriers
	name     string
	flavor   flavor
	epochs   *rma.Epochs
	elements rma.Elements
	lengths  lengths // elements of each rank; 0 with dynamic memory
	// control is the control words of each rank if all ranks have mapped all memory;
	// otherwise far carries the operations, by device or request.
	control  []*control
	noneHeld bool // LockAllNoCheck has acquired no locks
	far      *engine.Window
	alarm    *atomic.Bool // of the engine: set on a failure, for calls that do not wait
	release  []func() error
	freed    bool
	hooked   bool // hooks see the calls
	// others knows the elements of accumulates that say what they are (win_bytes.go); nil
	// if all have the type of the window.
	others     func(code uint8) *rma.Elements
	byAddress  bool // displacements of a dynamic window are addresses
	contiguous bool // the ranks' parts of a shared segment follow each other without gaps

	posts, ends []engine.Op // of post-start-complete-wait: sent, awaited
	awaiting    bool
}

// flavor is how a window was created.
type flavor uint8

const (
	overMemory flavor = iota
	allocated
	shared
	dynamic
)

var flavorNames = [...]string{"CreateWin", "AllocateWin", "AllocateSharedWin", "CreateDynamicWin"}

func (f flavor) String() string { return flavorNames[f] }

// Memory returns the calling rank's own part of the window, nil if the window is dynamic.
// While other ranks may access it, the program may read and write it only as MPI permits:
// after a synchronization, or with the operations of the window.
func (w *Win[T]) Memory() []T { return w.mem }

// Len returns the number of elements of a rank's part.
func (w *Win[T]) Len(rank int) int {
	if uint(rank) >= uint(w.c.size) {
		return 0
	}
	return w.lengths.of(rank)
}

// Group returns the group of the ranks of the window.
func (w *Win[T]) Group() *Group { return w.c.Group() }

// Revoke ends all calls on the window, on all its ranks, as [Comm.Revoke] does for a
// communicator. To revoke the communicator from which the window was made does not.
func (w *Win[T]) Revoke() error { return w.c.Revoke() }

// Direct reports whether the calling rank has mapped the memory of a rank, so that puts
// and gets are plain copies.
func (w *Win[T]) Direct(rank int) bool {
	return w.part(rank) != nil
}

// Query returns a rank's part of a window created by [AllocateSharedWin], which can be
// read and written directly.
func (w *Win[T]) Query(rank int) ([]T, error) {
	const op = "Query"
	if err := w.check(op, rank); err != nil {
		return nil, err
	}
	if w.flavor != shared {
		return nil, w.refuse(ErrRMAFlavor, op, "the window was made by %v; only that of AllocateSharedWin is shared", w.flavor)
	}
	return w.part(rank), nil
}

// Attach adds memory to a dynamic window. It returns the displacement of its first
// element; the program must send it to the ranks that access the memory.
func (w *Win[T]) Attach(mem []T) (int, error) {
	const op = "Attach"
	if err := w.check(op, w.c.rank); err != nil {
		return 0, err
	}
	if w.flavor != dynamic {
		return 0, w.refuse(ErrRMAFlavor, op, "the window was made by %v; use CreateDynamicWin", w.flavor)
	}
	if len(mem) == 0 || len(mem) > regionMask {
		return 0, w.refuse(ErrRMAAttach, op, "%d elements cannot be attached", len(mem))
	}
	return int(w.far.Attach(rawBytes(mem))) << regionBits, nil
}

// Detach removes the memory whose displacement Attach returned.
func (w *Win[T]) Detach(disp int) error {
	const op = "Detach"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	if w.flavor != dynamic || disp&regionMask != 0 || !w.far.Detach(uint64(disp)>>regionBits) {
		return w.refuse(ErrRMAAttach, op, "no memory is attached at displacement %d: use the one that Attach returned, once", disp)
	}
	return nil
}

// A displacement in a dynamic window is the number of a region and an element of it.
const (
	regionBits = 40
	regionMask = 1<<regionBits - 1
)

// Free releases the window. All ranks call it, after their last epoch. It releases the
// memory that the window has allocated. After a failure the ranks that are alive call it,
// also inside an epoch.
func (w *Win[T]) Free() error {
	h := w.c.beginCreate("Win.Free", CallFree)
	return h.finish(w.free())
}

func (w *Win[T]) free() error {
	const op = "Win.Free"
	if err := w.check(op, w.c.rank); err != nil {
		return err
	}
	lost := w.alarm.Load() && w.c.e.Tolerates()
	if err := w.epochs.Idle(); err != nil && !lost {
		return w.refuse(ErrRMASync, op, "%w", err)
	}
	var errs []error
	if w.far != nil {
		if r, err := w.far.FlushAll(op, false); err != nil && !lost {
			errs = append(errs, w.failure(err, op, r))
		}
	}
	if err := w.lastBarrier(op); err != nil {
		return err
	}
	w.freed = true
	w.mem, w.direct = nil, nil
	for _, release := range w.release {
		errs = append(errs, release())
	}
	errs = append(errs, w.c.free())
	return errors.Join(errs...)
}

// lastBarrier waits until no rank accesses the window any more. In a job that survives
// failures it is an agreement, which works without failed ranks too.
func (w *window) lastBarrier(op string) error {
	if !w.c.e.Tolerates() {
		return w.c.barrier(op)
	}
	_, err := w.c.agreeAlive(engine.NoContext, op, 0, 0)
	return err
}

// check returns an error if the window has been freed or the rank is invalid.
func (w *window) check(op string, rank int) error {
	switch {
	case w.freed:
		return w.refuse(ErrWin, op, "the window has been freed")
	case uint(rank) >= uint(w.c.size):
		return w.refuse(ErrRank, op, "there is no rank %d: %s has ranks 0 to %d", rank, w.name, w.c.size-1)
	}
	return nil
}

// locate checks an access to n elements at disp of a rank, and returns the region and the
// offset in bytes. It is the slow path: the fast one makes the same checks.
func (w *window) locate(op string, n, rank, disp int) (region, offset uint64, err error) {
	if err := w.check(op, rank); err != nil {
		return 0, 0, err
	}
	if err := w.cause(op, rank); err != nil {
		return 0, 0, err
	}
	if !w.epochs.Open(rank) {
		return 0, 0, w.refuse(ErrRMASync, op, "rank %d may not be accessed now: call Fence, Start or Lock first", rank)
	}
	if w.byAddress {
		return rma.ByAddress, uint64(disp), nil
	}
	if w.flavor == dynamic {
		if disp < 1<<regionBits {
			return 0, 0, w.refuse(ErrDisp, op, "Attach has not returned displacement %d", disp)
		}
		return uint64(disp) >> regionBits, uint64(disp&regionMask) * uint64(w.elements.Size), nil
	}
	if have := w.lengths.of(rank); disp < 0 || disp > have || n > have-disp {
		return 0, 0, w.refuse(ErrRMARange, op, "elements %d to %d are not in the window: rank %d has %d", disp, disp+n-1, rank, have)
	}
	return 0, uint64(disp) * uint64(w.elements.Size), nil
}

// cause returns the error for a call with a rank if the job has lost one, else nil. Puts
// and gets of mapped memory, uncontended locks and flushes after copies wait for no other
// rank, and so would never detect that the owner of the memory has died.
func (w *window) cause(op string, rank int) error {
	if !w.alarm.Load() {
		return nil
	}
	return w.causeOf(op, rank)
}

func (w *window) causeOf(op string, rank int) error {
	if err := w.c.e.Cause(w.c.ctx); err != nil {
		return w.failure(err, op, rank)
	}
	return nil
}

func (w *window) refuse(class Class, op, format string, args ...any) error {
	return w.c.refuse(class, op, format, args...)
}

// failure adds the call to an error of the engine.
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
