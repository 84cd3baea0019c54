package nodecoll

// Rounds: how ranks hand data to each other.
//
// All ranks count rounds alike. In round n a rank has cell n mod 16 and slot n mod
// 16 of its section to write into; one that needs more slots takes the next rounds
// with it. It may do so when every rank is through with what was there 16 rounds
// before. It knows that from two things:
//
//   - In a round of all with all (an exchange) it sees everybody's word. Who has
//     raised the word of round n is through with round n-1. So exchanges one after
//     the other need nothing more: that is the way of barrier, allreduce,
//     allgather, alltoall.
//   - In any other round each rank writes into its done word, at the end, that it
//     is through with the round. It is looked at only when it is needed, about
//     once in 16 slots.
//
// Nobody waits for a done word that nobody writes. A round takes 1, 2, 4 or 8 slots
// and begins at a multiple of that, so it does not cross a multiple of 8, and the
// next one ends before the multiple after next: 16 slots behind its end lies
// nothing but what came before the last round. If that was an exchange, its words
// have told that all are through with it; if not, everyone writes its done word
// without waiting for the round to come.
//
// A rank never sees a cell ahead of the round it waits for, because it is not
// through with it: so the word is compared for being equal, and may wrap around.

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/coll"
)

// Driver is the rank outside of its Team. Peers are ranks of the Team.
type Driver interface {
	// Poll is called while a rank waits: it lets messages move, looks for ranks
	// that have died, and lets others have the core once spinning makes no sense.
	// n counts the calls of one wait. It says whether it is time to sleep, or why
	// the rank can no longer communicate.
	Poll(n int) (idle bool, err error)
	// Sleep waits for a Wake in the name of peer. op is the call, for people.
	Sleep(op string, peer int) error
	// Wake ends the Sleep of a peer that waits for name, now or when it comes.
	Wake(op string, peer, name int) error
	// InOperation reports whether the caller was called by an operation of a reduction.
	InOperation() bool
}

// Team is the ranks that share a segment, seen by one of them. Calls are
// collective: all ranks make the same ones in the same order, one at a time.
type Team struct {
	rank, size     int
	mine           *section
	seg            segment
	calls          uint64      // collectives that were begun
	round          uint64      // the last that was taken
	safe           uint64      // all ranks are through with the rounds up to here
	reported       uint64      // what the own done word says; those of the others will
	fenced         bool        // publishing must order the store before later loads
	oversubscribed bool        // ranks share cores
	burst          int         // looks between two calls of Poll
	look           atomic.Bool // begin must look whether there is a fault, or an operation runs

	past   *History // of the communicator
	driver Driver
	call   call
	broken error // no more calls are possible
	close  func() error
}

// call is the collective under way.
type call struct {
	op   string
	sign uint64    // of this call and those before it, in the upper half
	what coll.Call // until it is in the History
}

// How often a waiting rank looks at the word between two polls. What a peer
// that is in the same call has to publish comes within the first burst.
const (
	firstLooks = 256
	moreLooks  = 64
)

// Rank is the caller's number in the team.
func (t *Team) Rank() int { return t.rank }

// Size is the number of ranks.
func (t *Team) Size() int { return t.size }

// Oversubscribed reports whether the ranks share cores, as rank 0 sees it.
func (t *Team) Oversubscribed() bool { return t.oversubscribed }

// Bytes is the size of the segment.
func (t *Team) Bytes() int { return len(t.seg.mem) }

// Calls is the number of collectives that were begun. Nobody may be in one.
func (t *Team) Calls() uint64 { return t.calls }

var errClosed = errors.New("the shared segment of the communicator has been given back")

// ShareHistory moves the History into the segment, where other ranks see what this one
// has called, and HideHistory moves it back. Nobody may read it meanwhile.
func (t *Team) ShareHistory() { t.past.share(&t.mine.calls) }
func (t *Team) HideHistory() {
	if t.past.shared != nil {
		t.past.share(nil)
	}
}

// Close gives the segment back. The others may still use theirs.
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
	t.call = call{op, uint64(c.After(t.past.hash)) << 32, c}
	return nil
}

// note adds the call under way to the History, if that was not done. It comes after the
// first word, which others wait for, and before the rank itself waits for long.
func (t *Team) note() {
	if c := t.call.what; c != 0 {
		t.call.what = 0
		t.past.note(c)
	}
}

// mayBegin says why a collective cannot begin.
func (t *Team) mayBegin() error {
	if t.broken == nil {
		t.broken = t.faulty()
	}
	if t.broken == nil && t.driver.InOperation() {
		return InOperation{}
	}
	return t.broken
}

// Operating says whether an operation of the user runs on this rank: then a collective
// may be one that it calls. Other goroutines than the one that makes calls may use it.
func (t *Team) Operating(yes bool) { t.look.Store(yes || t.seg.head.fault.found()) }

// next begins a round that puts n bytes.
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

// place is where a rank puts n bytes in a round.
func (s *section) buffer(round uint64, n int) []byte {
	if n <= cellBytes {
		return s.cells[round%depth].data[:n:n]
	}
	at := int(round%depth) * slotBytes
	return s.slots[at : at+n : at+n]
}

// room waits until the place of the round that has begun may be written.
func (t *Team) room() error {
	if t.round <= t.safe+depth {
		return nil
	}
	if t.reported < t.round-depth {
		return fmt.Errorf("internal error: %s waits in round %d for what no rank will tell", t.call.op, t.round)
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

// put publishes what is in the place of a round.
func (t *Team) put(round uint64) error {
	return t.raise(&t.mine.cells[round%depth].word, t.expected(round))
}

// through says that the rank has read all it needs of the round that has begun. An
// exchange does not need it.
func (t *Team) through() error {
	t.reported = t.round
	return t.raise(&t.mine.done, t.round)
}

// exchanged notes that the words of all ranks in a round have been seen.
func (t *Team) exchanged(round uint64) { t.safe = round - 1 }

// expected is the word of a round in this call.
func (t *Team) expected(round uint64) uint64 { return t.call.sign | uint64(uint32(round)) }

// await waits for a rank's data of a round.
func (t *Team) await(q int, round uint64) error {
	w := &t.seg.sections[q].cells[round%depth].word
	want := t.expected(round)
	if w.load() == want {
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
			if w.load() == want {
				return nil
			}
		}
		if got := w.load(); uint32(got) == uint32(round) && got != want {
			return t.differ(q, coll.Sign(got>>32))
		}
		idle, err := t.pollOnce(n)
		if err == nil && (idle || n&63 == 63) {
			err = t.compare(q) // its round may never come
		}
		if err != nil {
			return err
		}
		if idle {
			t.prepareSleep(q)
			if err := t.sleep(q, uint32(w.load()) == uint32(round)); err != nil {
				return err
			}
			n = 0
		}
	}
}

// awaitDone waits until a rank is through with a round, and says how far it is.
func (t *Team) awaitDone(q int, round uint64) (uint64, error) {
	t.note()
	w := &t.seg.sections[q].done
	for n, looks := 0, t.burst; ; n, looks = n+1, min(t.burst, moreLooks) {
		for range looks {
			if done := w.load(); done >= round {
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
			if err := t.sleep(q, w.load() >= round); err != nil {
				return 0, err
			}
			n = 0
		}
	}
}
