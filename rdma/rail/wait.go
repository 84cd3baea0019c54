package rail

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting. Two may wait at a time: the one who polls, in Wait, and one who stands by
// while that one computes, in WaitArmed. Both sleep until one of the rails has something,
// or until a flow must be looked after. How a goroutine sleeps on several rails at once
// is in wait_linux.go and wait_other.go.

type waiter int

const (
	pollWaiter waiter = iota
	armedWaiter
	numWaiters
)

const (
	// shortNap bounds a sleep when a rail cannot be slept on. While nothing comes, the
	// naps become longer, up to longNap.
	shortNap = time.Millisecond
	longNap  = 8 * time.Millisecond
	// armedWaitMax is the longest sleep of who stands by: timers that begin meanwhile do
	// not wake it, or every send would.
	armedWaitMax = 50 * time.Millisecond
)

// Wait parks until a rail has something or a flow must be looked after.
func (c *queue) Wait(timeout time.Duration) error {
	d := c.dev
	d.mu.Lock()
	if c.closed || d.closed {
		d.mu.Unlock()
		return rdma.ErrClosed
	}
	d.called()
	if timeout = c.sleep(timeout); timeout <= 0 {
		c.awake()
		d.mu.Unlock()
		return nil
	}
	c.park()
	d.mu.Unlock()
	err := c.waitState.wait(pollWaiter, timeout)
	d.mu.Lock()
	c.unpark()
	c.awake()
	c.waitState.drain(pollWaiter)
	d.mu.Unlock()
	return err
}

// park keeps the progress thread away while somebody waits.
func (c *queue) park() {
	c.parked++
	c.dev.parked++
}

func (c *queue) unpark() {
	if c.closed {
		return // its share was taken back
	}
	c.parked--
	c.dev.parked--
	c.dev.called()
}

// sleep gets the rails ready for a sleep and reports how long it may last.
func (c *queue) sleep(limit time.Duration) time.Duration {
	if at := c.due(); at != never {
		limit = min(limit, at-c.dev.clock())
	}
	if limit <= 0 {
		return 0
	}
	c.waitState.asleep = true
	return c.waitState.prepareSleep(limit)
}

// nap is how long to sleep where a rail cannot be slept on.
type nap time.Duration

// next is the next nap, which is longer than the one before.
func (n *nap) next() time.Duration {
	*n = min(max(2**n, nap(shortNap)), nap(longNap))
	return time.Duration(*n)
}

// awake ends the sleep.
func (c *queue) awake() {
	if c.waitState.asleep {
		c.waitState.asleep, c.all = false, true
		c.waitState.endSleep()
	}
}

// stir ends the sleep of who does not know of new timers.
func (c *queue) wakeSleeper() {
	if c.waitState.asleep {
		c.waitState.signal(pollWaiter)
	}
}

// Wake ends a Wait.
func (c *queue) Wake() {
	c.waitState.signal(pollWaiter)
	c.waitState.signal(armedWaiter)
}

// Arm gets ready to stand by.
func (c *queue) Arm() bool {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.closed || d.closed {
		return false
	}
	d.called()
	c.awake()
	c.waitState.armed = c.sleep(armedWaitMax)
	return c.waitState.armed > 0
}

// WaitArmed is Wait after Arm, beside whoever polls.
func (c *queue) WaitArmed(timeout time.Duration) error {
	d := c.dev
	d.mu.Lock()
	timeout = min(timeout, c.waitState.armed)
	if c.closed || d.closed {
		d.mu.Unlock()
		return rdma.ErrClosed
	}
	if timeout <= 0 || c.waiting() > 0 { // the progress thread was faster
		d.mu.Unlock()
		return nil
	}
	c.park()
	d.mu.Unlock()
	err := c.waitState.wait(armedWaiter, timeout)
	d.mu.Lock()
	c.unpark()
	c.waitState.drain(armedWaiter)
	d.mu.Unlock()
	return err
}
