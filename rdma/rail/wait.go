package rail

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting. Two goroutines may wait at a time: the one that polls, in Wait, and one in
// WaitArmed while the first computes. Both sleep until a rail has something or a flow
// must be serviced. wait_linux.go and wait_other.go implement the sleep on several
// rails at once.

type waiter int

const (
	pollWaiter waiter = iota
	armedWaiter
	numWaiters
)

const (
	// shortNap bounds a sleep when a rail has no file to sleep on. While nothing
	// arrives, the naps grow up to longNap.
	shortNap = time.Millisecond
	longNap  = 8 * time.Millisecond
	// armedWaitMax is the longest sleep in WaitArmed: new timers do not wake it, or
	// every send would.
	armedWaitMax = 50 * time.Millisecond
)

// Wait blocks until a rail has something or a flow must be serviced.
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

// park keeps the progress thread asleep while a goroutine waits.
func (c *queue) park() {
	c.parked++
	c.dev.parked++
}

func (c *queue) unpark() {
	if c.closed {
		return // end has subtracted its share
	}
	c.parked--
	c.dev.parked--
	c.dev.called()
}

// sleep prepares the rails for a sleep and returns how long it may last.
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

// nap is how long to sleep where a rail has no file.
type nap time.Duration

// next returns the next nap, which is longer than the one before.
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

// wakeSleeper ends a sleep that does not know about new timers.
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

// Arm prepares WaitArmed.
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

// WaitArmed is Wait after Arm. Another goroutine may poll meanwhile.
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
