//go:build linux

package iwarp

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting for a completion queue. Its epoll descriptor holds the sockets of its queue
// pairs and an event fd that Wake sets. Sleep prepares a sleep on the descriptor, Awake
// ends it: a user who sleeps on several such files does so himself, Wait and WaitArmed do
// it here. Meanwhile the progress thread leaves those sockets alone, so that they wake the
// sleeper; work that no socket indicates makes Sleep return 0, or sets the event fd if it
// comes later.

var (
	_ rdma.ArmedCQ = (*completionQueue)(nil)
	_ rdma.FileCQ  = (*completionQueue)(nil)
)

// sleep is the state for waiting on a completion queue.
type sleep struct {
	epoll    int
	sleepers int // number of sleepers, under the device's lock

	mu    sync.Mutex // Wake may be called at any time
	wake  int
	woken bool // the event fd is set
	ended bool
}

// newSleep returns an epoll descriptor with an event fd in it that wakes the sleeper.
func newSleep() (epoll, wake int, err error) {
	if epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return -1, -1, err
	}
	if wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		_ = unix.Close(epoll)
		return -1, -1, err
	}
	if err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}); err != nil {
		_, _ = unix.Close(epoll), unix.Close(wake)
	}
	return epoll, wake, err
}

// setEvent sets an event fd.
func setEvent(wake int) {
	one := [8]byte{1}
	_, _ = unix.Write(wake, one[:]) // a full counter means that a wake-up is pending anyway
}

// end closes the descriptors.
func (s *sleep) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	_, _ = unix.Close(s.wake), unix.Close(s.epoll)
}

// clearEvent clears the effect of Wake.
func (s *sleep) clearEvent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken && !s.ended {
		var count [8]byte
		_, _ = unix.Read(s.wake, count[:]) // it only has to be 0 again
		s.woken = false
	}
}

func (c *completionQueue) File() int { return c.sleep.epoll }

// busy reports whether Poll has something to do that no socket indicates.
func (c *completionQueue) busy() bool {
	return c.count > 0 || c.moved || slices.ContainsFunc(c.pairs, (*queuePair).runnable)
}

// Sleep prepares a sleep. The device has no timers.
func (c *completionQueue) Sleep(limit time.Duration) time.Duration {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.sleep.sleepers++
	if c.closed || c.busy() {
		return 0
	}
	return max(limit, 0)
}

func (c *completionQueue) Awake() {
	c.dev.mu.Lock()
	c.sleep.sleepers--
	c.dev.progressThread.notePoll()
	c.dev.mu.Unlock()
	c.sleep.clearEvent()
}

func (c *completionQueue) Wait(timeout time.Duration) error {
	d := c.dev
	d.mu.Lock()
	closed := c.closed
	d.mu.Unlock()
	if closed {
		return rdma.ErrClosed
	}
	limit := c.Sleep(timeout)
	if limit <= 0 { // there is something to do, and a Wake is for the next sleep
		d.mu.Lock()
		c.sleep.sleepers--
		d.mu.Unlock()
		return nil
	}
	defer c.Awake()
	var ready [4]unix.EpollEvent
	ms := int(min((limit+time.Millisecond-1)/time.Millisecond, 1<<30))
	if _, err := unix.EpollWait(c.sleep.epoll, ready[:], ms); err != nil && err != unix.EINTR {
		return fmt.Errorf("iwarp: wait for the sockets of a completion queue: %w", err)
	}
	return nil
}

// Arm prepares WaitArmed. Input that a socket has by then ends that wait at once, as does
// anything that the progress thread processes until then.
func (c *completionQueue) Arm() bool {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	return !c.closed && !c.busy()
}

func (c *completionQueue) WaitArmed(timeout time.Duration) error { return c.Wait(timeout) }

func (c *completionQueue) Wake() {
	c.sleep.mu.Lock()
	defer c.sleep.mu.Unlock()
	if !c.sleep.ended && !c.sleep.woken {
		c.sleep.woken = true
		setEvent(c.sleep.wake)
	}
}
