//go:build !linux || !amd64 || race

package engine

// Without a biased lock: see lock.go. Under the race detector the ordinary lock
// is what tells it about the order.

func (s *spinLock) lock() { s.lockShared() }

func (s *spinLock) unlock() { s.state.Store(0) }

func (s *spinLock) biased() bool { return false }

func goroutine() uintptr { return 0 }

func canBias() bool { return false }

func barrierEverywhere() {}
