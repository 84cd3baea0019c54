//go:build !linux

package membarrier

// RegisterGlobal fails: other systems have no membarrier.
func RegisterGlobal() bool { return false }

// Global does nothing.
func Global() {}
