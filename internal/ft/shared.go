package ft

// Agreements in memory that all ranks share: those of one host. What a rank has written
// there survives its death, so a rank contributes with one store, and everyone who has read
// all contributions knows the value. No message is lost and no root can die.
//
// An agreement is one round, and one more for each rank that dies without a contribution
// while others have contributed to the round. In a round a rank writes a [Cell], once: its
// value and how many failures it knows. All ranks learn of failures in the same order, so a
// number d stands for the first d failures. A rank reads all cells except those of ranks
// that it knows to have failed, and that are empty after it knew. Let D be the largest
// number of failures in them:
//
//	every empty cell is of one of the first D failures   the round decides: the value of
//	                                                     all others, and these D failures
//	otherwise                                            nobody can decide it: the next round
//
// All ranks come to the same conclusion, whenever they read and whatever else they know:
//
//   - Who concludes has read the cells of all ranks that are alive, and cells do not change.
//     What could be written later is a cell of a rank that has failed: there is none.
//   - A rank that contributes d is none of the first d failures. So D is the number of a
//     rank whose contribution counts, and a cell that one rank has read and another has
//     not (it skipped an empty one) is none of a rank outside of the first D.
//
// In the next round all contribute more failures, so there are at most as many rounds as
// failures, and one.

import "slices"

// Cell is the contribution of a rank to a round.
type Cell struct {
	Round        uint64 // from 1
	Flag, Number uint64
	Failures     int // the first that the rank knew
}

// Memory is what the ranks share. It has the cells of two rounds: no rank can begin a round
// before all ranks alive have concluded the one before the last.
type Memory interface {
	// Load returns the cell of a rank, if it is of the round.
	Load(rank int, round uint64) (Cell, bool)
	// Store writes the cell of the calling rank.
	Store(c Cell)
}

// Shared is the state of one rank in the agreements of a communicator whose ranks share
// memory.
type Shared struct {
	memory  Memory
	failed  []int32 // in their order
	mine    Cell
	cells   []Cell // that this rank has read, by rank; of an earlier round: not yet
	next    int    // the first one that it has not read
	waiting bool   // an agreement is under way
	last    bool   // see Last
	value   Value
}

// NewShared returns the state of a rank of n ranks.
func NewShared(n int, memory Memory) *Shared {
	return &Shared{memory: memory, cells: make([]Cell, n)}
}

// Fail reports a failed rank. All ranks report failures in the same order. The caller calls
// Look then.
func (s *Shared) Fail(rank int) { s.failed = append(s.failed, int32(rank)) }

// Round returns the number of the present round.
func (s *Shared) Round() uint64 { return s.mine.Round }

// Waiting reports whether an agreement is under way.
func (s *Shared) Waiting() bool { return s.waiting }

// Enter starts the next agreement. The previous one must have been decided. The caller
// calls Look then.
func (s *Shared) Enter(flag, number uint64) {
	s.mine.Flag, s.mine.Number, s.waiting = flag, number, true
	s.contribute()
}

func (s *Shared) contribute() {
	s.mine.Round++
	s.mine.Failures, s.next, s.last = len(s.failed), 0, true
	s.memory.Store(s.mine)
}

// Look reads what has been written, and reports whether the agreement is decided.
func (s *Shared) Look() bool {
	for s.waiting {
		for ; s.next < len(s.cells); s.next++ {
			if !s.read(s.next) && !slices.Contains(s.failed, int32(s.next)) {
				s.last = false
				return false
			}
		}
		if !s.conclude() {
			return false
		}
	}
	return true
}

func (s *Shared) read(rank int) (found bool) {
	if c, ok := s.memory.Load(rank, s.mine.Round); ok {
		s.cells[rank] = c
	}
	return s.cells[rank].Round == s.mine.Round
}

// conclude decides the agreement or begins the next round, unless another rank has
// contributed failures that this one does not know yet.
func (s *Shared) conclude() bool {
	d := 0
	for i := range s.cells {
		if s.cells[i].Round == s.mine.Round {
			d = max(d, s.cells[i].Failures)
		}
	}
	if d > len(s.failed) {
		s.last = false
		return false
	}
	v := Value{Flag: ^uint64(0), Failed: Set(s.failed[:d]).sorted()}
	for i, c := range s.cells {
		switch {
		case v.Failed.Has(int32(i)):
		case c.Round != s.mine.Round:
			s.contribute()
			return true
		default:
			v.Flag, v.Number = v.Flag&c.Flag, max(v.Number, c.Number)
		}
	}
	s.value, s.waiting = v, false
	return true
}

// Decision returns the value of the last agreement, if it is decided.
func (s *Shared) Decision() (Value, bool) { return s.value, !s.waiting && s.mine.Round > 0 }

// Last reports whether this rank was the last to contribute to the agreement that it has
// decided: others may wait to be told.
func (s *Shared) Last() bool { return s.last && !s.waiting }
