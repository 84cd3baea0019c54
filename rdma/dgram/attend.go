package dgram

import (
	"fmt"
	"time"
)

// Who attends to the socket while the program computes. The device is its own adapter:
// peers write into its memory and read from it, and what was lost is sent again, whether
// somebody polls or not.
//
// A goroutine sleeps on the socket and on the timers of the device. While the program
// polls or waits, it does all that itself, faster than any goroutine could be woken, so
// this one stays out of its way: it looks once a millisecond whether the program has
// called since, and only when it has not does it go to the socket. Somebody who sleeps in
// Wait needs no attendant, and it then sleeps too.

// attendPause is how long the program may be away before its socket is attended to.
const attendPause = time.Millisecond

type attendant struct {
	banned  bool // Config.NoThread
	started bool
	ended   chan struct{} // closed when the goroutine is gone
	bell    bell
	asleep  bool // it does not look at calls by itself
	calls   uint // of the program so far that may have begun a timer
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
	a.calls++
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
	seen := ^uint(0)
	for {
		d.mu.Lock()
		switch {
		case d.closed:
			d.mu.Unlock()
			return
		case a.calls != seen:
			seen = a.calls
			d.mu.Unlock()
			time.Sleep(attendPause)
		case d.parked > 0:
			a.asleep = true
			d.mu.Unlock()
			_ = a.bell.wait(nil, never) // it fails only by a signal
		default:
			d.attendOnce(seen)
		}
	}
}

// attendOnce sleeps until there is something to do and does it, unless the program has
// come back meanwhile. It is called with the lock and gives it back.
func (d *Device) attendOnce(seen uint) {
	a := &d.attendant
	if at := d.due(); at > d.clock() {
		a.asleep = true
		d.mu.Unlock()
		_ = a.bell.wait(d.socket, until(at, d.clock())) // it fails only by a signal
		d.mu.Lock()
		a.asleep = false
	}
	if d.closed || a.calls != seen || d.parked > 0 {
		d.mu.Unlock()
		return
	}
	d.lull = 0
	d.progress()
	starved := len(d.batch) == 0
	d.mu.Unlock()
	if starved {
		time.Sleep(attendPause) // until the program gives buffers back
	}
}

// until is the time from now to at.
func until(at, now time.Duration) time.Duration {
	if at == never {
		return never
	}
	return at - now
}

// dismiss ends the goroutine of a device that is closed and waits for it.
func (a *attendant) dismiss() {
	if a.started {
		a.bell.ring()
		<-a.ended
	}
}
