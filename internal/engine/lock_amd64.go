//go:build linux && !race

package engine

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// On amd64 stores become visible in program order and loads execute in program order,
// so plain stores suffice for entering and leaving; the compiler keeps their order
// too. The loads of bias are atomic so that the compiler keeps the second one. Nothing
// here orders the store to inside before that load; lock.go explains what does.

// lock takes the lock.
func (s *spinLock) lock() {
	if g := goroutine(); atomic.LoadUintptr(&s.bias) == g {
		s.inside = 1
		if atomic.LoadUintptr(&s.bias) == g {
			s.held = true
			return
		}
		s.inside = 0
	}
	s.lockShared()
}

// unlock releases the lock.
func (s *spinLock) unlock() {
	if s.held {
		s.held = false
		s.inside = 0
		return
	}
	s.state.Store(0)
}

// biased reports whether the caller, which holds the lock, holds it as its owner.
func (s *spinLock) biased() bool { return s.held }

// goroutine returns the address of the runtime's descriptor of the calling goroutine.
// It distinguishes running goroutines and serves no other purpose.
func goroutine() uintptr

// The commands of membarrier(2).
const (
	membarrierPrivateExpedited         = 1 << 3
	membarrierRegisterPrivateExpedited = 1 << 4
)

// biasLimit is how long canBias waits. Registration takes a grace period of the kernel (RCU),
// milliseconds, but was seen to last 45 s on a machine that has far more to do than cores.
const biasLimit = time.Second

// canBias reports whether the kernel supports a barrier on all cores of this process,
// and registers for it.
func canBias() bool {
	return within(biasLimit, func() bool {
		_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierRegisterPrivateExpedited, 0, 0)
		return errno == 0
	})
}

// within returns the result of a function, false if it takes longer than limit.
func within(limit time.Duration, f func() bool) bool {
	result := make(chan bool, 1)
	go func() { result <- f() }()
	select {
	case ok := <-result:
		return ok
	case <-time.After(limit):
		return false
	}
}

// barrierEverywhere executes a full barrier on every core that runs this
// process.
func barrierEverywhere() {
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, membarrierPrivateExpedited, 0, 0)
	if errno != 0 {
		panic("engine: membarrier failed after it was registered: " + errno.Error())
	}
}
