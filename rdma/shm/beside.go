package shm

import (
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting beside the owner: rdma.SolicitedCQ.
//
// The owner computes and has left somebody behind who should wake up for what
// cannot wait. The owner writes armedWord into its sleeper word and looks once more.
// A sender that finds armedWord and has something urgent takes it out, so that one
// wake-up is paid for and not one for each message, counts it in rung, and wakes who
// sleeps on that word.
//
// The order of wait.go is needed here too, but a membarrier is not: it interrupts
// every core, for microseconds in a virtual machine, and a program may arm for each
// large message. Urgent messages are few and belong to large ones, so it is their
// senders who always publish with a fence.
//
// Sleeping on a word of its own, the one beside need not know who polls: the owner
// arms and disarms without waking it, and a Wait of the owner's, which sleeps on the
// sleeper word, is woken by itself alone. A wake-up between two sleeps is not lost,
// because rung has another value then than the one that was answered.

// Who polls beside the owner takes a core from the owner's computation. So it leaves
// the pieces of a cooperative copy to the other side as long as that one claims them,
// sleeps meanwhile, and is woken by the last byte.

var _ rdma.SolicitedCQ = (*completionQueue)(nil)

// beside is the side of the one who waits.
type beside struct {
	used     atomic.Bool // there is one
	answered uint32      // the value of rung when its last wait ended
	park     heapPark
	// guard bounds the next wait, in ns, while a copy is left to its other side,
	// which may leave too; 0: none is.
	guard atomic.Int64
}

// urgent is pending without what may wait until the owner polls: to help a peer that
// copies from our memory, which needs no help, and to see that it has ended.
func (d *Device) urgent() bool {
	d.mu.Lock()
	local := d.closing != nil || !d.done.empty() || d.recv.low || d.copies.urgent(d)
	d.mu.Unlock()
	return local || d.arrived()
}

func (t *transferTable) urgent(d *Device) bool {
	if t.canRespond(d) {
		return true
	}
	b := &d.wakeup.beside
	b.guard.Store(0)
	for _, x := range t.active {
		switch {
		case !x.opens() && x.phase == phaseShared || !x.ready(d):
		case x.phase == phaseShared && x.left.now && x.ownerGoesOn():
			b.guard.Store(max(b.guard.Load(), int64(x.guard())))
		default:
			return true
		}
	}
	return false
}

const (
	// ownerStart is how long the other side gets to claim its first piece. It does so
	// within a microsecond if it polls.
	ownerStart = 5 * time.Microsecond
	// guardRate is how slow a copy may be before it is looked at, in bytes per ns:
	// half of what one core does.
	guardRate  = 4
	leastGuard = 100 * time.Microsecond
)

// leftToOwner is what the puller of a copy has seen of the other side.
type leftToOwner struct {
	seen  uint64    // where the cursor was
	until time.Time // how long it may stay there
	now   bool      // the other side is at it
}

// leaveToOwner reports whether the other side is claiming pieces, as far as can be known
// without taking one from it.
func (x *transfer) leaveToOwner() bool {
	l, at, now := &x.left, x.slot.pull.cursor.load()&epochValue, time.Now()
	switch {
	case at != l.seen:
		l.seen, l.now = at, true
		l.until = now.Add(x.guard())
	case l.until.IsZero():
		l.until = now.Add(ownerStart)
	case now.After(l.until):
		l.now = false
		return false
	}
	return true
}

// guard returns how long a copy that is left to its other side is not looked at.
func (x *transfer) guard() time.Duration {
	return max(time.Duration(x.length-x.left.seen)/guardRate, leastGuard)
}

// ownerGoesOn reports whether a copy that was left to the other side is still its
// business: it is neither over nor given back.
func (x *transfer) ownerGoesOn() bool {
	ps := &x.slot.pull
	return !ps.over(x.epoch, x.length) && ps.gave.load()&gaveValid == 0 && x.slot.key.load() == x.key
}

// besideHold is how long who waits keeps its place in Go's scheduler: longer than most
// computations between two messages, and so short that others who want the place get
// it.
const besideHold = 5 * time.Millisecond

func (c *completionQueue) Beside(on bool) { c.dev.copies.beside = on }

func (c *completionQueue) ArmSolicited() bool {
	d := c.dev
	if d.closed || d.urgent() {
		return false
	}
	d.wakeup.beside.used.Store(true)
	sleeper := &d.seg.head.sleeper
	if sleeper.Load() == armedWord {
		return true
	}
	sleeper.Store(armedWord) // an XCHG: the look comes after it
	if d.urgent() {
		c.Disarm()
		return false
	}
	return true
}

func (c *completionQueue) Disarm() {
	// A load first: the word is often awake again, and then nobody else's cache
	// need lose it.
	if s := &c.dev.seg.head.sleeper; s.Load() == armedWord {
		s.CompareAndSwap(armedWord, awakeWord)
	}
}

func (c *completionQueue) WaitSolicited(timeout time.Duration) error {
	d := c.dev
	if d.closed {
		return rdma.ErrClosed
	}
	b, rung := &d.wakeup.beside, &d.seg.head.rung
	b.used.Store(true)
	if guard := time.Duration(b.guard.Load()); guard > 0 {
		timeout = min(timeout, guard)
	}
	if d.starved.Swap(false) {
		timeout = min(timeout, starvedPark)
	}
	if v := rung.Load(); v == b.answered && timeout > 0 {
		if d.seg.heap {
			b.park.on(d.seg.beside, timeout)
		} else {
			start := time.Now()
			holdFutex(rung, v, min(timeout, besideHold))
			if timeout -= time.Since(start); timeout > 0 && rung.Load() == v {
				parkFutex(rung, v, timeout)
			}
		}
	}
	b.answered = rung.Load()
	return nil
}

// summon wakes whoever the owner has left, itself or somebody beside it.
func (s *segment) summon() {
	if s.head.sleeper.CompareAndSwap(armedWord, awakeWord) {
		s.wakeBeside()
		return
	}
	s.unpark()
}

func (s *segment) wakeBeside() {
	s.head.rung.Add(1)
	if s.heap {
		leaveToken(s.beside)
		return
	}
	wakeFutex(&s.head.rung)
}
