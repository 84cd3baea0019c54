package shm

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/shmem"
	"github.com/muster-mpi/muster/rdma"
)

// Sleeping and waking.
//
// A receiver that finds nothing sets the sleeper word of its segment, checks once more,
// and sleeps: on a futex, or in heap mode on a channel. A sender publishes its message,
// then reads the sleeper word, and wakes the receiver.
//
// Why no wake-up is lost. Let R be the receiver's store of asleepWord and its later check of
// the queues, S the sender's store of the message and its later load of the sleeper word. If
// both loads miss the other's store, the message is not noticed. Each side's store must
// therefore precede its load in an order that both agree on. Hardware lets a load overtake
// an earlier store, so each side needs a barrier in between:
//
//   - The receiver's store is an XCHG, and between store and check it calls
//     membarrier(GLOBAL_EXPEDITED), which executes a full barrier on every core that
//     currently runs a thread of a registered process; other threads pass a barrier when
//     they are next scheduled. A registered sender thus executes a barrier somewhere. If it
//     is before its store of the message or after its load, then that store or load comes
//     after the receiver's store, and the load sees it. If it is between the two, it is the
//     barrier that S needs. If it is after the store of the message in any case, the
//     receiver's check, which comes after all barriers, sees the message.
//   - A sender that is not registered (yet), or whose receiver has no membarrier, publishes
//     by an XCHG, which is its own barrier. So does heap mode, where the XCHG is also what
//     Go's memory model requires.
//
// So the sender pays nothing while the receiver is awake, and the receiver, which has time
// when it goes to sleep, pays for both. Work that peers signal in other ways (the counters
// of a cooperative copy) uses atomic additions, which are barriers.

// Values of the sleeper word.
const (
	awakeWord  = 0
	asleepWord = 1
	closedWord = 2
	armedWord  = 3 // a goroutine waits beside the owner, see beside.go
)

// starvedPark bounds a Wait after PostSend found no room. Receivers announce room in rings
// (announceRoom), but only to senders that they have resolved, and the shared queue cannot
// record its waiters.
const starvedPark = 100 * time.Microsecond

// wakeup is the receiver's side of sleeping.
type wakeup struct {
	token      atomic.Uint32 // Wake was called
	membarrier bool          // the kernel supports it
	park       heapPark
	mu         sync.Mutex // keeps the segment mapped while Wake uses it
	beside     beside
}

// wait sleeps until there may be something to do.
func (d *Device) wait(timeout time.Duration) error {
	if d.closed {
		return rdma.ErrClosed
	}
	w := &d.wakeup
	// The check before the announcement saves the barrier for a rank that has work left,
	// and the wake-up for its peers.
	if w.token.Swap(0) != 0 || timeout <= 0 || d.pending() {
		return nil
	}
	sleeper := &d.seg.head.sleeper
	sleeper.Store(asleepWord)
	if w.membarrier {
		shmem.GlobalBarrier()
	}
	if w.token.Load() == 0 && !d.pending() {
		if d.starved.Swap(false) {
			timeout = min(timeout, starvedPark)
		}
		if d.seg.heap {
			w.park.wait(d.seg.wake, timeout)
		} else {
			shmem.Sleep(sleeper, asleepWord, timeout)
		}
	}
	sleeper.Store(awakeWord)
	// A Wake that came meanwhile has had its effect: this call returns.
	w.token.Store(0)
	return nil
}

// fencing is whether senders of this process may publish without a fence, because the
// membarrier of peers covers them. That is decided some milliseconds after Open.
type fencing struct {
	unneeded atomic.Bool
	decided  chan struct{} // closed when that is decided; nil in heap mode
	decideBy time.Time     // how long to wait for it
}

// await waits until it is decided whether messages need fences, or decideBy.
func (f *fencing) await() {
	if f.decided == nil {
		return
	}
	select {
	case <-f.decided:
	case <-time.After(time.Until(f.decideBy)):
	}
}

// heapPark is the sleep of a goroutine in heap mode.
type heapPark struct{ timer *time.Timer }

// wait waits on one of the segment's channels. A token left over from a late wake-up only
// makes one later call return early.
func (h *heapPark) wait(wake chan struct{}, timeout time.Duration) {
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

// wake ends the current wait, or the next one.
func (w *wakeup) wake(d *Device) {
	w.mu.Lock()
	w.token.Store(1)
	d.seg.unpark()
	if w.beside.used.Load() {
		d.seg.wakeBeside()
	}
	w.mu.Unlock()
}

// closing replaces the segment that is about to be unmapped by an empty one, so that a
// late Wake or Poll is harmless.
func (w *wakeup) closing(d *Device) {
	w.mu.Lock()
	d.seg = newHeapSegment(geometry{cells: 1, ringCells: 1, ringBytes: 1})
	d.inbox.queue = newQueueReader(d.seg)
	w.mu.Unlock()
}

// wakePeer wakes a peer that sleeps, or notes that it has closed. A peer that is only armed
// for solicited events is woken only if the message is urgent.
func (d *Device) wakePeer(p *peer, urgent bool) {
	switch p.seg.head.sleeper.Load() {
	case closedWord:
		p.gone = true
	case asleepWord:
		p.seg.unpark()
	case armedWord:
		if urgent {
			p.seg.wakeWaiter()
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
	shmem.Wake(&s.head.sleeper)
}

func leaveToken(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
