package nodecoll

// How much of a collective one round carries. All ranks compute the same from the
// kind and the length alone.

import "github.com/muster-mpi/muster/internal/coll"

const (
	// mostBytes is the most that one round carries.
	mostBytes = mostSlots * slotBytes
	// Where one rank writes what others read, the data is cut smaller, so that they
	// copy one piece while it writes the next. Ranks that share cores gain nothing
	// by it: each piece may cost a switch.
	flowBytes = slotBytes

	// direct is up to how many bytes, of all ranks together, everybody reduces
	// everything in an allreduce: one round instead of two, for n times the work.
	direct = 16 << 10
)

// Fits reports whether so many ranks can have a team, for elements of a size: a round
// must carry an element for each rank.
func Fits(ranks, elem int) bool { return elem <= flowBytes && ranks*elem <= mostBytes }

// piece is how many bytes of the data, or of each block, one round carries.
func (t *Team) piece(kind coll.Kind, elem int) int {
	n := mostBytes
	switch kind {
	case coll.Bcast, coll.Gather, coll.Reduce:
		if !t.oversubscribed {
			n = flowBytes
		}
	case coll.Scatter, coll.Alltoall, coll.ReduceScatter:
		n /= t.size // a part for each rank
	}
	return n / elem * elem
}

// slotsFor is how many slots a round takes that puts n bytes: a power of two.
func slotsFor(n int) uint64 {
	slots := uint64(1)
	for n > int(slots)*slotBytes {
		slots *= 2
	}
	return slots
}

// direct reports whether everybody reduces everything.
func (t *Team) direct(bytes int) bool { return bytes <= cellBytes || bytes*t.size <= direct }
