package engine

// The lock of a rank. A program with one goroutine takes and gives it for every
// message, with nobody else there, so that must cost next to nothing. An atomic
// instruction is not that: besides its own 8 ns it waits until all earlier stores
// have left the core, and the last of them is the message before, on its way to
// a line that the other core is looking at.
//
// So the lock is biased. The goroutine that has taken it often in a row becomes
// its owner and from then on takes it by a plain store and a plain load
// (lock_amd64.go):
//
//	owner        inside = 1; is bias still me?
//	contender    bias = nobody; membarrier; wait until inside = 0
//
// Either the owner's load sees that the bias is gone, or the contender sees the
// owner inside: that takes a full barrier between the two steps on both sides,
// and membarrier(2) executes one on every core that runs this process, at the
// contender's expense. The bias is lost for ever at the first contention; a
// lock that several goroutines use is an ordinary one. It is never given to a
// second goroutine, because an owner that was stopped between its two steps may
// still write inside, much later.
//
// The deputy (deputy.go) takes the lock seldom, and must leave the owner as fast as
// it was: it borrows the lock. That is the contender's way too, but the bias comes
// back to the same owner, and who is inside is not waited for.
//
// Those who find the lock taken spin, then let other goroutines run: it is held
// for less than a microsecond, except by a driver that polls, and that one looks
// at wanted.

import (
	"runtime"
	"sync/atomic"
	"time"
)

type spinLock struct {
	bias   uintptr // the owner, 0 for nobody
	inside uint64  // the owner has it, or is about to look whether it may
	held   bool    // the owner has it; written by the owner alone, while inside

	state  atomic.Uint32 // 1: somebody has it in the ordinary way
	wanted atomic.Int32  // callers that wait for it

	operating atomic.Bool // the holder runs a function of the user (operation.go)

	// Of the holder:
	last   uintptr // who took it last
	streak int     // how many times in a row
	shared bool    // it was contended once, or cannot be biased
	lent   uintptr // the bias, while the lock is borrowed
}

// biasAfter is how often in a row a goroutine must have taken the lock to own it.
// A job's start is done by other goroutines than its work in some programs.
const biasAfter = 256

func (s *spinLock) lockShared() {
	if !s.state.CompareAndSwap(0, 1) {
		s.wanted.Add(1)
		for i := 0; !s.state.CompareAndSwap(0, 1); i++ {
			if i&63 == 63 && s.operating.Load() && insideOperation() {
				s.wanted.Add(-1)
				panic(OperationCallsError{})
			}
			backOff(i)
		}
		s.wanted.Add(-1)
	}
	if s.shared {
		return
	}
	g := goroutine()
	if b := atomic.LoadUintptr(&s.bias); b != 0 {
		if b != g { // or else it was borrowed when its owner came
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

// revoke ends the bias. The caller has the lock in the ordinary way, so only the
// owner can be inside.
func (s *spinLock) revoke() {
	s.shared = true
	s.wanted.Add(1)
	atomic.StoreUintptr(&s.bias, 0)
	barrierEverywhere()
	for i := 0; atomic.LoadUint64(&s.inside) != 0; i++ {
		backOff(i)
	}
	s.wanted.Add(-1)
}

// borrowSpins is how often the deputy looks whether the owner has left. The owner is
// inside for less than a microsecond, or else it polls and needs no deputy.
const borrowSpins = 100

// borrow takes the lock if nobody has it, and leaves the bias to its owner: every
// borrow that succeeds is followed by giveBack.
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

func (s *spinLock) giveBack() {
	if s.lent != 0 {
		atomic.StoreUintptr(&s.bias, s.lent)
	}
	s.state.Store(0)
}

func backOff(i int) {
	switch {
	case i < 20:
	case i < 2000:
		if i&15 == 0 {
			yieldThread() // its holder may be a thread that waits for this core
		}
		runtime.Gosched()
	default:
		time.Sleep(20 * time.Microsecond) // its holder does not run: do not take its core
	}
}
