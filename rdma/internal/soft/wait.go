package soft

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting. Two goroutines may wait for a completion queue: the one that polls, in Wait, and
// a second one, in WaitArmed or asleep on File. Both sleep on the source of the device until
// something arrives there, their waker is signaled, or a timer of the device is due.
// Meanwhile the progress thread sleeps, so that the source wakes them.

type waiter int

const (
	poller waiter = iota
	second
	waiters
)

// unwatched is the longest sleep on a File that does not report arrivals.
const unwatched = time.Millisecond

// waits is the state of those who wait for a completion queue.
type waits struct {
	dev    *Device
	of     holder
	wakers [waiters]waker
	queued int           // completions to be polled
	moved  bool          // the progress thread did something since the last Poll
	inside [waiters]int  // goroutines asleep here
	armed  int           // sleeps on File, and those that WaitArmed will make
	limit  time.Duration // of the last of them
	file   file
	closed bool
}

// holder holds the completions of the queue.
type holder interface {
	drop()
	memory() uint64
}

func (w *waits) open(d *Device, of holder) error {
	w.dev, w.of = d, of
	w.file.fd = -1
	for who := range w.wakers {
		if err := w.wakers[who].open(); err != nil {
			w.closeFiles()
			return err
		}
	}
	d.queues = append(d.queues, w)
	return nil
}

// Wait blocks until Poll may have something to do.
func (w *waits) Wait(timeout time.Duration) error {
	w.dev.mu.Lock()
	defer w.dev.mu.Unlock()
	if w.closed {
		return rdma.ErrClosed
	}
	return w.sleep(poller, w.prepare(timeout))
}

// prepare prepares a sleep and returns how long it may last, 0 if Poll has something to do.
func (w *waits) prepare(limit time.Duration) time.Duration {
	if limit <= 0 || w.queued > 0 || w.moved {
		return 0
	}
	return max(w.dev.hooks.Sleep(limit), 0)
}

// sleep sleeps as prepared, without the lock.
func (w *waits) sleep(who waiter, timeout time.Duration) error {
	if timeout <= 0 {
		return nil
	}
	d := w.dev
	w.inside[who]++
	d.waiting++
	d.mu.Unlock()
	err := w.wakers[who].sleep(&d.source, timeout)
	d.mu.Lock()
	if !w.closed {
		w.inside[who]--
		d.waiting--
	}
	d.hooks.Awake()
	d.CountCall()
	if err != nil {
		return fmt.Errorf("%s: wait for a completion queue: %w", d.name, err)
	}
	return nil
}

// Notify is what the queues support: waits for everything, also on a file where the system
// has them. A device whose Poll uses Begin and Take alone adds NotifyBeside.
const Notify = rdma.NotifyAny | notifyFile

// Arm prepares a wait of the second goroutine and returns how long it may last: at most
// limit, and 0 if Poll may have something to do. The arming ends with Disarm, with WaitArmed, or
// with the next Poll if nobody has asked for File.
func (w *waits) Arm(_ rdma.Notify, limit time.Duration) time.Duration {
	d := w.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.closed {
		return 0
	}
	if w.file.fd >= 0 && !w.file.watches {
		limit = min(limit, unwatched)
	}
	limit = w.prepare(limit)
	if limit > 0 && w.file.fd < 0 && d.source.readable() {
		d.hooks.Awake()
		limit = 0
	}
	if limit > 0 {
		w.armed++
		d.waiting++
		w.limit = limit
	} else if w.armed > 0 {
		w.wakers[second].signal() // another goroutine sleeps on File
	}
	return limit
}

// EndArming ends an arming by a goroutine that did not come to WaitArmed. Those who sleep
// on File end it themselves.
func (w *waits) EndArming() {
	for w.armed > 0 && w.file.fd < 0 {
		w.disarm()
	}
}

// Disarm ends an arming.
func (w *waits) Disarm() {
	w.dev.mu.Lock()
	defer w.dev.mu.Unlock()
	if w.armed > 0 {
		w.disarm()
	}
	if w.armed == 0 {
		w.wakers[second].clear()
	}
}

func (w *waits) disarm() {
	w.armed--
	if w.dev.waiting--; w.dev.waiting == 0 {
		w.dev.CountCall() // the progress thread sleeps while somebody waits
	}
	w.dev.hooks.Awake()
}

// WaitArmed blocks until the event that Arm has prepared for. Another goroutine may poll
// meanwhile.
func (w *waits) WaitArmed(timeout time.Duration) error {
	d := w.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case w.closed:
		return rdma.ErrClosed
	case w.armed == 0: // a Poll came in between
		timeout = w.prepare(timeout)
	default:
		w.armed--
		d.waiting--
		if timeout = min(timeout, w.limit); timeout <= 0 {
			d.hooks.Awake()
		}
	}
	return w.sleep(second, timeout)
}

// File returns a descriptor that is readable when Poll may have something to do, or Wake
// was called.
func (w *waits) File() int {
	w.dev.mu.Lock()
	defer w.dev.mu.Unlock()
	if !w.closed {
		w.file.open(&w.wakers[second], &w.dev.source)
	}
	return w.file.fd
}

// Wake ends a wait. It takes only the locks of the wakers.
func (w *waits) Wake() {
	for who := range w.wakers {
		w.wakers[who].signal()
	}
}

// wakeSleepers ends the waits for this queue, if there are any.
func (w *waits) wakeSleepers() {
	if w.inside[poller] > 0 {
		w.wakers[poller].signal()
	}
	if w.inside[second] > 0 || w.armed > 0 {
		w.wakers[second].signal()
	}
}

// Close closes the queue and gives back what it lent.
func (w *waits) Close() error {
	w.dev.mu.Lock()
	defer w.dev.mu.Unlock()
	w.endLocked()
	return nil
}

func (w *waits) endLocked() {
	if w.closed {
		return
	}
	for w.armed > 0 {
		w.disarm()
	}
	w.closed = true
	w.dev.waiting -= w.inside[poller] + w.inside[second]
	w.dev.forget(w)
	w.closeFiles()
	w.of.drop()
	w.queued = 0
}

func (w *waits) closeFiles() {
	for who := range w.wakers {
		w.wakers[who].close()
	}
	w.file.close()
}

func (w *waits) owner() *Device { return w.dev }
