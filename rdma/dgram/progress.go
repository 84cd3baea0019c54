package dgram

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/pacing"
)

// Who attends to the socket while the program computes. The device is its own adapter:
// peers write into its memory and read from it, and what was lost is sent again, whether
// somebody polls or not.
//
// A goroutine sleeps on the socket and on the timers of the device. While the program
// polls or waits, it does all that itself, faster than any goroutine could be woken, so
// this one stays out of its way: it looks now and then whether the program keeps
// calling (pacing.Pace), and only when it does not does it go to the socket. Somebody who sleeps in
// Wait needs no progress thread, and it then sleeps too.

const (
	// bufferWait is how long the program may keep all buffers before they are asked for.
	bufferWait = time.Millisecond
	// callCheckInterval is between two looks at whether it polls.
	callCheckInterval = 20 * time.Microsecond
)

type progressThread struct {
	disabled bool // Config.NoThread
	started  bool
	ended    chan struct{} // closed when the goroutine is gone
	wakeup   wakeup
	thread   pacing.Thread
	pace     pacing.Pace
	waits    bool // the program waited while it was thought to be away
	asleep   bool // it does not look at calls by itself
	// The goroutine looks at these without the lock: who polls has it most of the time,
	// and one who waits for a lock makes giving it back dear.
	calls   atomic.Uint32 // of the program so far that may have begun a timer
	stopped atomic.Bool
}

// attend starts the goroutine, with the first queue pair. The device's lock is held.
func (d *Device) startProgress() error {
	a := &d.progressThread
	if a.started || a.disabled {
		return nil
	}
	if err := a.wakeup.open(); err != nil {
		return fmt.Errorf("dgram: make what the device sleeps on: %w", err)
	}
	a.started, a.ended = true, make(chan struct{})
	go d.progressLoop()
	return nil
}

// called notes that the program is present. The progress thread, if it sleeps, must look when
// the next timer is due: what the program does now may begin one. That costs a system call
// after a pause and nothing while the program keeps calling.
func (d *Device) called() {
	a := &d.progressThread
	a.calls.Store(a.calls.Load() + 1)
	if a.asleep {
		a.asleep = false
		a.wakeup.signal()
	}
}

// progressLoop is the goroutine. It ends when the device is closed.
func (d *Device) progressLoop() {
	a := &d.progressThread
	defer close(a.ended)
	defer a.wakeup.close()
	for {
		before := a.calls.Load()
		a.thread.Pause(callCheckInterval)
		seen := a.calls.Load()
		switch {
		case a.stopped.Load():
			return
		case seen != before: // it keeps calling
			a.thread.Pause(a.pace.Pause())
		default:
			a.waits = false
			a.pace.Away(time.Now())
			a.thread.Enter()
			for d.progressOnce(seen) {
			}
			a.thread.Leave()
			if a.pace.Back(time.Now(), a.waits) {
				a.thread.Pause(a.pace.Pause())
			}
		}
	}
}

// progressOnce sleeps until there is something to do and does it. It is false if the
// program has come back, or the device is closed.
func (d *Device) progressOnce(seen uint32) (away bool) {
	a := &d.progressThread
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.programBack(seen) {
		return false
	}
	if at := d.due(); d.parked > 0 || at > d.clock() {
		a.asleep = true
		if d.parked > 0 {
			a.waits = true
			d.mu.Unlock()
			_ = a.wakeup.wait(nil, never) // it fails only by a signal
		} else {
			d.mu.Unlock()
			_ = a.wakeup.wait(d.socket, until(at, d.clock())) // the same
		}
		d.mu.Lock()
		a.asleep = false
	}
	if d.programBack(seen) || d.parked > 0 {
		return false
	}
	d.idlePolls = 0
	d.progress()
	if len(d.batch) == 0 { // until the program gives buffers back
		d.mu.Unlock()
		a.thread.Pause(bufferWait)
		d.mu.Lock()
	}
	return true
}

// programBack reports whether there is no need to attend: the program is back, or the device closed.
func (d *Device) programBack(seen uint32) bool {
	return d.closed || d.progressThread.calls.Load() != seen
}

// until is the time from now to at.
func until(at, now time.Duration) time.Duration {
	if at == never {
		return never
	}
	return at - now
}

// dismiss ends the goroutine of a device that is closed and waits for it.
func (a *progressThread) stop() {
	a.stopped.Store(true)
	if a.started {
		a.wakeup.signal()
		<-a.ended
	}
}
