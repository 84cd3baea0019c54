package nodecoll

import "sync/atomic"

// word is 64 bits of memory that ranks share, in a mapped segment or on the heap.
type word uint64

func (w *word) load() uint64 { return atomic.LoadUint64((*uint64)(w)) }

// publishFenced is publish, and orders the store before any later load.
func (w *word) publishFenced(v uint64) { atomic.SwapUint64((*uint64)(w), v) }
