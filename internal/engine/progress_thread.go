package engine

// Background progress. The progress thread completes large transfers while the
// application computes. It sleeps in the device and wakes up for what needs an
// answer or this rank's processor: an RTS, a CTS, a copy that only this rank can
// continue. It becomes the driver in the sense of wait.go, so exactly one goroutine
// polls:
//
//	Isend, Irecv of a large message → unlockStarted: the thread becomes the driver
//	a blocking call                 → takeOver: the caller drives, the thread sleeps
//	the end of that call            → resumeThread, if a large operation is still pending
//
// Short messages gain nothing: the device delivers them to the receiver's memory
// anyway. Without large operations the thread is inactive; calls find no driver and
// run as they do without a progress thread.
//
// The thread borrows the lock (lock.go), so the application's goroutine stays the
// lock's owner. It copies large messages in pieces and lets other goroutines have the
// lock between two pieces.

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

// progressThread is the state of a rank's progress thread.
type progressThread struct {
	waiter p2p.Waiter // Engine.driver points here while the thread is active
	large  []Op       // pending large operations, and some that have completed
	stats  ProgressStats

	active   atomic.Bool // mirrors Engine.threadDrives, readable without the lock
	notified atomic.Bool // the application has started a large operation
	stop     atomic.Bool
	wake     chan struct{} // wakes the inactive thread on devices without solicited events
	done     chan struct{} // closed when the thread exits
	failures int           // rounds without progress in a row
	// windows is the number of open windows; peers may send requests to them at any
	// time (onesided.go).
	windows int
}

// ProgressStats counts what a progress thread did.
type ProgressStats struct {
	Duties uint64 // times the thread became the driver
	Wakes  uint64 // times the thread polled
	Served uint64 // completions and messages the thread handled
}

// startThread starts the progress thread.
func (e *Engine) startThread() {
	d := &progressThread{wake: make(chan struct{}, 1), done: make(chan struct{})}
	e.thread = d
	go e.runThread()
}

// stopThread stops the progress thread, if any, and waits until it has left the
// device.
func (e *Engine) stopThread() {
	d := e.thread
	if d == nil {
		return
	}
	e.lock()
	e.takeOver()
	d.stop.Store(true)
	e.unlock()
	e.wakeThread()
	<-d.done
}

// threadDrives reports whether the progress thread is the driver.
func (e *Engine) threadDrives() bool { return e.thread != nil && e.driver == &e.thread.waiter }

// undriven reports whether no caller drives.
func (e *Engine) undriven() bool { return e.driver == nil || e.threadDrives() }

// unlockStarted ends a call that has started an operation. It unlocks before it wakes
// the progress thread, which otherwise would find the lock taken and wait until the
// end of the caller's time slice.
func (e *Engine) unlockStarted(x *p2p.Xfer) {
	if len(e.connecting) > 0 {
		e.openAll()
	}
	wake := e.thread != nil && e.trackLarge(x)
	e.unlock()
	if wake {
		e.thread.notified.Store(true)
		e.wakeThread()
	}
}

// trackLarge activates the progress thread for a large operation, and reports whether
// the thread must be woken.
func (e *Engine) trackLarge(x *p2p.Xfer) bool {
	if !e.cfg.Async || x.Done() || len(x.Buf) <= irecvPolls || x.Link != nil && !x.Link.Rendezvous(len(x.Buf)) {
		return false
	}
	d := e.thread
	if len(d.large) == cap(d.large) {
		d.large = slices.DeleteFunc(d.large, Op.ended)
		if len(d.large) > cap(d.large)/2 {
			d.large = slices.Grow(d.large, 2*len(d.large))
		}
	}
	d.large = append(d.large, Op{x, x.Handle()})
	return e.activateThread()
}

// ended reports whether an operation has completed. Its Xfer may be in use for another
// operation by now.
func (o Op) ended() bool { return o.stale() || o.x.Done() }

// pending reports whether a large operation is under way or a window is open. It checks
// the newest operation first, which is the most likely to be pending.
func (d *progressThread) pending() bool {
	if d.windows > 0 {
		return true
	}
	for n := len(d.large); n > 0; n-- {
		if !d.large[n-1].ended() {
			d.large = d.large[:n]
			return true
		}
	}
	d.large = d.large[:0]
	return false
}

// resumeThread ends a wait: the progress thread becomes the driver again if a large
// operation is pending.
func (e *Engine) resumeThread() {
	if e.thread != nil && e.activateThread() {
		e.wakeThread()
	}
}

// activateThread makes the progress thread the driver if there is none and a large
// operation is pending. The device wakes the thread for later events; wake reports
// whether the caller must wake it for something that is already there.
func (e *Engine) activateThread() (wake bool) {
	d := e.thread
	if !e.undriven() || e.sleepers != nil || d.stop.Load() {
		return false
	}
	if !d.pending() {
		e.takeOver()
		return false
	}
	if !e.threadDrives() {
		e.driver, e.driven = &d.waiter, true
		d.active.Store(true)
		d.stats.Duties++
		if e.watcher != nil {
			e.watcher.Progress(true)
		}
	}
	h := &e.home
	return !h.solicits() || len(e.lanes) > 1 || len(e.blocked) > 0 || h.notify.Arm(h.event, parkIdle) <= 0
}

// takeOver makes room for the caller to drive in place of the progress thread.
func (e *Engine) takeOver() {
	if e.threadDrives() {
		e.deactivateThread()
	}
}

// deactivateThread ends the progress thread's time as the driver.
func (e *Engine) deactivateThread() {
	e.driver, e.driven = nil, false
	e.thread.active.Store(false)
	if e.watcher != nil {
		e.watcher.Progress(false)
	}
	if n := e.home.notify; n != nil {
		n.Disarm()
	}
}

// wakeThread wakes the progress thread, both in the device and on its channel.
func (e *Engine) wakeThread() {
	e.home.cq.Wake()
	select {
	case e.thread.wake <- struct{}{}:
	default:
	}
}

// runThread is the body of the progress thread. It keeps an OS thread of its own,
// because such a thread wakes up within microseconds while another thread of the
// process computes.
func (e *Engine) runThread() {
	d := e.thread
	defer close(d.done)
	if !e.cfg.InProcess {
		runtime.LockOSThread() // never unlocked: the thread exits with the goroutine
		shortSlice()
	}
	for !d.stop.Load() {
		switch {
		case d.notified.Swap(false):
			e.nap(notifiedNap)
		case !d.active.Load():
			d.failures = 0
			e.waitInactive()
		case e.mu.borrow():
			e.setBeside(true)
			timeout := e.driveThread()
			e.setBeside(false)
			e.mu.giveBack()
			e.waitActive(timeout)
		default:
			e.waitActive(0) // the application has the lock: for a short call, or to take over
		}
	}
}

// solicits reports whether only solicited events wake the progress thread.
func (d *lane) solicits() bool { return d.notify != nil && d.event == rdma.NotifySolicited }

// setBeside marks the following polls of home as those of the progress thread.
func (e *Engine) setBeside(on bool) {
	if e.home.solicits() {
		e.home.notify.Beside(on)
	}
}

// inactiveWait bounds the sleep of an inactive progress thread, which wakeThread ends.
const inactiveWait = time.Hour

// waitInactive sleeps until wakeThread is called.
func (e *Engine) waitInactive() {
	d := e.thread
	if e.home.solicits() {
		_ = e.home.notify.WaitArmed(inactiveWait)
		return
	}
	<-d.wake
}

// waitActive sleeps in the device, or pauses briefly if timeout is 0.
func (e *Engine) waitActive(timeout time.Duration) {
	d := e.thread
	if timeout > 0 {
		d.failures = 0
		if n := e.home.notify; n != nil {
			_ = n.WaitArmed(timeout)
		} else {
			time.Sleep(min(timeout, unwatchedPark))
		}
		return
	}
	d.failures++
	e.nap(min(shortNap<<min(d.failures/8, 4), longNap))
}

// nap pauses the progress thread. It does not use sched_yield: a thread that yields
// lets all others finish their time slices, which takes milliseconds.
func (e *Engine) nap(d time.Duration) {
	if e.cfg.InProcess {
		runtime.Gosched()
		time.Sleep(d)
		return
	}
	napThread(d)
}

const (
	// idleRounds is the number of polls without completions after which the clock
	// decides whether data is moving: a piece of a copy produces no completion.
	idleRounds = 32
	// roundFloor is the least time of a poll that transfers a piece.
	roundFloor = time.Microsecond
	// notifiedNap is how long the thread waits after it was notified. Programs often
	// start several operations in a row, the next call may wait, and both threads may
	// share a core.
	notifiedNap = 30 * time.Microsecond
	// shortNap and longNap bound the pause of a thread that finds the lock taken, or
	// can neither make progress nor sleep.
	shortNap = 5 * time.Microsecond
	longNap  = 50 * time.Microsecond
)

// driveThread polls until nothing is left to do. It returns how long the thread may
// sleep, or 0 if another goroutine wants the lock or no data moves. The lock is
// borrowed.
func (e *Engine) driveThread() time.Duration {
	d := e.thread
	d.stats.Wakes++
	start, armed := e.clock(), false
	s := strategy{spin: idleRounds} // and then a nap or a sleep
	for e.threadDrives() {
		n := e.poll()
		d.stats.Served += uint64(n)
		if n > 0 {
			d.failures = 0
			start = e.clock()
		}
		if !d.pending() {
			e.deactivateThread()
			break
		}
		// The next poll returns the buffers of this poll's completions to the peers,
		// so poll once more before the thread sleeps.
		timeout := time.Duration(0)
		if n == 0 {
			timeout = e.armThread()
		}
		if timeout > 0 && armed {
			e.checkDeaths()
			return timeout
		}
		armed = timeout > 0
		switch s.next(n > 0, e.mu.wanted.Load() != 0) {
		case stepUnlock:
			return 0
		case stepPark:
			if e.clock()-start < idleRounds*roundFloor {
				return 0
			}
			s.moved()
			d.failures = 0
			start = e.clock()
		}
	}
	return 0
}

// armThread arms the devices to wake the progress thread. It returns how long the
// thread may sleep, or 0 if there is work already.
func (e *Engine) armThread() time.Duration {
	if h := &e.home; h.notify != nil && h.notify.Arm(h.event, parkIdle) <= 0 {
		return 0
	}
	timeout := parkIdle
	if len(e.blocked) > 0 {
		timeout = parkBlocked
	}
	if len(e.lanes) > 1 {
		timeout = e.armLanes(timeout)
	}
	return timeout
}

// ProgressStats returns the counters of the progress thread, zero without one.
func (e *Engine) ProgressStats() (s ProgressStats) {
	e.lock()
	defer e.unlock()
	if e.thread != nil {
		s = e.thread.stats
	}
	return s
}
