//go:build linux && !race

package engine

import (
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/shmem"
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

// biasLimit is how long canBias waits for the kernel. Without a bias the lock is an ordinary
// one.
const biasLimit = time.Second

// canBias reports whether the kernel supports a barrier on all cores of this process,
// and registers for it.
func canBias() bool { return shmem.Within(biasLimit, shmem.RegisterPrivate) }

// barrierEverywhere executes a full barrier on every core that runs this
// process.
func barrierEverywhere() {
	if err := shmem.PrivateBarrier(); err != nil {
		panic("engine: membarrier failed after it was registered: " + err.Error())
	}
}
