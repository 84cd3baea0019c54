package shmem

import "sync/atomic"

// Word is 64 bits of memory that ranks share, in a mapping or on the heap. It must be
// aligned.
type Word uint64

// Load returns the value. What its writer stored before it published the value is visible.
func (w *Word) Load() uint64 { return atomic.LoadUint64((*uint64)(w)) }

// PublishFenced is Publish, and orders the store before any later load.
func (w *Word) PublishFenced(v uint64) { atomic.SwapUint64((*uint64)(w), v) }

// Add adds v and returns the sum.
func (w *Word) Add(v uint64) uint64 { return atomic.AddUint64((*uint64)(w), v) }

// CompareAndSwap replaces old by new and reports whether the value was old.
func (w *Word) CompareAndSwap(old, new uint64) bool {
	return atomic.CompareAndSwapUint64((*uint64)(w), old, new)
}
