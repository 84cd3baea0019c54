package pmi

// Slots on the board, after the counters: memory of the agreements of ranks of one host
// (package ft, shared.go). A rank has a line for each slot:
//
//	owner    context of the communicator that uses the slot, and the last round that this
//	         rank has concluded
//	asleep   the round for which the rank sleeps; others set it to 0 when they wake it
//	cells    of two rounds: round and known failures, flag, number
//
// Only jobs that survive failures use them, so that their pages take no memory in others.

import "sync/atomic"

// Slots is the number of slots: so many communicators of a rank can use one.
const Slots = 8

const (
	slotWords    = 8 // a cache line
	slotOwner    = 0
	slotAsleep   = 1
	slotCells    = 2
	cellWords    = 3
	slotFailures = 24 // bits; boardMaxSize needs 22
)

func (b *Board) slot(rank, slot int) []uint64 {
	if b == nil || uint(rank) >= uint(b.size) || uint(slot) >= Slots {
		return nil
	}
	at := headerWords + b.size*(rowWords+metricWords) + (rank*Slots+slot)*slotWords
	return b.words[at : at+slotWords : at+slotWords]
}

// ClearSlot prepares a slot of a rank for another communicator.
func (b *Board) ClearSlot(rank, slot int) {
	for i := range b.slot(rank, slot) {
		atomic.StoreUint64(&b.slot(rank, slot)[i], 0)
	}
}

// Contribute writes the contribution of a rank to a round.
func (b *Board) Contribute(rank, slot int, round, flag, number uint64, failures int) {
	if p := b.slot(rank, slot); p != nil {
		cell := p[slotCells+cellWords*int(round&1):]
		atomic.StoreUint64(&cell[1], flag)
		atomic.StoreUint64(&cell[2], number)
		atomic.StoreUint64(&cell[0], round<<slotFailures|uint64(failures))
	}
}

// Contribution returns the contribution of a rank to a round, if it has made it.
func (b *Board) Contribution(rank, slot int, round uint64) (flag, number uint64, failures int, ok bool) {
	p := b.slot(rank, slot)
	if p == nil {
		return 0, 0, 0, false
	}
	cell := p[slotCells+cellWords*int(round&1):]
	head := atomic.LoadUint64(&cell[0])
	if head>>slotFailures != round {
		return 0, 0, 0, false
	}
	return atomic.LoadUint64(&cell[1]), atomic.LoadUint64(&cell[2]), int(head & (1<<slotFailures - 1)), true
}

// Conclude records that a rank has concluded a round of a communicator, given by its
// context: it does not read the contributions of others any more.
func (b *Board) Conclude(rank, slot int, context uint32, round uint64) {
	if p := b.slot(rank, slot); p != nil {
		atomic.StoreUint64(&p[slotOwner], uint64(context)<<32|uint64(uint32(round)))
	}
}

// Concluded reports whether a rank does not read contributions to a round of a communicator
// any more.
func (b *Board) Concluded(rank, slot int, context uint32, round uint64) bool {
	p := b.slot(rank, slot)
	if p == nil {
		return false
	}
	owner := atomic.LoadUint64(&p[slotOwner])
	return uint32(owner>>32) != context || uint32(owner) == uint32(round)
}

// SleepInSlot records that a rank is about to sleep until a round is decided.
func (b *Board) SleepInSlot(rank, slot int, round uint64) {
	if p := b.slot(rank, slot); p != nil {
		atomic.StoreUint64(&p[slotAsleep], round)
	}
}

// WakeInSlot reverts SleepInSlot, and reports whether the caller must wake the rank.
func (b *Board) WakeInSlot(rank, slot int, round uint64) bool {
	p := b.slot(rank, slot)
	return p != nil && atomic.LoadUint64(&p[slotAsleep]) == round && atomic.CompareAndSwapUint64(&p[slotAsleep], round, 0)
}
