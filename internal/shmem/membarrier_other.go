//go:build !linux

package shmem

// RegisterGlobal fails: other systems have no membarrier.
func RegisterGlobal() bool { return false }

// GlobalBarrier does nothing.
func GlobalBarrier() {}
