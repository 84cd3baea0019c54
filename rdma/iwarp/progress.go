//go:build linux

package iwarp

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma/internal/pacing"
)

// Background progress: services the sockets while the application computes. The device is
// its own adapter: peers write into its memory and read from it whether the application
// polls or not.
//
// A goroutine sleeps on all sockets of the device. While the application polls or waits,
// it drives the sockets itself, faster than any goroutine could be woken, so this
// goroutine stays idle: now and then it compares the number of polls, and only if the
// application has not polled in between does it sleep on the sockets and process what
// arrives. If the application never polls, the goroutine always does; if nothing happens,
// it costs nothing.

const (
	// progressCheck is the time without a poll after which the application is assumed to
	// compute.
	progressCheck = 20 * time.Microsecond
)

type progressThread struct {
	started bool
	ended   chan struct{} // closed when the goroutine has released its resources
	thread  pacing.Thread
	pace    pacing.Pace
	epoll   int
	wake    int // an event that ends the sleep
	// The goroutine reads these without the lock: the polling goroutine holds it most of
	// the time, and a contended unlock is expensive.
	polls   atomic.Uint32 // calls of Poll and Wait so far
	stopped atomic.Bool
}

// notePoll records that the application polls. The device's lock is held.
func (a *progressThread) notePoll() { a.polls.Store(a.polls.Load() + 1) }

// startProgress starts the goroutine with the first connection. The device's lock is held.
func (d *device) startProgress() error {
	a := &d.progressThread
	if a.started || d.cfg.NoThread {
		return nil
	}
	var err error
	if a.epoll, a.wake, err = newSleep(); err != nil {
		return fmt.Errorf("iwarp: create the epoll instance of the device: %w", err)
	}
	a.started, a.ended = true, make(chan struct{})
	go d.runProgress()
	return nil
}

// runProgress is the body of the goroutine. It ends when the device is closed.
func (d *device) runProgress() {
	defer close(d.progressThread.ended)
	a := &d.progressThread
	var ready [16]unix.EpollEvent
	for {
		before := a.polls.Load()
		a.thread.Pause(progressCheck)
		seen := a.polls.Load()
		if a.stopped.Load() {
			_, _ = unix.Close(a.epoll), unix.Close(a.wake)
			return
		}
		away := seen == before
		if !away {
			a.thread.Pause(a.pace.Pause())
			continue
		}
		a.pace.Away(time.Now())
		a.thread.Enter()
		for n := 0; away; {
			for more := true; more && away; {
				away, more = d.moveFor(ready[:max(n, 0)], seen)
			}
			if away {
				n, _ = unix.EpollWait(a.epoll, ready[:], -1) // it fails only when interrupted by a signal
			}
		}
		a.thread.Leave()
		// The application may have polled meanwhile and be computing again; if it sleeps
		// on the socket that woke us, it will drive that socket.
		if a.pace.Back(time.Now(), a.polls.Load() == seen) {
			a.thread.Pause(a.pace.Pause())
		}
	}
}

// moveFor drives the sockets that are ready, unless the application does, or sleeps on
// them: then away is false. more reports data that the sockets do not indicate.
func (d *device) moveFor(ready []unix.EpollEvent, seen uint32) (away, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.progressThread.polls.Load() != seen {
		return false, false
	}
	away = true
	move := func(q *queuePair) {
		if q.sendCQ.sleep.sleepers+q.recvCQ.sleep.sleepers > 0 {
			away = false
			return
		}
		q.progress()
		q.sendCQ.moved, q.recvCQ.moved = true, true
		more = more || q.in.unread && q.runnable()
	}
	for i := range ready {
		if q := d.socketOf(&ready[i]); q != nil {
			move(q)
		}
	}
	if d.cfg.Encrypt { // TLS may hold data that the socket does not indicate
		for _, q := range d.queues {
			if q.in.unread && q.runnable() {
				move(q)
			}
		}
	}
	return away, more
}
