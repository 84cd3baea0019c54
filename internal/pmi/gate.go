package pmi

// The gate is a barrier of all ranks of the job on the board, for ranks of one machine
// that share cores. There a message costs a context switch to its receiver, while a
// shared word costs nothing.
//
// Ranks count their arrivals. The last one opens the gate by storing the number of this
// opening. A waiting rank polls that number; after a while it records that it goes to
// sleep. A sleeping rank must be woken by a message:
//
//	sleeper     asleep = k; is opened >= k?          yes: asleep k → 0 by CAS: awake
//	last        opened = k; for ranks with asleep k: asleep k → 0 by CAS: send to it
//
// Each side stores before it loads, with atomic operations, so at least one of them sees
// the other, and only one CAS succeeds: a message is sent if and only if the sleeper waits
// for it.
//
// A rank that arrives adds a hash of its calls to a sum before it counts itself in. If the
// ranks have made the same calls, the sum is the number of ranks times the hash. The last
// rank compares: otherwise a rank that has left another collective and is at its next
// barrier would count as an arrival at this one.

import "sync/atomic"

// Arrival is the position of a rank among those that have arrived at the gate.
type Arrival uint8

const (
	ArrivedEarly Arrival = iota // other ranks are missing
	ArrivedLast                 // the caller must open the gate
	ArrivedAmiss                // the last too, but the ranks have made different calls
)

// Arrive counts the caller, with a hash of the calls it has made. It returns the number of
// this opening, from 1. The board must not be nil.
func (b *Board) Arrive(calls uint64) (opening uint64, a Arrival) {
	atomic.AddUint64(&b.words[wordCalls], calls)
	n, size := atomic.AddUint64(&b.words[wordArrived], 1), uint64(b.size)
	opening = (n-1)/size + 1
	if n%size != 0 {
		return opening, ArrivedEarly
	}
	// No rank can arrive for the next opening before this one.
	if atomic.SwapUint64(&b.words[wordCalls], 0) != size*calls {
		return opening, ArrivedAmiss
	}
	return opening, ArrivedLast
}

// Open opens the gate. Only the last rank to arrive may call it.
func (b *Board) Open(opening uint64) { atomic.StoreUint64(&b.words[wordReleased], opening) }

// Opened reports whether the gate has been opened for the given number.
func (b *Board) Opened(opening uint64) bool {
	return atomic.LoadUint64(&b.words[wordReleased]) >= opening
}

// FallAsleep records that a rank is about to sleep until the gate opens.
func (b *Board) FallAsleep(rank int, opening uint64) {
	atomic.StoreUint64(&b.row(rank)[rowAsleep], opening)
}

// WakeUp reverts FallAsleep. The rank itself and the last rank to arrive call it; only
// one of them succeeds.
func (b *Board) WakeUp(rank int, opening uint64) bool {
	return atomic.CompareAndSwapUint64(&b.row(rank)[rowAsleep], opening, 0)
}
