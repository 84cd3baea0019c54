//go:build !amd64 || race

package shm

import "sync/atomic"

// publish is a release store: a reader that loads v also sees every store before it.
//
// On arm64 sync/atomic's Store is STLR, a release store that costs little. Under the race
// detector the atomic store records the order.
func (w *word) publish(v uint64) { atomic.StoreUint64((*uint64)(w), v) }
