//go:build ofi && cgo && linux

package ofi

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting without spinning. A provider with a wait object has a file descriptor that
// becomes readable when there is something to do; Wait polls it together with our own
// descriptor that Wake writes to. Before that, it asks libfabric whether it is safe to
// sleep: libfabric checks whether anything has arrived since the last Poll, and prepares
// the descriptor.
//
// Without a wait object, Wait sleeps in steps that grow as long as nothing arrives, and a
// second goroutine cannot wait.

// lookAgain bounds a sleep while the provider refuses work: the descriptor may not
// indicate what it waits for.
const lookAgain = 5 * time.Millisecond

// longestSleep bounds every sleep. A provider that misses a wake-up, or that waits for a
// peer that waits for us, then costs a moment and not the job; ten checks a second cost
// nothing.
const longestSleep = 100 * time.Millisecond

func (c *completionQueue) Wait(timeout time.Duration) error {
	if c.closed {
		return rdma.ErrClosed
	}
	switch state := c.q.ready(); {
	case state == ready:
		return nil
	case c.q.fd < 0:
		timeout = min(timeout, c.step.next())
	case state == soon:
		timeout = min(timeout, lookAgain)
	}
	return c.waker.sleep(c.q.fd, timeout)
}

// Arm asks whether it is safe to sleep.
func (c *completionQueue) Arm(_ rdma.Notify, limit time.Duration) time.Duration {
	if c.closed || c.q.ready() != idle {
		return 0
	}
	return limit
}

// Disarm has no effect: libfabric needs no end of a sleep.
func (c *completionQueue) Disarm() {}

// File returns -1: the provider's descriptor does not report Wake.
func (c *completionQueue) File() int { return -1 }

// SetBeside has no effect.
func (c *completionQueue) SetBeside(bool) {}

func (c *completionQueue) WaitArmed(timeout time.Duration) error {
	if c.closed {
		return rdma.ErrClosed
	}
	return c.waker.sleep(c.q.fd, timeout)
}

func (c *completionQueue) Wake() { c.waker.wake() }

// stepper is the length of the next sleep where nothing indicates when to wake up.
type stepper struct{ last time.Duration }

const (
	shortestStep = 50 * time.Microsecond
	longestStep  = 2 * time.Millisecond
)

func (s *stepper) next() time.Duration {
	s.last = min(max(2*s.last, shortestStep), longestStep)
	return s.last
}

func (s *stepper) reset() { s.last = 0 }

// waker is a file descriptor that ends a sleep.
type waker struct {
	mu    sync.Mutex // keeps the descriptor open while Wake uses it
	fd    int
	alive bool
	fds   [2]unix.PollFd
}

func (w *waker) open() (err error) {
	if w.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("create an event fd: %w", err)
	}
	w.alive = true
	return nil
}

func (w *waker) wake() {
	w.mu.Lock()
	if w.alive {
		one := [8]byte{1}
		_, _ = unix.Write(w.fd, one[:]) // it can only fail if it is full, which wakes too
	}
	w.mu.Unlock()
}

// sleep returns when fd or the waker is readable or the timeout has passed.
func (w *waker) sleep(fd int, timeout time.Duration) error {
	if timeout <= 0 {
		return nil
	}
	timeout = min(timeout, longestSleep)
	w.fds[0] = unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN}
	w.fds[1] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN} // a negative one is ignored
	limit := unix.NsecToTimespec(int64(timeout))
	_, err := unix.Ppoll(w.fds[:], &limit, nil)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ofi: wait for the network: %w", err)
	}
	if err == nil && w.fds[0].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(w.fd, count[:]) // another waiter may have been faster
	}
	return nil
}

func (w *waker) close() {
	w.mu.Lock()
	if w.alive {
		_ = unix.Close(w.fd)
		w.alive = false
	}
	w.mu.Unlock()
}
