//go:build !amd64 || race

package shm

import "sync/atomic"

// publish stores v so that whoever loads it also sees every store before it.
//
// On arm64 sync/atomic's Store is STLR, a release store that costs little. Under
// the race detector the atomic store is what tells it about the order.
func (w *word) publish(v uint64) { atomic.StoreUint64((*uint64)(w), v) }
