package dgram

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/prompt"
)

// Who attends to the socket while the program computes. The device is its own adapter:
// peers write into its memory and read from it, and what was lost is sent again, whether
// somebody polls or not.
//
// A goroutine sleeps on the socket and on the timers of the device. While the program
// polls or waits, it does all that itself, faster than any goroutine could be woken, so
// this one stays out of its way: it looks now and then whether the program keeps
// calling (prompt.Pace), and only when it does not does it go to the socket. Somebody who sleeps in
// Wait needs no attendant, and it then sleeps too.

const (
	// givePause is how long the program may keep all buffers before they are asked for.
	givePause = time.Millisecond
	// attendLook is between two looks at whether it polls.
	attendLook = 20 * time.Microsecond
)

type attendant struct {
	banned  bool // Config.NoThread
	started bool
	ended   chan struct{} // closed when the goroutine is gone
	bell    bell
	thread  prompt.Thread
	pace    prompt.Pace
	waits   bool // the program waited while it was thought to be away
	asleep  bool // it does not look at calls by itself
	// The goroutine looks at these without the lock: who polls has it most of the time,
	// and one who waits for a lock makes giving it back dear.
	calls     atomic.Uint32 // of the program so far that may have begun a timer
	dismissed atomic.Bool
}

// attend starts the goroutine, with the first queue pair. The device's lock is held.
func (d *Device) attend() error {
	a := &d.attendant
	if a.started || a.banned {
		return nil
	}
	if err := a.bell.open(); err != nil {
		return fmt.Errorf("dgram: make what the device sleeps on: %w", err)
	}
	a.started, a.ended = true, make(chan struct{})
	go d.attendSocket()
	return nil
}

// called notes that the program is present. The attendant, if it sleeps, must look when
// the next timer is due: what the program does now may begin one. That costs a system call
// after a pause and nothing while the program keeps calling.
func (d *Device) called() {
	a := &d.attendant
	a.calls.Store(a.calls.Load() + 1)
	if a.asleep {
		a.asleep = false
		a.bell.ring()
	}
}

// attendSocket is the goroutine. It ends when the device is closed.
func (d *Device) attendSocket() {
	a := &d.attendant
	defer close(a.ended)
	defer a.bell.close()
	for {
		before := a.calls.Load()
		a.thread.Pause(attendLook)
		seen := a.calls.Load()
		switch {
		case a.dismissed.Load():
			return
		case seen != before: // it keeps calling
			a.thread.Pause(a.pace.Pause())
		default:
			a.waits = false
			a.pace.Away(time.Now())
			a.thread.Enter()
			for d.attendOnce(seen) {
			}
			a.thread.Leave()
			if a.pace.Back(time.Now(), a.waits) {
				a.thread.Pause(a.pace.Pause())
			}
		}
	}
}

// attendOnce sleeps until there is something to do and does it. It is false if the
// program has come back, or the device is closed.
func (d *Device) attendOnce(seen uint32) (away bool) {
	a := &d.attendant
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone(seen) {
		return false
	}
	if at := d.due(); d.parked > 0 || at > d.clock() {
		a.asleep = true
		if d.parked > 0 {
			a.waits = true
			d.mu.Unlock()
			_ = a.bell.wait(nil, never) // it fails only by a signal
		} else {
			d.mu.Unlock()
			_ = a.bell.wait(d.socket, until(at, d.clock())) // the same
		}
		d.mu.Lock()
		a.asleep = false
	}
	if d.gone(seen) || d.parked > 0 {
		return false
	}
	d.lull = 0
	d.progress()
	if len(d.batch) == 0 { // until the program gives buffers back
		d.mu.Unlock()
		a.thread.Pause(givePause)
		d.mu.Lock()
	}
	return true
}

// gone reports whether there is no need to attend: the program is back, or the device closed.
func (d *Device) gone(seen uint32) bool { return d.closed || d.attendant.calls.Load() != seen }

// until is the time from now to at.
func until(at, now time.Duration) time.Duration {
	if at == never {
		return never
	}
	return at - now
}

// dismiss ends the goroutine of a device that is closed and waits for it.
func (a *attendant) dismiss() {
	a.dismissed.Store(true)
	if a.started {
		a.bell.ring()
		<-a.ended
	}
}
