//go:build !amd64 || race

package engine

import "sync/atomic"

// release gives the lock; see release_amd64_unsafe.go.
func release(state *atomic.Uint32) { state.Store(0) }
