//go:build linux

package iwarp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Who attends to the sockets while the program computes. The device is its own
// adapter: peers write into its memory and read from it whether somebody polls or not.
//
// A goroutine sleeps on all sockets of the device. While the program polls or waits, it
// does that itself, faster than any goroutine could be woken, so this one stays out of
// its way: it looks once a millisecond whether the program has polled since, and only
// when it has not does it sleep on the sockets and move what comes. A program that
// never polls finds it there always; one that does nothing at all costs nothing.

// attendPause is how long the program may be away before its sockets are attended to.
const attendPause = time.Millisecond

type attendant struct {
	started bool
	ended   chan struct{} // closed when the goroutine has let go of what it had
	epoll   int
	wake    int  // an event that ends the sleep
	polls   uint // calls of Poll and Wait so far
}

// attend starts the goroutine, with the first connection. The device's lock is held.
func (d *device) attend() error {
	a := &d.attendant
	if a.started || d.cfg.NoThread {
		return nil
	}
	var err error
	if a.epoll, a.wake, err = newSleep(); err != nil {
		return fmt.Errorf("iwarp: make what the device sleeps on: %w", err)
	}
	a.started, a.ended = true, make(chan struct{})
	go d.attendSockets()
	return nil
}

// attendSockets is the goroutine. It ends when the device is closed.
func (d *device) attendSockets() {
	defer close(d.attendant.ended)
	var ready [16]unix.EpollEvent
	seen := ^uint(0)
	for {
		d.mu.Lock()
		a := &d.attendant
		present := a.polls != seen
		seen = a.polls
		if d.closed {
			_, _ = unix.Close(a.epoll), unix.Close(a.wake)
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		if present {
			time.Sleep(attendPause)
			continue
		}
		n, _ := unix.EpollWait(a.epoll, ready[:], -1) // it fails only by a signal
		if !d.moveFor(ready[:max(n, 0)], seen) {
			time.Sleep(attendPause)
		}
	}
}

// moveFor moves the sockets that have something, unless the program does it, or sleeps
// on them. It is false in that case.
func (d *device) moveFor(ready []unix.EpollEvent, seen uint) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.attendant.polls != seen {
		return false
	}
	alone := true
	for i := range ready {
		q := d.socketOf(&ready[i])
		switch {
		case q == nil:
		case q.sendCQ.sleep.sleepers+q.recvCQ.sleep.sleepers > 0:
			alone = false
		default:
			q.progress()
			q.sendCQ.moved, q.recvCQ.moved = true, true
		}
	}
	return alone
}
