//go:build !amd64 || race

package shmem

import "sync/atomic"

// Publish is a release store: a reader that loads v also sees every store before it. On
// arm64 that is an STLR, which is inexpensive; the race detector derives the order from it.
func (w *Word) Publish(v uint64) { atomic.StoreUint64((*uint64)(w), v) }

// Note is Publish for a word of which it does not matter when others see it.
func (w *Word) Note(v uint64) { w.Publish(v) }
