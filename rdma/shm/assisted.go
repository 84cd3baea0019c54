package shm

import (
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// A Write into a region registered as Assisted is a cooperative copy with swapped roles:
// the writer opens the slot of the region and copies, and the owner copies pieces whenever
// it polls. If the owner computes, the writer copies everything. The owner has no request
// and sees no completion; instead it has an internal transfer that waits for writers as
// long as the region is registered.

// assistFrom is the shortest Write in which the owner takes part: a shorter one has only
// one piece.
const assistFrom = minPiece + 1

// opAssist is the owner's internal operation for such a Write.
const opAssist rdma.Op = 255

// offerHelp creates the owner's transfer.
func (t *transferTable) offerHelp(d *Device, key uint64) {
	x := t.take()
	x.op, x.key, x.slot, x.phase = opAssist, key, d.seg.slot(int(key&keySlotMask)), phaseOffered
	t.offered = append(t.offered, x)
}

// offerAgain makes the owner's transfer wait for the next Write.
func (t *transferTable) offerAgain(x *transfer) {
	if x.slot.key.Load() != x.key {
		t.forget(x)
		return
	}
	x.phase, x.peer, x.status, x.done = phaseOffered, nil, rdma.StatusOK, 0
	t.offered = append(t.offered, x)
}

// endHelp ends the owner's transfer with the registration.
func (t *transferTable) endHelp(key uint64) {
	for _, list := range []*[]*transfer{&t.offered, &t.active} {
		*list = slices.DeleteFunc(*list, func(x *transfer) bool {
			if x.op != opAssist || x.key != key {
				return false
			}
			t.forget(x)
			return true
		})
	}
}

// forget frees a transfer that has no completion.
func (t *transferTable) forget(x *transfer) {
	*x = transfer{number: x.number, ticket: x.ticket + 1}
	t.free = append(t.free, x)
}

// startAssisted begins a Write that the owner may help with. It returns false if the slot
// still holds another copy, perhaps a finished one that the owner has not seen yet: a
// Write does not wait for that.
func (t *transferTable) startAssisted(d *Device, x *transfer, limit uint64) bool {
	x.phase = phaseOpening
	over, s := t.stepOpening(d, x)
	if !over && x.phase == phaseOpening {
		x.phase, x.slot = phaseCopy, nil
		return false
	}
	t.copyMore(d, x, over, s, limit)
	return true
}
