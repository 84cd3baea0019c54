package nodecoll

// Ranks that are not in the same call. Each word carries the kind of collective and
// its length, so a rank sees at once that another one does something else. If only
// the lengths differ and both make the same rounds, the ranks are still in step: who sees it returns an error, and the team goes on. Otherwise some rank
// would wait for ever: the fault is written into the segment for all to see, and
// every call from now on returns it.

import (
	"fmt"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/coll"
)

// fault is the first fault that anybody found.
type fault struct {
	state      atomic.Uint32 // faultNone, faultClaimed, faultTold
	_          uint32
	rank, peer uint64
	sign, seen uint64 // of rank and of peer
}

const (
	faultNone = iota
	faultClaimed
	faultTold
)

func (f *fault) found() bool { return f.state.Load() == faultTold }

// signOf is the upper half of a word: 4 bits of kind, 28 of length.
func signOf(kind coll.Kind, bytes int) uint64 {
	return uint64(kind)<<60 | uint64(min(bytes, maxSigned))<<32
}

const maxSigned = 1<<28 - 1

func readSign(word uint64) (kind coll.Kind, bytes int) {
	return coll.Kind(word >> 60), int(word >> 32 & maxSigned)
}

// Mismatch says that two ranks are not in the same call.
type Mismatch struct {
	Rank, Peer    int // of the team
	Kind, Other   coll.Kind
	Bytes, Theirs int  // of the data or of a block, in Rank's call and in Peer's
	InStep        bool // the lengths differ, but the ranks can go on
}

func (m *Mismatch) Error() string {
	if m.Kind == m.Other {
		return fmt.Sprintf("rank %d has %d bytes where rank %d has %d in the same %s: the counts differ between ranks", m.Peer, m.Theirs, m.Rank, m.Bytes, m.Kind)
	}
	return fmt.Sprintf("rank %d is in %s of %d bytes while rank %d is in %s of %d: ranks must make the same collective calls in the same order",
		m.Peer, m.Other, m.Theirs, m.Rank, m.Kind, m.Bytes)
}

// compare looks at a word of the awaited round that is not the expected one.
func (t *Team) compare(q int, got uint64) error {
	kind, bytes := readSign(got)
	c := &t.call
	if kind == c.kind && bytes == min(c.bytes, maxSigned) {
		return nil // it came between two looks
	}
	m := &Mismatch{Rank: t.rank, Peer: q, Kind: c.kind, Other: kind, Bytes: c.bytes, Theirs: bytes}
	m.InStep = kind == c.kind && t.course(kind, bytes, c.elem) == t.course(kind, c.bytes, c.elem)
	if m.InStep {
		if c.differs == nil {
			c.differs = m
		}
		return nil
	}
	return t.tell(m, c.sign, got)
}

// tell writes a fault down and wakes everybody who sleeps, each in the name of the
// rank it waits for.
func (t *Team) tell(m *Mismatch, sign, seen uint64) error {
	f := &t.seg.head.fault
	t.broken = m
	if f.state.CompareAndSwap(faultNone, faultClaimed) {
		f.rank, f.peer, f.sign, f.seen = uint64(m.Rank), uint64(m.Peer), sign, seen
		f.state.Store(faultTold)
	}
	for r := range t.seg.sections {
		asleep := &t.seg.sections[r].asleep
		// A name that is none of the team's is not sent on: nobody waits for it.
		if v := asleep.Load(); v != 0 && int(v) <= t.size && r != t.rank && asleep.CompareAndSwap(v, 0) {
			if err := t.keeper.Wake(t.call.op, r, int(v)-1); err != nil {
				return err
			}
		}
	}
	return m
}

// faulty is the fault that another rank found, or nil.
func (t *Team) faulty() error {
	f := &t.seg.head.fault
	if !f.found() {
		return nil
	}
	m := &Mismatch{Rank: int(f.rank), Peer: int(f.peer)}
	m.Kind, m.Bytes = readSign(f.sign)
	m.Other, m.Theirs = readSign(f.seen)
	return m
}
