package engine

// The lock of a rank. A program with one goroutine locks and unlocks for every
// message without contention, so that must cost almost nothing. An atomic
// instruction is too slow: besides its own 8 ns it waits until all earlier stores
// have left the core, and the last of them is the previous message, on its way to
// a cache line that the other core is reading.
//
// So the lock is biased. The goroutine that has taken it often in a row becomes its
// owner and from then on takes it by a plain store and a plain load
// (lock_amd64.go):
//
//	owner        inside = 1; is bias still mine?
//	contender    bias = none; membarrier; wait until inside = 0
//
// Either the owner's load sees that the bias is gone, or the contender sees the
// owner inside. That takes a full barrier between the two steps on both sides;
// membarrier(2) executes one on every core that runs this process, at the
// contender's expense. The first contention ends the bias for good; a lock that
// several goroutines use is an ordinary one. The bias never goes to a second
// goroutine, because an owner that was preempted between its two steps may still
// write inside, much later.
//
// The progress thread (progress_thread.go) takes the lock rarely and must not slow
// the owner down, so it borrows the lock. It revokes the bias like a contender, but
// the bias returns to the same owner, and the borrower does not wait for an owner
// that is inside.
//
// A goroutine that finds the lock taken spins, then yields to other goroutines. The
// lock is held for less than a microsecond, except by a driver that polls, and the
// driver checks wanted.

import (
	"runtime"
	"sync/atomic"
	"time"
)

type spinLock struct {
	bias   uintptr // the owner, 0 for none
	inside uint64  // the owner has the lock, or is about to check the bias
	held   bool    // the owner has the lock; written only by the owner, while inside

	state  atomic.Uint32 // 1: held as an ordinary lock
	wanted atomic.Int32  // number of callers that wait for the lock
	served atomic.Uint32 // number of waits that have ended with the lock

	operating atomic.Bool // the holder runs a user function (operation.go)

	// Accessed by the holder only:
	last   uintptr // the last goroutine that took it
	streak int     // how many times in a row it did
	shared bool    // it was contended, or cannot be biased
	lent   uintptr // the bias while the lock is borrowed
}

// biasAfter is how many times in a row a goroutine must take the lock to become its
// owner. In some programs other goroutines start the job than do its work.
const biasAfter = 256

func (s *spinLock) lockShared() {
	if !s.state.CompareAndSwap(0, 1) {
		s.wanted.Add(1)
		for i := 0; !s.state.CompareAndSwap(0, 1); i++ {
			if i&63 == 63 && s.operating.Load() && InOperation() {
				s.wanted.Add(-1)
				panic(OperationCallsError{})
			}
			backOff(i)
		}
		s.endWait()
	}
	if s.shared {
		return
	}
	g := goroutine()
	if b := atomic.LoadUintptr(&s.bias); b != 0 {
		if b != g { // otherwise the lock was borrowed when its owner arrived
			s.revoke()
		}
		return
	}
	if s.last != g {
		s.last, s.streak = g, 0
	}
	if s.streak++; s.streak == biasAfter {
		// From the next time on.
		atomic.StoreUintptr(&s.bias, g)
	}
}

// revoke ends the bias. The caller holds the ordinary lock, so only the owner can be
// inside.
func (s *spinLock) revoke() {
	s.shared = true
	s.wanted.Add(1)
	atomic.StoreUintptr(&s.bias, 0)
	barrierEverywhere()
	for i := 0; atomic.LoadUint64(&s.inside) != 0; i++ {
		backOff(i)
	}
	s.endWait()
}

// endWait ends a caller's wait for the lock, which it now holds.
func (s *spinLock) endWait() {
	s.served.Add(1)
	s.wanted.Add(-1)
}

// handOver releases the lock and returns once a caller that waited for it has had it. A
// holder that only released it would take it again before the other runs: the waiting
// caller may have lost its core, or sleep in backOff.
func (s *spinLock) handOver() {
	before := s.served.Load()
	s.unlock()
	for i := yieldAfter; s.wanted.Load() != 0 && s.served.Load() == before; i++ {
		backOff(i)
	}
}

// borrowSpins is how often a borrower checks whether the owner has left. The owner is
// inside for less than a microsecond, or else it polls and needs no progress thread.
const borrowSpins = 100

// borrow takes the lock if it is free and leaves the bias with its owner. Every
// successful borrow must be followed by giveBack.
func (s *spinLock) borrow() bool {
	if atomic.LoadUint64(&s.inside) != 0 || !s.state.CompareAndSwap(0, 1) {
		return false
	}
	if s.lent = atomic.LoadUintptr(&s.bias); s.lent == 0 {
		return true
	}
	atomic.StoreUintptr(&s.bias, 0)
	barrierEverywhere()
	for i := 0; atomic.LoadUint64(&s.inside) != 0; i++ {
		if i == borrowSpins {
			s.giveBack()
			return false
		}
	}
	return true
}

// borrowWanted borrows the lock as soon as it is free.
func (s *spinLock) borrowWanted() {
	s.wanted.Add(1)
	for i := 0; !s.borrow(); i++ {
		backOff(i)
	}
	s.endWait()
}

// giveBack releases a borrowed lock and restores the bias.
func (s *spinLock) giveBack() {
	if s.lent != 0 {
		atomic.StoreUintptr(&s.bias, s.lent)
	}
	s.state.Store(0)
}

// yieldAfter is how often backOff spins before it yields to other goroutines.
const yieldAfter = 20

func backOff(i int) {
	switch {
	case i < yieldAfter:
	case i < 2000:
		if i&15 == 0 {
			yieldThread() // the holder may be a thread that waits for this core
		}
		runtime.Gosched()
	default:
		time.Sleep(20 * time.Microsecond) // the holder is not running: leave it the core
	}
}
