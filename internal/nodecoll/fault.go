package nodecoll

// Ranks that are in different calls, and user functions that panic. Each word carries the
// signature of its call and of all calls before it (coll.Sign), so a waiting rank sees at
// once that its peer is in another call. Some rank would wait for ever or get a wrong
// result, so the fault is written into the segment for all ranks, and every later call
// returns it.

import (
	"fmt"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/coll"
)

// fault is the first fault that any rank found.
type fault struct {
	state      atomic.Uint32 // faultNone, faultClaimed, faultReported
	class      uint32
	rank, peer uint64
	number     uint64
	mine       uint64 // call of rank, 0 if it is unknown which calls differ
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

// faultText is the space for the text of a fault.
const faultText = 320

func (f *fault) found() bool { return f.state.Load() == faultReported }

// Mismatch reports that two ranks have not made the same calls.
type Mismatch struct {
	Rank, Peer   int // of the team
	Number       uint64
	Mine, Theirs coll.Call // of Rank and of Peer, if Number is not 0
	Sign         coll.Sign // of Peer's call
	Class        uint8     // with Text: another kind of fault, as given by the caller
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

// differ handles a word of the awaited round that a rank has published in another call.
func (t *Team) differ(q int, sign coll.Sign) error {
	d := t.firstDifference(q)
	return t.report(&Mismatch{Rank: t.rank, Peer: q, Number: d.Number, Mine: d.Mine, Theirs: d.Theirs, Sign: sign})
}

// Length reports that another rank has made the current call with another length. The
// segment can be used further.
type Length struct {
	Peer         int
	Mine, Theirs int // bytes
}

func (l *Length) Error() string {
	return fmt.Sprintf("rank %d makes the call with %d bytes, this rank with %d: the counts differ between ranks", l.Peer, l.Theirs, l.Mine)
}

// tolerant reports whether short calls of different length have the same rounds: then
// each fits into one slot.
func (t *Team) tolerant() bool { return t.past.Tolerant && t.size*coll.ShortBytes <= slotBytes }

// tolerate records that a word differs from the expected one only in the length of the
// call, if it does.
func (t *Team) tolerate(q int, got, want uint64) bool {
	_, what := t.past.Latest()
	mine := coll.Call(what)
	theirs, ok := mine.LengthIn(coll.Sign(want>>32), coll.Sign(got>>32))
	if ok = ok && t.tolerant(); ok {
		t.call.length = &Length{q, mine.Bytes(), theirs}
	}
	return ok
}

// Lengths returns a *Length if the latest call had another length on another rank.
func (t *Team) Lengths() error {
	if l := t.call.length; l != nil {
		return l
	}
	return nil
}

// compare checks whether an awaited rank has made another call and may never reach the
// round.
func (t *Team) compare(q int) error {
	if d := t.firstDifference(q); d.Number != 0 {
		return t.differ(q, coll.SignOf(d.Theirs))
	}
	return nil
}

// firstDifference returns the first call that a rank has made differently, as far as the
// histories reach; otherwise its number is 0.
func (t *Team) firstDifference(q int) Difference {
	theirs := &t.seg.sections[q].calls
	last, _ := t.past.Latest()
	for n := max(last, Kept) - Kept + 1; n <= last; n++ {
		a, known := t.past.At(n)
		b, made := theirs.at(n)
		if known && made && a != b && !(t.tolerant() && t.past.same(a, b)) {
			return Difference{n, a, b}
		}
	}
	return Difference{}
}

// Fail ends the calls of all ranks with a fault that this rank found in a call.
func (t *Team) Fail(class uint8, text string) {
	_ = t.report(&Mismatch{Rank: t.rank, Peer: t.rank, Class: class, Text: text})
}

// SetFault makes all later calls of this rank return a fault, unless there is one already.
// It is safe for concurrent use. It wakes no rank.
func (t *Team) SetFault(class uint8, text string) {
	t.write(&Mismatch{Rank: t.rank, Peer: t.rank, Class: class, Text: text})
	t.look.Store(true)
}

// InOperation is the error of a call made by a user function.
type InOperation struct{}

func (InOperation) Error() string { return "an operation of a reduction has made the call" }

// report records a fault and wakes all sleeping ranks, each with the name of the rank it
// waits for.
func (t *Team) report(m *Mismatch) error {
	t.broken = m
	t.write(m)
	for r := range t.seg.sections {
		asleep := &t.seg.sections[r].asleep
		// Ignore an invalid name: no rank waits for it.
		if v := asleep.Load(); v != 0 && int(v) <= t.size && r != t.rank && asleep.CompareAndSwap(v, 0) {
			if err := t.driver.Wake(t.call.op, r, int(v)-1); err != nil {
				return err
			}
		}
	}
	return m
}

// write records a fault in the segment, if it is the first.
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

// faulty returns the fault in the segment, or nil.
func (t *Team) faulty() error {
	f := &t.seg.head.fault
	if !f.found() {
		return nil
	}
	return &Mismatch{Rank: int(f.rank), Peer: int(f.peer), Number: f.number, Mine: coll.Call(f.mine), Theirs: coll.Call(f.theirs),
		Sign: coll.Sign(f.sign), Class: uint8(f.class), Text: string(f.text[:min(f.length, faultText)])}
}
