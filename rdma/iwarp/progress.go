//go:build linux

package iwarp

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma/internal/pacing"
)

// Who attends to the sockets while the program computes. The device is its own
// adapter: peers write into its memory and read from it whether somebody polls or not.
//
// A goroutine sleeps on all sockets of the device. While the program polls or waits, it
// does that itself, faster than any goroutine could be woken, so this one stays out of
// its way: now and then it looks twice, and only if the program has not polled in between
// does it sleep on the sockets and move what comes. A program that never polls finds it
// there always; one that does nothing at all costs nothing.

const (
	// progressCheck is how long a program does not poll that has gone to compute.
	progressCheck = 20 * time.Microsecond
)

type progressThread struct {
	started bool
	ended   chan struct{} // closed when the goroutine has let go of what it had
	thread  pacing.Thread
	pace    pacing.Pace
	epoll   int
	wake    int // an event that ends the sleep
	// The goroutine looks at these without the lock: who polls has it most of the time,
	// and one who waits for a lock makes giving it back dear.
	polls   atomic.Uint32 // calls of Poll and Wait so far
	stopped atomic.Bool
}

// notePoll notes that the program polls. The device's lock is held.
func (a *progressThread) notePoll() { a.polls.Store(a.polls.Load() + 1) }

// startProgress starts the goroutine, with the first connection. The device's lock is held.
func (d *device) startProgress() error {
	a := &d.progressThread
	if a.started || d.cfg.NoThread {
		return nil
	}
	var err error
	if a.epoll, a.wake, err = newSleep(); err != nil {
		return fmt.Errorf("iwarp: make what the device sleeps on: %w", err)
	}
	a.started, a.ended = true, make(chan struct{})
	go d.runProgress()
	return nil
}

// runProgress is the goroutine. It ends when the device is closed.
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
				n, _ = unix.EpollWait(a.epoll, ready[:], -1) // it fails only by a signal
			}
		}
		a.thread.Leave()
		// Who has polled meanwhile may have gone again already; who sleeps on the socket
		// that woke us will move it.
		if a.pace.Back(time.Now(), a.polls.Load() == seen) {
			a.thread.Pause(a.pace.Pause())
		}
	}
}

// moveFor moves the sockets that have something, unless the program does it, or sleeps
// on them: then it is not away. There may be more of which the sockets do not tell.
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
	if d.cfg.Encrypt { // TLS may have what the socket does not tell of
		for _, q := range d.queues {
			if q.in.unread && q.runnable() {
				move(q)
			}
		}
	}
	return away, more
}
