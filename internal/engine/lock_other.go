//go:build !linux || !amd64 || race

package engine

// Builds without a biased lock (lock.go). The race detector needs the atomics of the
// ordinary lock to see the order.

func (s *spinLock) lock() { s.lockShared() }

func (s *spinLock) unlock() { s.state.Store(0) }

func (s *spinLock) biased() bool { return false }

func goroutine() uintptr { return 0 }

func canBias() bool { return false }

func barrierEverywhere() {}
