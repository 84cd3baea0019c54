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

import "sync/atomic"

// Arrive counts the caller. It returns the number of this opening, from 1, and whether
// the caller is the last to arrive. It returns 0 without a board.
func (b *Board) Arrive() (opening uint64, last bool) {
	if b == nil {
		return 0, false
	}
	n := atomic.AddUint64(&b.words[wordArrived], 1)
	size := uint64(b.size)
	return (n-1)/size + 1, n%size == 0
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
