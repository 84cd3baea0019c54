package nodecoll

// How much of a collective one round carries. All ranks compute the same from the kind and
// the length alone.

import "github.com/muster-mpi/muster/internal/coll"

const (
	// mostBytes is the most that one round carries.
	mostBytes = mostSlots * slotBytes
	// flowBytes is the size of a piece where one rank writes what others read: they copy one
	// piece while it writes the next. Ranks that share cores gain nothing from it: each
	// piece may cost a context switch.
	flowBytes = slotBytes

	// direct is the limit, in bytes of all ranks together, up to which every rank of an
	// allreduce reduces everything: one round instead of two, for n times the work.
	direct = 16 << 10
)

// A communicator of coll.SegmentRanks ranks is the largest that Fits accepts.
const _ = uint(mostBytes-coll.SegmentRanks) + uint(coll.SegmentRanks-mostBytes)

// Fits reports whether so many ranks can form a team for elements of a size: a round must
// carry an element for each rank.
func Fits(ranks, elem int) bool { return elem <= flowBytes && ranks*elem <= mostBytes }

// piece returns how many bytes of the data, or of each block, one round carries.
func (t *Team) piece(kind coll.Kind, elem int) int {
	n := mostBytes
	switch {
	case kind.Input() == coll.AllBlocks:
		n /= t.size // a part for each rank
	case kind.Rooted() && !t.oversubscribed:
		n = flowBytes
	}
	return n / elem * elem
}

// slotsFor returns the number of slots for a round of n bytes: a power of two.
func slotsFor(n int) uint64 {
	slots := uint64(1)
	for n > int(slots)*slotBytes {
		slots *= 2
	}
	return slots
}

// direct reports whether every rank reduces everything.
func (t *Team) direct(bytes int) bool { return bytes <= cellBytes || bytes*t.size <= direct }
