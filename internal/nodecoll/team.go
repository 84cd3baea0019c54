package nodecoll

// Rounds: how ranks pass data to each other.
//
// All ranks number rounds alike. In round n a rank writes into cell n mod 16 and slot
// n mod 16 of its section; if it needs more slots, it also uses those of the next rounds.
// It may do so when every rank has finished the round that used them 16 rounds before. It
// learns that in two ways:
//
//   - In an exchange, a round of all with all, it sees everyone's word. A rank that has
//     published the word of round n has finished round n-1. So consecutive exchanges
//     need nothing more: barrier, allreduce, allgather and alltoall use them.
//   - In any other round each rank writes the round's number into its done word at the
//     end. Other ranks read it only when they need it, about once in 16 slots.
//
// No rank waits for a done word that is never written. A round uses 1, 2, 4 or 8 slots and
// begins at a multiple of that, so it does not cross a multiple of 8, and the next one ends
// before the multiple after next: 16 slots behind its end there are only rounds before the
// last one. If the last one was an exchange, its words show that all ranks have finished
// those; if not, every rank writes its done word without waiting for the next round.
//
// A rank never sees a cell ahead of the round it waits for, because it has not finished
// that round itself: so the word is compared for equality, and may wrap around.

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/coll"
)

// Driver connects a Team to the progress engine of its rank. Peers are ranks of the Team.
type Driver interface {
	// Poll is called while a rank waits. It makes progress on messages, checks for dead
	// ranks, and yields the core when spinning no longer pays. n counts the calls of one
	// wait, and op is the call, for display. idle reports that the rank should sleep; err why
	// it can no longer communicate.
	Poll(op string, n int) (idle bool, err error)
	// Sleep waits for a Wake with peer as the name. op is the call, for display.
	Sleep(op string, peer int) error
	// Wake ends the Sleep of a peer that waits for name, now or when it begins.
	Wake(op string, peer, name int) error
	// InOperation reports whether a user function of a reduction has called the caller.
	InOperation() bool
}

// Team is the group of ranks that share a segment, seen by one of them. Calls are
// collective: all ranks make the same ones in the same order, one at a time.
type Team struct {
	rank, size     int
	mine           *section
	seg            segment
	calls          uint64      // collectives begun
	round          uint64      // the last round begun
	safe           uint64      // all ranks have finished the rounds up to this one
	reported       uint64      // this rank's done word
	fenced         bool        // publishing must order the store before later loads
	oversubscribed bool        // ranks share cores
	burst          int         // reads of the word between two calls of Poll
	look           atomic.Bool // begin must check for a fault, or a user function is running

	past   *History // calls on the communicator
	driver Driver
	call   call
	broken error // no more calls are possible, and why
	close  func() error
}

// call is the collective under way.
type call struct {
	op   string
	sign uint64    // signature of this call and those before it, in the upper half
	what coll.Call // the call, until it is in the History
	// length is set if another rank has made the call with another length.
	length *Length
}

// How often a waiting rank reads the word between two polls. A peer that is in the same
// call usually publishes within the first burst.
const (
	firstLooks = 256
	moreLooks  = 64
)

// Rank returns the caller's rank in the team.
func (t *Team) Rank() int { return t.rank }

// Size returns the number of ranks.
func (t *Team) Size() int { return t.size }

// Oversubscribed reports whether the ranks share cores, as determined by rank 0.
func (t *Team) Oversubscribed() bool { return t.oversubscribed }

// Bytes returns the size of the segment.
func (t *Team) Bytes() int { return len(t.seg.mem) }

// Calls returns the number of collectives begun. No call may be under way.
func (t *Team) Calls() uint64 { return t.calls }

var errClosed = errors.New("the shared segment of the communicator has been released")

// ShareHistory moves the History into the segment, where other ranks can read it.
// HideHistory moves it back. No goroutine may read it meanwhile.
func (t *Team) ShareHistory() { t.past.share(&t.mine.calls) }
func (t *Team) HideHistory() {
	if t.past.shared != nil {
		t.past.share(nil)
	}
}

// Close releases the segment. The other ranks may still use theirs.
func (t *Team) Close() error {
	if t.close == nil {
		return nil
	}
	unmap := t.close
	t.close, t.broken = nil, errClosed
	t.HideHistory()
	t.seg, t.mine = segment{}, nil
	return unmap()
}

// begin begins a collective.
func (t *Team) begin(op string, c coll.Call) error {
	if t.broken != nil || t.look.Load() {
		if err := t.mayBegin(); err != nil {
			return err
		}
	}
	t.calls++
	t.call = call{op: op, sign: uint64(c.SignAfter(t.past.hash)) << 32, what: c}
	return nil
}

// note adds the current call to the History, once. It follows the first word, which others
// wait for, and precedes any long wait of this rank.
func (t *Team) note() {
	if c := t.call.what; c != 0 {
		t.call.what = 0
		t.past.note(c)
	}
}

// mayBegin returns an error if a collective cannot begin.
func (t *Team) mayBegin() error {
	if t.broken == nil {
		t.broken = t.faulty()
	}
	if t.broken == nil && t.driver.InOperation() {
		return InOperation{}
	}
	return t.broken
}

// Operating sets whether a user function runs on this rank: then it may be the caller of a
// collective. It is safe for concurrent use.
func (t *Team) Operating(yes bool) { t.look.Store(yes || t.seg.head.fault.found()) }

// next begins a round that writes n bytes.
func (t *Team) next(n int) uint64 {
	if n <= slotBytes {
		t.round++
		return t.round
	}
	slots := slotsFor(n)
	begin := (t.round + slots) &^ (slots - 1)
	t.round = begin + slots - 1
	return begin
}

// buffer returns the memory for n bytes of a round.
func (s *section) buffer(round uint64, n int) []byte {
	if n <= cellBytes {
		return s.cells[round%depth].data[:n:n]
	}
	at := int(round%depth) * slotBytes
	return s.slots[at : at+n : at+n]
}

// room waits until the buffer of the current round may be written.
func (t *Team) room() error {
	if t.round <= t.safe+depth {
		return nil
	}
	if t.reported < t.round-depth {
		return fmt.Errorf("internal error: %s waits in round %d for a done word that no rank will write", t.call.op, t.round)
	}
	least := t.round
	for q := range t.size {
		if q == t.rank {
			continue
		}
		done, err := t.awaitDone(q, t.round-depth)
		if err != nil {
			return err
		}
		least = min(least, done)
	}
	t.safe = least
	return nil
}

// put publishes the buffer of a round.
func (t *Team) put(round uint64) error {
	return t.raise(&t.mine.cells[round%depth].word, t.expectedWord(round))
}

// finishRound publishes that the rank has finished the current round. An exchange does not
// need it.
func (t *Team) finishRound() error {
	t.reported = t.round
	return t.raise(&t.mine.done, t.round)
}

// recordExchange records that the words of all ranks in a round have been seen.
func (t *Team) recordExchange(round uint64) { t.safe = round - 1 }

// expectedWord returns the word of a round in this call.
func (t *Team) expectedWord(round uint64) uint64 { return t.call.sign | uint64(uint32(round)) }

// await waits for a rank's data of a round.
func (t *Team) await(q int, round uint64) error {
	w := &t.seg.sections[q].cells[round%depth].word
	want := t.expectedWord(round)
	if w.Load() == want {
		return nil
	}
	return t.awaitSlow(q, w, round, want)
}

func (t *Team) awaitSlow(q int, w *word, round, want uint64) error {
	if t.call.what != 0 {
		t.note()
	}
	for n, looks := 0, t.burst; ; n, looks = n+1, min(t.burst, moreLooks) {
		for range looks {
			if w.Load() == want {
				return nil
			}
		}
		if got := w.Load(); uint32(got) == uint32(round) && got != want {
			if t.tolerate(q, got, want) {
				return nil
			}
			return t.differ(q, coll.Sign(got>>32))
		}
		idle, err := t.pollOnce(n)
		if err == nil && (idle || n&63 == 63) {
			err = t.compare(q) // it may never reach this round
		}
		if err != nil {
			return err
		}
		if idle {
			t.prepareSleep(q)
			if err := t.sleep(q, uint32(w.Load()) == uint32(round)); err != nil {
				return err
			}
			n = 0
		}
	}
}

// awaitDone waits until a rank has finished a round, and returns the rank's done word.
func (t *Team) awaitDone(q int, round uint64) (uint64, error) {
	t.note()
	w := &t.seg.sections[q].done
	for n, looks := 0, t.burst; ; n, looks = n+1, min(t.burst, moreLooks) {
		for range looks {
			if done := w.Load(); done >= round {
				return done, nil
			}
		}
		idle, err := t.pollOnce(n)
		if err == nil && idle {
			err = t.compare(q)
		}
		if err != nil {
			return 0, err
		}
		if idle {
			t.prepareSleep(q)
			if err := t.sleep(q, w.Load() >= round); err != nil {
				return 0, err
			}
			n = 0
		}
	}
}
