package dgram

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/pacing"
)

// Background progress: a goroutine services the socket while the application computes.
// The device acts as its own adapter: peers write to its memory and read from it, and
// lost datagrams are retransmitted, whether or not the application polls.
//
// The goroutine sleeps on the socket and on the device's timers. While the application
// polls or waits, it makes progress itself, with less latency than waking a goroutine.
// So the goroutine only checks now and then whether the application keeps calling
// (pacing.Pace), and goes to the socket only when it does not. While the application
// sleeps in Wait, the goroutine sleeps too.

const (
	// bufferWait is how long to wait for free receive slots when the application holds
	// all of them.
	bufferWait = time.Millisecond
	// callCheckInterval is the time between two reads of the call counter.
	callCheckInterval = 20 * time.Microsecond
)

type progressThread struct {
	disabled bool // Config.NoThread
	started  bool
	ended    chan struct{} // closed when the goroutine has returned
	wakeup   wakeup
	thread   pacing.Thread
	pace     pacing.Pace
	waits    bool // the application waited while it seemed to be away
	asleep   bool // the goroutine sleeps and will not notice new calls
	// The goroutine reads these without the lock. A polling application holds the lock
	// most of the time, and a contended unlock is expensive.
	calls   atomic.Uint32 // calls by the application so far that may have started a timer
	stopped atomic.Bool
}

// startProgress starts the goroutine, with the first queue pair. The device's lock is
// held.
func (d *Device) startProgress() error {
	a := &d.progressThread
	if a.started || a.disabled {
		return nil
	}
	if err := a.wakeup.open(); err != nil {
		return fmt.Errorf("dgram: open the wake-up descriptors of the device: %w", err)
	}
	a.started, a.ended = true, make(chan struct{})
	go d.progressLoop()
	return nil
}

// called records a call by the application. If the goroutine sleeps, called wakes it,
// because the call may start a timer. That costs one system call after a pause, and
// nothing while the application keeps calling.
func (d *Device) called() {
	a := &d.progressThread
	a.calls.Store(a.calls.Load() + 1)
	if a.asleep {
		a.asleep = false
		a.wakeup.signal()
	}
}

// progressLoop is the goroutine. It returns when the device is closed.
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
		case seen != before: // the application keeps calling
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

// progressOnce sleeps until there is work and does it. It returns false if the
// application is back or the device is closed.
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
			_ = a.wakeup.wait(nil, never) // fails only by a signal
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
	if len(d.batch) == 0 { // until the application returns buffers
		d.mu.Unlock()
		a.thread.Pause(bufferWait)
		d.mu.Lock()
	}
	return true
}

// programBack reports whether background progress must end: the application is back or
// the device is closed.
func (d *Device) programBack(seen uint32) bool {
	return d.closed || d.progressThread.calls.Load() != seen
}

// until returns the time from now to at.
func until(at, now time.Duration) time.Duration {
	if at == never {
		return never
	}
	return at - now
}

// stop ends the goroutine of a closed device and waits for it.
func (a *progressThread) stop() {
	a.stopped.Store(true)
	if a.started {
		a.wakeup.signal()
		<-a.ended
	}
}
