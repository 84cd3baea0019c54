package rma

// Epochs: when an origin may access which target (MPI-4.1 section 12.5). Each kind of
// synchronization has a bit, so the check before a put is one test of a byte.

import "fmt"

// access is a set of reasons why a target may be accessed, and how its lock is held.
type access uint8

const (
	byFence access = 1 << iota
	byStart
	byLock
	byLockAll
	exclusive // with byLock: see Hold
	noLock
)

// Hold is how a rank holds the lock of a target's memory.
type Hold struct {
	Exclusive bool
	None      bool // it has not acquired the lock: MPI_MODE_NOCHECK
}

func (h Hold) bits() (a access) {
	if h.Exclusive {
		a |= exclusive
	}
	if h.None {
		a |= noLock
	}
	return a
}

// Epochs is the synchronization state of a rank in a window. It is used by one goroutine at
// a time, except Open, which many may call between synchronizations.
type Epochs struct {
	all     access         // of every target: byFence, byLockAll
	dense   []access       // others, by target, in a window of few ranks
	sparse  map[int]access // in a window of many: only targets of a lock or of Start
	locked  int            // targets with byLock
	started []int          // targets of Start
	posted  []int          // origins of Post
	start   bool
	post    bool
}

// denseTargets is the number of ranks up to which each has a byte. A lookup of the others
// takes some nanoseconds more.
const denseTargets = 512

// NewEpochs returns the state for a window of n ranks. No target may be accessed yet.
func NewEpochs(n int) *Epochs {
	if n > denseTargets {
		return &Epochs{sparse: make(map[int]access)}
	}
	return &Epochs{dense: make([]access, n)}
}

// Open reports whether a target, which exists, may be accessed.
func (e *Epochs) Open(target int) bool { return e.all|e.at(target) != 0 }

// Passive reports whether a target may be accessed because of a lock: then it can be
// flushed.
func (e *Epochs) Passive(target int) bool {
	return (e.all|e.at(target))&(byLock|byLockAll) != 0
}

func (e *Epochs) at(target int) access {
	if uint(target) < uint(len(e.dense)) {
		return e.dense[target]
	}
	return e.sparse[target]
}

func (e *Epochs) set(target int, a access) {
	switch {
	case e.dense != nil:
		e.dense[target] = a
	case a == 0:
		delete(e.sparse, target)
	default:
		e.sparse[target] = a
	}
}

// checkUnlocked returns an error if a target is locked.
func (e *Epochs) checkUnlocked(format string) error {
	if e.all&byLockAll != 0 {
		return fmt.Errorf(format, 0)
	}
	if e.locked > 0 {
		return fmt.Errorf(format, e.firstLocked())
	}
	return nil
}

func (e *Epochs) firstLocked() int {
	first := -1
	for t, a := range e.dense {
		if a&byLock != 0 {
			return t
		}
	}
	for t, a := range e.sparse {
		if a&byLock != 0 && (first < 0 || t < first) {
			first = t
		}
	}
	return first
}

// Fence ends a fence epoch and, unless it is the last, begins the next.
func (e *Epochs) Fence(last bool) error {
	if e.start || e.post {
		return fmt.Errorf("a fence cannot be within Start and Complete, or Post and Wait")
	}
	if err := e.checkUnlocked("the memory of rank %d is locked: Unlock it before the fence"); err != nil {
		return err
	}
	e.all = byFence
	if last {
		e.all = 0
	}
	return nil
}

// leaveFence ends the access of a fence: an epoch of another kind follows it.
func (e *Epochs) leaveFence() { e.all &^= byFence }

// Start begins an access epoch.
func (e *Epochs) Start(targets []int) error {
	if e.start {
		return fmt.Errorf("Start was called before: Complete that epoch first")
	}
	if err := e.checkUnlocked("the memory of rank %d is locked: Unlock it before Start"); err != nil {
		return err
	}
	e.leaveFence()
	e.start, e.started = true, append(e.started[:0], targets...)
	for _, t := range targets {
		e.set(t, e.at(t)|byStart)
	}
	return nil
}

// Complete ends the access epoch and returns its targets, valid until the next Start.
func (e *Epochs) Complete() ([]int, error) {
	if !e.start {
		return nil, fmt.Errorf("Complete without Start")
	}
	e.start = false
	for _, t := range e.started {
		e.set(t, e.at(t)&^byStart)
	}
	return e.started, nil
}

// Post begins an exposure epoch.
func (e *Epochs) Post(origins []int) error {
	if e.post {
		return fmt.Errorf("Post was called before: Wait for the end of that epoch first")
	}
	e.post, e.posted = true, append(e.posted[:0], origins...)
	return nil
}

// Exposure returns the origins of the open exposure epoch.
func (e *Epochs) Exposure() (origins []int, open bool) { return e.posted, e.post }

// EndExposure ends the exposure epoch.
func (e *Epochs) EndExposure() { e.post = false }

// Lock records that a target is locked, and how.
func (e *Epochs) Lock(target int, how Hold) error {
	a := e.at(target)
	switch {
	case e.start:
		return fmt.Errorf("a lock cannot be within Start and Complete")
	case e.all&byLockAll != 0:
		return fmt.Errorf("LockAll has locked all ranks: UnlockAll first")
	case a&byLock != 0:
		return fmt.Errorf("the memory of rank %d is locked by this rank already: Unlock it first", target)
	}
	e.leaveFence()
	e.locked++
	e.set(target, a|byLock|how.bits())
	return nil
}

// Unlock records that a target is unlocked, and returns how it was locked.
func (e *Epochs) Unlock(target int) (Hold, error) {
	a := e.at(target)
	if a&byLock == 0 {
		return Hold{}, fmt.Errorf("this rank has not locked the memory of rank %d", target)
	}
	e.locked--
	e.set(target, a&^(byLock|exclusive|noLock))
	return Hold{Exclusive: a&exclusive != 0, None: a&noLock != 0}, nil
}

// LockAll records that all targets are locked, shared.
func (e *Epochs) LockAll() error {
	switch {
	case e.all&byLockAll != 0:
		return fmt.Errorf("LockAll was called before: UnlockAll first")
	case e.start:
		return fmt.Errorf("a lock cannot be within Start and Complete")
	}
	if err := e.checkUnlocked("the memory of rank %d is locked by this rank already: Unlock it first"); err != nil {
		return err
	}
	e.all = byLockAll // which ends a fence epoch
	return nil
}

// UnlockAll records that all targets are unlocked.
func (e *Epochs) UnlockAll() error {
	if e.all&byLockAll == 0 {
		return fmt.Errorf("UnlockAll without LockAll")
	}
	e.all &^= byLockAll
	return nil
}

// Idle returns an error if an epoch is open, nil if the window may be freed.
func (e *Epochs) Idle() error {
	switch {
	case e.start:
		return fmt.Errorf("Start has no Complete yet")
	case e.post:
		return fmt.Errorf("Post has no Wait yet")
	case e.all&byLockAll != 0:
		return fmt.Errorf("LockAll has no UnlockAll yet")
	}
	return e.checkUnlocked("the memory of rank %d is still locked by this rank")
}
