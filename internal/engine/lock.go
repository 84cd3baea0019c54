package engine

// The lock of a rank. A program with one goroutine takes and gives it twice for
// every message, with nobody else there, so that must cost as little as it can:
// one compare-and-swap to take it and, where the architecture allows it, a plain
// store to give it (sync.Mutex needs a locked instruction for that too, some
// 8 ns). Those who find it taken spin, then let other goroutines run: it is held
// for less than a microsecond, except by a driver that polls, and that one looks
// at wanted.

import (
	"runtime"
	"sync/atomic"
	"time"
)

type spinLock struct {
	state  atomic.Uint32
	wanted atomic.Int32 // callers that wait for it
}

func (s *spinLock) lock() {
	if s.state.CompareAndSwap(0, 1) {
		return
	}
	s.lockSlow()
}

func (s *spinLock) lockSlow() {
	s.wanted.Add(1)
	for i := 0; !s.state.CompareAndSwap(0, 1); i++ {
		switch {
		case i < 20:
		case i < 2000:
			runtime.Gosched()
		default:
			time.Sleep(20 * time.Microsecond) // its owner does not run: do not take its core
		}
	}
	s.wanted.Add(-1)
}

func (s *spinLock) unlock() { release(&s.state) }
