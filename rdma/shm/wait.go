package shm

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Sleeping and waking.
//
// A receiver that finds nothing says so in the sleeper word of its segment, looks
// once more, and parks: on a futex, or in heap mode on a channel. A sender
// publishes its message, then looks at the sleeper word, and wakes.
//
// Why no wake-up is lost. Let R be the receiver's store of asleepWord and its
// later look at the queues, S the sender's store of the message and its later
// look at the sleeper word. If both looks miss the other's store, the message
// lies there and nobody wakes. Each side's store must therefore come before its
// look in an order that both agree on. Hardware lets a look overtake an earlier
// store, so each side needs a barrier in between:
//
//   - The receiver's store is an XCHG, and between store and look it calls
//     membarrier(GLOBAL_EXPEDITED), which runs a full barrier on every core that
//     at that moment runs a thread of a process registered for it; threads that
//     do not run pass a barrier when they are next scheduled. A sender that is
//     registered thus has a barrier somewhere. Is it before its store of the
//     message or after its look, then the store or look in question comes after
//     the receiver's store, and the look sees it. Is it between the two, it is
//     the barrier that S needs. Is it after the store of the message in any case,
//     the receiver's look, which comes after all barriers, sees the message.
//   - A sender that is not registered (yet), or whose receiver has no membarrier,
//     publishes by an XCHG, which is its own barrier. So does heap mode, where
//     the XCHG is also what Go's memory model asks for.
//
// So the sender pays nothing while the receiver is awake, and the one who goes to
// sleep, who has time, pays for both. Work that peers signal in other ways (the
// counters of a cooperative copy) uses atomic additions, which are barriers.

// Values of the sleeper word.
const (
	awakeWord  = 0
	asleepWord = 1
	closedWord = 2
	armedWord  = 3 // somebody waits beside the owner, see beside.go
)

// starvedPark bounds a Wait after PostSend found no room. Receivers announce room in
// rings (announceRoom), but only to senders that they know, and the shared queue has
// no place for the names of those who wait.
const starvedPark = 100 * time.Microsecond

// wakeup is the receiver's side of parking.
type wakeup struct {
	token      atomic.Uint32 // Wake was called
	membarrier bool          // the kernel has it
	park       heapPark
	mu         sync.Mutex // keeps the segment mapped while Wake uses it
	beside     beside
}

// wait parks until there may be something to do.
func (d *Device) wait(timeout time.Duration) error {
	if d.closed {
		return rdma.ErrClosed
	}
	w := &d.wakeup
	// The look before the announcement spares a rank that has work left the barrier,
	// and its peers the wake-up.
	if w.token.Swap(0) != 0 || timeout <= 0 || d.pending() {
		return nil
	}
	sleeper := &d.seg.head.sleeper
	sleeper.Store(asleepWord)
	if w.membarrier {
		membarrier()
	}
	if w.token.Load() == 0 && !d.pending() {
		if d.starved.Swap(false) {
			timeout = min(timeout, starvedPark)
		}
		if d.seg.heap {
			w.park.on(d.seg.wake, timeout)
		} else {
			parkFutex(sleeper, asleepWord, timeout)
		}
	}
	sleeper.Store(awakeWord)
	// A Wake that came meanwhile has had its effect: this call returns.
	w.token.Store(0)
	return nil
}

// heapPark is where a goroutine parks in heap mode.
type heapPark struct{ timer *time.Timer }

// on waits on one of the segment's channels. A token left over from a wake-up that
// came too late only makes one later call return early.
func (h *heapPark) on(wake chan struct{}, timeout time.Duration) {
	if h.timer == nil {
		h.timer = time.NewTimer(timeout)
	} else {
		h.timer.Reset(timeout)
	}
	select {
	case <-wake:
		h.timer.Stop()
	case <-h.timer.C:
	}
}

// wake ends the wait that is under way, or the next one.
func (w *wakeup) wake(d *Device) {
	w.mu.Lock()
	w.token.Store(1)
	d.seg.unpark()
	if w.beside.used.Load() {
		d.seg.wakeBeside()
	}
	w.mu.Unlock()
}

// closing puts an empty segment in the place of the one that is about to be
// unmapped, so that a late Wake or Poll does no harm.
func (w *wakeup) closing(d *Device) {
	w.mu.Lock()
	d.seg = newHeapSegment(geometry{cells: 1, ringCells: 1, ringBytes: 1})
	d.queue = newQueueReader(d.seg)
	w.mu.Unlock()
}

// rouse wakes a peer that has said that it sleeps, or notes that it has closed. One
// that has only left somebody beside it is left alone, unless the message is urgent.
func (d *Device) rouse(p *peer, urgent bool) {
	switch p.seg.head.sleeper.Load() {
	case closedWord:
		p.gone = true
	case asleepWord:
		p.seg.unpark()
	case armedWord:
		if urgent {
			p.seg.summon()
		}
	}
}

func (s *segment) unpark() {
	if !s.head.sleeper.CompareAndSwap(asleepWord, awakeWord) {
		return
	}
	if s.heap {
		leaveToken(s.wake)
		return
	}
	wakeFutex(&s.head.sleeper)
}

func leaveToken(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
