package shm

import (
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/shmem"
	"github.com/muster-mpi/muster/rdma"
)

// Waiting beside the owner: the second goroutine of rdma.CQ, for solicited events.
//
// While the owner computes, a second goroutine waits for urgent events. The owner writes
// armedWord into its sleeper word and checks for work once more. A sender that finds
// armedWord and has an urgent message replaces it, so that only one wake-up is paid for
// and not one per message, increments wakeCount, and wakes the goroutine that sleeps on wakeCount.
//
// The ordering of wait.go is needed here too, but without a membarrier: it interrupts
// every core, for microseconds in a virtual machine, and a program may arm for each large
// message. Urgent messages are few and belong to large transfers, so their senders always
// publish with a fence.
//
// Because it sleeps on a separate word, the second goroutine is independent of polling:
// the owner arms and disarms without waking it, and a Wait of the owner, which sleeps on
// the sleeper word, is woken separately. A wake-up between two sleeps is not lost, because
// wakeCount then differs from the value that was answered.

// Polling beside the owner takes a core from the owner's computation. The second goroutine
// therefore leaves the pieces of a cooperative copy to the other side as long as that side
// claims them, sleeps meanwhile, and is woken by the last byte.

// beside is the state of the second goroutine.
type beside struct {
	used     atomic.Bool // such a goroutine exists
	answered uint32      // the value of wakeCount when its last wait ended
	park     heapPark
	// guard bounds the next wait, in ns, while a copy is left to its other side, which may
	// stop as well; 0: no copy is.
	guard atomic.Int64
}

// urgent is pending without the events that may wait until the owner polls: helping a peer
// that copies from our memory, which needs no help, and noticing that it has finished.
func (d *Device) urgent() bool {
	d.mu.Lock()
	local := d.inbox.closing != nil || !d.done.empty() || d.recv.low || d.copies.urgent(d)
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
	// ownerStart is the time the other side has to claim its first piece. It takes less
	// than a microsecond if it polls.
	ownerStart = 5 * time.Microsecond
	// guardRate is the copy rate below which a copy is checked, in bytes per ns: half of
	// what one core achieves.
	guardRate  = 4
	leastGuard = 100 * time.Microsecond
)

// leftToOwner is what the puller of a copy has observed of the other side.
type leftToOwner struct {
	seen  uint64    // the last cursor
	until time.Time // how long the cursor may stay there
	now   bool      // the other side is copying
}

// leaveToOwner reports whether the other side is claiming pieces, as far as this can be
// determined without claiming one.
func (x *transfer) leaveToOwner() bool {
	l, at, now := &x.left, x.slot.pull.cursor.Load()&epochValue, time.Now()
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

// guard returns how long a copy that is left to its other side need not be checked.
func (x *transfer) guard() time.Duration {
	return max(time.Duration(countUnclaimed(x.left.seen, x.length))/guardRate, leastGuard)
}

// ownerGoesOn reports whether a copy that was left to the other side still is: it is
// neither finished nor given back.
func (x *transfer) ownerGoesOn() bool {
	ps := &x.slot.pull
	return !ps.over(x.epoch, x.length) && ps.gave.Load()&gaveValid == 0 && x.slot.key.Load() == x.key
}

// besideHold is how long a waiting goroutine keeps its P in Go's scheduler: longer than
// most computations between two messages, and short enough that other goroutines get the
// P.
const besideHold = 5 * time.Millisecond

func (c *completionQueue) SetBeside(on bool) { c.dev.copies.beside = on }

func (c *completionQueue) File() int { return -1 }

func (c *completionQueue) Arm(_ rdma.Notify, limit time.Duration) time.Duration {
	d := c.dev
	if d.closed || d.urgent() {
		return 0
	}
	d.wakeup.beside.used.Store(true)
	sleeper := &d.seg.head.sleeper
	if sleeper.Load() == armedWord {
		return limit
	}
	sleeper.Store(armedWord) // an XCHG: the check comes after it
	if d.urgent() {
		c.Disarm()
		return 0
	}
	return limit
}

func (c *completionQueue) Disarm() {
	// Load first: the word is often awake already, and then no other core loses its cache
	// line.
	if s := &c.dev.seg.head.sleeper; s.Load() == armedWord {
		s.CompareAndSwap(armedWord, awakeWord)
	}
}

func (c *completionQueue) WaitArmed(timeout time.Duration) error {
	d := c.dev
	if d.closed {
		return rdma.ErrClosed
	}
	b, wakeCount := &d.wakeup.beside, &d.seg.head.wakeCount
	b.used.Store(true)
	if guard := time.Duration(b.guard.Load()); guard > 0 {
		timeout = min(timeout, guard)
	}
	if d.starved.Swap(false) {
		timeout = min(timeout, starvedPark)
	}
	if v := wakeCount.Load(); v == b.answered && timeout > 0 {
		if d.seg.heap {
			b.park.wait(d.seg.beside, timeout)
		} else {
			start := time.Now()
			shmem.SleepHoldingP(wakeCount, v, min(timeout, besideHold))
			if timeout -= time.Since(start); timeout > 0 && wakeCount.Load() == v {
				shmem.Sleep(wakeCount, v, timeout)
			}
		}
	}
	b.answered = wakeCount.Load()
	return nil
}

// wakeWaiter wakes the owner or the goroutine that waits beside it.
func (s *segment) wakeWaiter() {
	if s.head.sleeper.CompareAndSwap(armedWord, awakeWord) {
		s.wakeBeside()
		return
	}
	s.unpark()
}

func (s *segment) wakeBeside() {
	s.head.wakeCount.Add(1)
	if s.heap {
		leaveToken(s.beside)
		return
	}
	shmem.Wake(&s.head.wakeCount)
}
