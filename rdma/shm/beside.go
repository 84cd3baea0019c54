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

var _ rdma.SolicitedCQ = (*completionQueue)(nil)

// beside is the side of the one who waits.
type beside struct {
	used     atomic.Bool // there is one
	answered uint32      // the value of rung when its last wait ended
	park     heapPark
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
	if len(t.owed) != 0 {
		return true
	}
	for _, x := range t.active {
		if x.op != rdma.OpPush && x.ready(d) {
			return true
		}
	}
	return false
}

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
	if v := rung.Load(); v == b.answered && timeout > 0 {
		if d.seg.heap {
			b.park.on(d.seg.beside, timeout)
		} else {
			parkFutex(rung, v, timeout)
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
