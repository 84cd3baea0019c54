package nodecoll

// How much of a collective one round carries. All ranks compute the same from the
// kind and the length alone.

import "github.com/muster-mpi/muster/internal/coll"

const (
	// A broadcast is cut into smaller pieces than a slot, so that the readers copy
	// one while the root writes the next; a long one into larger, since each piece
	// costs a look at a line. Ranks that share cores gain nothing by it.
	bcastPiece = 4 << 10
	bcastLong  = 32 << 10

	// MaxElement is the largest element that reductions take.
	MaxElement = 1 << 10
	// MaxRanks bounds the teams: the places for each rank's part of a slot must
	// hold the largest element.
	MaxRanks = slotBytes / MaxElement * 16

	// direct is up to how many bytes, of all ranks together, everybody reduces
	// everything in an allreduce: one round instead of two, for n times the work.
	direct = 16 << 10
)

// piece is how many bytes of the data, or of each block, one round carries.
func (t *Team) piece(kind coll.Kind, bytes, elem int) int {
	n := slotBytes
	switch kind {
	case coll.Bcast:
		if !t.crowded && bytes <= bcastLong {
			n = bcastPiece
		}
	case coll.Scatter, coll.Alltoall, coll.ReduceScatter:
		n /= t.size // a part for each rank
	}
	return n / elem * elem
}

// rounds is how many rounds a collective takes.
func (t *Team) rounds(kind coll.Kind, bytes, elem int) int {
	if kind == coll.Barrier {
		return 1
	}
	p := t.piece(kind, bytes, elem)
	n := (bytes + p - 1) / p
	if kind == coll.Allreduce && !t.direct(bytes) {
		n *= 2
	}
	return n
}

// direct tells whether everybody reduces everything.
func (t *Team) direct(bytes int) bool { return bytes <= cellBytes || bytes*t.size <= direct }
