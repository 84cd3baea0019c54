package rma

// Epochs: when an origin may access which target (MPI-4.1 section 12.5). Each kind of
// synchronization has a bit, so the check before a put is one test of a byte.

import "fmt"

// access is a set of reasons why a target may be accessed.
type access uint8

const (
	byFence access = 1 << iota
	byStart
	byLock
	byLockAll
)

// Epochs is the synchronization state of a rank in a window. It is used by one goroutine at
// a time, except Open, which many may call between synchronizations.
type Epochs struct {
	access  []access // by target
	started []int    // targets of Start
	posted  []int    // origins of Post
	start   bool
	post    bool
	lockAll bool
	fenced  bool // access may have byFence
}

// NewEpochs returns the state for a window of n ranks. No target may be accessed yet.
func NewEpochs(n int) *Epochs { return &Epochs{access: make([]access, n)} }

// Open reports whether a target, which exists, may be accessed.
func (e *Epochs) Open(target int) bool { return e.access[target] != 0 }

// Passive reports whether a target may be accessed because of a lock: then it can be
// flushed.
func (e *Epochs) Passive(target int) bool { return e.access[target]&(byLock|byLockAll) != 0 }

// Fence ends a fence epoch and, unless it is the last, begins the next.
func (e *Epochs) Fence(last bool) error {
	if e.start || e.post {
		return fmt.Errorf("a fence cannot be within Start and Complete, or Post and Wait")
	}
	for t := range e.access {
		if e.access[t]&(byLock|byLockAll) != 0 {
			return fmt.Errorf("the memory of rank %d is locked: Unlock it before the fence", t)
		}
	}
	for t := range e.access {
		e.access[t] = byFence
		if last {
			e.access[t] = 0
		}
	}
	e.fenced = !last
	return nil
}

// leaveFence ends the access of a fence: an epoch of another kind follows it.
func (e *Epochs) leaveFence() {
	if !e.fenced {
		return
	}
	e.fenced = false
	for t := range e.access {
		e.access[t] &^= byFence
	}
}

// Start begins an access epoch.
func (e *Epochs) Start(targets []int) error {
	if e.start {
		return fmt.Errorf("Start was called before: Complete that epoch first")
	}
	for t := range e.access {
		if e.access[t]&(byLock|byLockAll) != 0 {
			return fmt.Errorf("the memory of rank %d is locked: Unlock it before Start", t)
		}
	}
	e.leaveFence()
	e.start, e.started = true, append(e.started[:0], targets...)
	for _, t := range targets {
		e.access[t] |= byStart
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
		e.access[t] &^= byStart
	}
	return e.started, nil
}

// Started returns the targets of the open access epoch.
func (e *Epochs) Started() (targets []int, open bool) { return e.started, e.start }

// Post begins an exposure epoch.
func (e *Epochs) Post(origins []int) error {
	if e.post {
		return fmt.Errorf("Post was called before: Wait for the end of that epoch first")
	}
	e.post, e.posted = true, append(e.posted[:0], origins...)
	return nil
}

// Exposed returns the origins of the open exposure epoch.
func (e *Epochs) Exposed() (origins []int, open bool) { return e.posted, e.post }

// Waited ends the exposure epoch.
func (e *Epochs) Waited() { e.post = false }

// Lock records that a target is locked.
func (e *Epochs) Lock(target int) error {
	switch {
	case e.start:
		return fmt.Errorf("a lock cannot be within Start and Complete")
	case e.lockAll:
		return fmt.Errorf("LockAll has locked all ranks: UnlockAll first")
	case e.access[target]&byLock != 0:
		return fmt.Errorf("the memory of rank %d is locked by this rank already: Unlock it first", target)
	}
	e.leaveFence()
	e.access[target] |= byLock
	return nil
}

// Unlock records that a target is unlocked.
func (e *Epochs) Unlock(target int) error {
	if e.access[target]&byLock == 0 {
		return fmt.Errorf("this rank has not locked the memory of rank %d", target)
	}
	e.access[target] &^= byLock
	return nil
}

// LockAll records that all targets are locked, shared.
func (e *Epochs) LockAll() error {
	if e.lockAll {
		return fmt.Errorf("LockAll was called before: UnlockAll first")
	}
	if e.start {
		return fmt.Errorf("a lock cannot be within Start and Complete")
	}
	for t, a := range e.access {
		if a&byLock != 0 {
			return fmt.Errorf("the memory of rank %d is locked by this rank already: Unlock it first", t)
		}
	}
	e.lockAll = true
	e.leaveFence()
	for t := range e.access {
		e.access[t] |= byLockAll
	}
	return nil
}

// UnlockAll records that all targets are unlocked.
func (e *Epochs) UnlockAll() error {
	if !e.lockAll {
		return fmt.Errorf("UnlockAll without LockAll")
	}
	e.lockAll = false
	for t := range e.access {
		e.access[t] &^= byLockAll
	}
	return nil
}

// Idle returns an error if an epoch is open, nil if the window may be freed.
func (e *Epochs) Idle() error {
	switch {
	case e.start:
		return fmt.Errorf("Start has no Complete yet")
	case e.post:
		return fmt.Errorf("Post has no Wait yet")
	case e.lockAll:
		return fmt.Errorf("LockAll has no UnlockAll yet")
	}
	for t, a := range e.access {
		if a&byLock != 0 {
			return fmt.Errorf("the memory of rank %d is still locked by this rank", t)
		}
	}
	return nil
}
