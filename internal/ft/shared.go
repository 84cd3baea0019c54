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
//
// A rank that waits for long sleeps. It looks again when another rank wakes it or when it
// learns of a failure. The last contribution that a sleeper waits for may be of a rank that
// cannot conclude yet, because it knows fewer failures than the sleeper. So a rank that
// concludes a round wakes those that sleep in it if
//
//   - it has concluded as soon as it has contributed: it was the last, or
//   - it has learned of a failure in between: who knew this failure may have waited for its
//     contribution alone.
//
// In other cases a rank alive contributes after this one, and wakes them.

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
	// Sleep records that the calling rank sleeps until it can conclude a round.
	Sleep(round uint64)
	// Wake makes another rank look, if it sleeps in the round.
	Wake(rank int, round uint64)
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
	asleep  bool   // see Sleep
	last    bool   // this rank has not looked, or could conclude, since it has contributed
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

// Sleep announces that this rank looks again only if it is woken, and after Fail, until the
// agreement is decided. The caller calls Look before it sleeps.
func (s *Shared) Sleep() {
	s.asleep = true
	s.memory.Sleep(s.mine.Round)
}

func (s *Shared) contribute() {
	s.mine.Round++
	s.mine.Failures, s.next, s.last = len(s.failed), 0, true
	s.memory.Store(s.mine)
	if s.asleep {
		s.memory.Sleep(s.mine.Round)
	}
}

// Look reads what has been written, and reports whether the agreement is decided. It wakes
// ranks that can conclude because of this one.
func (s *Shared) Look() bool {
	for s.waiting && s.lookOnce() {
	}
	return !s.waiting
}

// lookOnce reads what has been written in the present round, and reports whether it has
// concluded the round.
func (s *Shared) lookOnce() bool {
	for ; s.next < len(s.cells); s.next++ {
		if !s.read(s.next) && !slices.Contains(s.failed, int32(s.next)) {
			s.last = false
			return false
		}
	}
	round, wake := s.mine.Round, s.last || s.mine.Failures < len(s.failed)
	if !s.conclude() {
		s.last = false
		return false
	}
	for r := 0; wake && r < len(s.cells); r++ {
		s.memory.Wake(r, round)
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
		return false
	}
	v := Value{Flag: ^uint64(0), Failed: Set(s.failed[:d]).sort()}
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
	s.value, s.waiting, s.asleep = v, false, false
	return true
}

// Decision returns the value of the last agreement, if it is decided.
func (s *Shared) Decision() (Value, bool) { return s.value, !s.waiting && s.mine.Round > 0 }
