package nodecoll

// Ranks that are not in the same call, and operations that panic. Each word carries the
// signature of its call and of all calls before it (coll.Sign), so a rank that waits for
// another one sees at once that it does something else. Some rank would wait for ever,
// or get a wrong result: the fault is written into the segment for all to see, and
// every call from now on returns it.

import (
	"fmt"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/coll"
)

// fault is the first fault that anybody found.
type fault struct {
	state      atomic.Uint32 // faultNone, faultClaimed, faultReported
	class      uint32
	rank, peer uint64
	number     uint64
	mine       uint64 // call of rank, 0 if it is not known which calls differ
	theirs     uint64
	sign       uint64 // of peer's word
	length     uint64 // of text
	text       [faultText]byte
}

const (
	faultNone = iota
	faultClaimed
	faultReported
)

// faultText is the room for a fault in words.
const faultText = 320

func (f *fault) found() bool { return f.state.Load() == faultReported }

// Mismatch says that two ranks have not made the same calls.
type Mismatch struct {
	Rank, Peer   int // of the team
	Number       uint64
	Mine, Theirs coll.Call // of Rank and of Peer, if Number is not 0
	Sign         coll.Sign // of Peer's call
	Class        uint8     // and Text: a fault of another sort, as the caller gave it
	Text         string
}

func (m *Mismatch) Error() string {
	switch {
	case m.Text != "":
		return m.Text
	case m.Number == 0:
		return fmt.Sprintf("rank %d, in %s, has made other calls than rank %d", m.Peer, m.Sign.Kind().CallName(), m.Rank)
	}
	return fmt.Sprintf("collective call %d on the communicator is %s on rank %d and %s on rank %d", m.Number, m.Theirs, m.Peer, m.Mine, m.Rank)
}

// differ is called when a rank has put a word of the awaited round in another call.
func (t *Team) differ(q int, sign coll.Sign) error {
	d := t.firstDifference(q)
	return t.report(&Mismatch{Rank: t.rank, Peer: q, Number: d.Number, Mine: d.Mine, Theirs: d.Theirs, Sign: sign})
}

// compare looks whether a rank that is waited for has made another call. It may have
// gone another way, and never come to the round.
func (t *Team) compare(q int) error {
	if d := t.firstDifference(q); d.Number != 0 {
		return t.differ(q, coll.SignOf(d.Theirs))
	}
	return nil
}

// firstDifference is the first call that a rank has made differently, as far as it is
// known; else its number is 0.
func (t *Team) firstDifference(q int) Difference {
	theirs := &t.seg.sections[q].calls
	last, _ := t.past.Latest()
	for n := max(last, Kept) - Kept + 1; n <= last; n++ {
		a, known := t.past.At(n)
		b, made := theirs.at(n)
		if known && made && a != b {
			return Difference{n, a, b}
		}
	}
	return Difference{}
}

// Fail ends the calls of all ranks with a fault that this rank found in a call.
func (t *Team) Fail(class uint8, text string) {
	_ = t.report(&Mismatch{Rank: t.rank, Peer: t.rank, Class: class, Text: text})
}

// SetFault makes all later calls of this rank return a fault, unless there is one
// already. Other goroutines than the one that makes calls may use it. It wakes nobody.
func (t *Team) SetFault(class uint8, text string) {
	t.write(&Mismatch{Rank: t.rank, Peer: t.rank, Class: class, Text: text})
	t.look.Store(true)
}

// InOperation is the error of a call that an operation of the user has made.
type InOperation struct{}

func (InOperation) Error() string { return "an operation of a reduction has made the call" }

// tell writes a fault down and wakes everybody who sleeps, each in the name of the
// rank it waits for.
func (t *Team) report(m *Mismatch) error {
	t.broken = m
	t.write(m)
	for r := range t.seg.sections {
		asleep := &t.seg.sections[r].asleep
		// A name that is none of the team's is not sent on: nobody waits for it.
		if v := asleep.Load(); v != 0 && int(v) <= t.size && r != t.rank && asleep.CompareAndSwap(v, 0) {
			if err := t.driver.Wake(t.call.op, r, int(v)-1); err != nil {
				return err
			}
		}
	}
	return m
}

// write writes a fault down, if it is the first.
func (t *Team) write(m *Mismatch) {
	f := &t.seg.head.fault
	if !f.state.CompareAndSwap(faultNone, faultClaimed) {
		return
	}
	f.rank, f.peer, f.number = uint64(m.Rank), uint64(m.Peer), m.Number
	f.mine, f.theirs, f.sign = uint64(m.Mine), uint64(m.Theirs), uint64(m.Sign)
	f.class, f.length = uint32(m.Class), uint64(copy(f.text[:], m.Text))
	f.state.Store(faultReported)
}

// faulty is the fault that another rank found, or nil.
func (t *Team) faulty() error {
	f := &t.seg.head.fault
	if !f.found() {
		return nil
	}
	return &Mismatch{Rank: int(f.rank), Peer: int(f.peer), Number: f.number, Mine: coll.Call(f.mine), Theirs: coll.Call(f.theirs),
		Sign: coll.Sign(f.sign), Class: uint8(f.class), Text: string(f.text[:min(f.length, faultText)])}
}
