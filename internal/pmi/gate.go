package pmi

// The gate is a barrier of all ranks of the job on the board, for ranks of one
// machine that share cores: there a message costs a switch to the rank that must
// take it, and a word that everybody can look at costs nothing.
//
// Ranks count themselves in. The last opens the gate: it says how often the gate
// has been opened. Who waits looks at that now and then, and when that takes too
// long says that it goes to sleep. A sleeper must be woken by a message:
//
//	sleeper     asleep = k; is the gate open the k-th time?   yes: asleep k → 0, if still k: awake
//	last        opened = k; who is asleep since k?            asleep k → 0, if still k: send to it
//
// Each stores before it looks, with atomic operations, so at least one of them
// sees the other, and only one of them can turn k into 0: a message is sent if and
// only if the sleeper waits for it.

import "sync/atomic"

// Arrive counts the caller in. It gives the number of this opening, from 1, and
// whether the caller is the last to come; 0 if there is no board.
func (b *Board) Arrive() (opening uint64, last bool) {
	if b == nil {
		return 0, false
	}
	n := atomic.AddUint64(&b.words[wordArrived], 1)
	size := uint64(b.size)
	return (n-1)/size + 1, n%size == 0
}

// Open opens the gate. Only the last to come may do it.
func (b *Board) Open(opening uint64) { atomic.StoreUint64(&b.words[wordReleased], opening) }

// Opened reports whether the gate has been opened so many times.
func (b *Board) Opened(opening uint64) bool {
	return atomic.LoadUint64(&b.words[wordReleased]) >= opening
}

// FallAsleep says that a rank is about to sleep until the gate opens.
func (b *Board) FallAsleep(rank int, opening uint64) {
	atomic.StoreUint64(&b.row(rank)[rowAsleep], opening)
}

// WakeUp takes that back, for the rank itself or for the last to come: only one of
// them succeeds.
func (b *Board) WakeUp(rank int, opening uint64) bool {
	return atomic.CompareAndSwapUint64(&b.row(rank)[rowAsleep], opening, 0)
}
