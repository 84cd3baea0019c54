package shm

import "github.com/muster-mpi/muster/rdma"

// The pieces of a cooperative copy. The receiver of the data claims them from the front,
// the sender from the back, until they meet: each side then works on one part of both
// buffers, whose lines and pages stay in its own caches when a program uses the same
// buffers again. If they alternated, every line that one side writes would have to leave
// the other's cache (measured: a quarter to a third less bandwidth at 64 and 128 KB).
//
// The cursor counts what each side has claimed, in pages, or in more for copies whose
// pages 24 bits cannot count. Values that no claims can produce are treated as a copy of
// which nothing is left.

const (
	endBits = epochShift / 2 // of each count in the cursor
	endMask = 1<<endBits - 1

	// Up to twoPieces a copy has two pieces, one for each side. A longer one is claimed in
	// quarters of what is left, so that both sides finish at about the same time. A writer
	// claims halves: it usually copies everything alone (assisted.go). The bounds keep the
	// claim inexpensive and the poll short.
	twoPieces  = 256 << 10
	leastHalf  = 16 << 10
	sharedPart = 4
	writerPart = 2
	minPiece   = 32 << 10
	maxPiece   = 256 << 10
)

// claimUnit returns the unit of the cursor for a copy, and the number of them.
func claimUnit(length uint64) (unit, units uint64) {
	unit = gavePage
	for length/unit >= endMask {
		unit *= 2
	}
	return unit, (length + unit - 1) / unit
}

// countUnclaimed returns how many bytes are left in a copy, given its cursor.
func countUnclaimed(cursor, length uint64) uint64 {
	unit, units := claimUnit(length)
	front, back := cursor&endMask, cursor>>endBits&endMask
	if front+back >= units {
		return 0
	}
	return min((units-back)*unit, length) - front*unit
}

// claimedAll is the cursor of a copy of which nothing is left.
func claimedAll(epoch, length uint64) uint64 {
	_, units := claimUnit(length)
	return epoch<<epochShift | units
}

// claim claims the next piece for a transfer: its offset and length, 0 if none is left.
func (ps *pullState) claim(x *transfer) (off, n uint64) {
	unit, units := claimUnit(x.length)
	for {
		c := ps.cursor.Load()
		front, back := c&endMask, c>>endBits&endMask
		if c>>epochShift != x.epoch || front+back >= units {
			return 0, 0
		}
		k := min(x.piece(units-front-back, unit, units), units-front-back)
		next := c + k
		from := front
		if x.sends() {
			next = c + k<<endBits
			from = units - back - k
		}
		if ps.cursor.CompareAndSwap(c, next) {
			x.left.seen = next & epochValue
			return from * unit, min((from+k)*unit, x.length) - from*unit
		}
	}
}

// piece returns the size of the next piece, in units, of which so many are left.
func (x *transfer) piece(left, unit, units uint64) uint64 {
	if x.length <= twoPieces {
		return max((units+1)/2, leastHalf/unit)
	}
	part := uint64(sharedPart)
	if x.op == rdma.OpWrite {
		part = writerPart
	}
	return min(max(left/part, minPiece/unit, 1), max(maxPiece/unit, 1))
}
