package udrel

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The device below waits, for as long as none of our timers is due. Starting a timer
// ends the wait.

var _ rdma.NotifyCQ = armedQueue{}

const (
	// otherQueueDelay bounds a wait on one of several queues: its packets may arrive at
	// another one.
	otherQueueDelay = time.Millisecond
	// armedWaitMax is the longest sleep in WaitArmed: new timers do not wake it.
	armedWaitMax = 50 * time.Millisecond
)

// Wait blocks until Poll may have work.
func (c *queue) Wait(timeout time.Duration) error {
	d := c.dev
	d.mu.Lock()
	if c.closed || d.closed {
		d.mu.Unlock()
		return rdma.ErrClosed
	}
	timeout = c.untilDue(timeout)
	if timeout <= 0 {
		d.idlePolls = 0
		d.mu.Unlock()
		return nil
	}
	c.parked++
	d.parked++
	d.mu.Unlock()
	err := c.below.Wait(timeout)
	d.mu.Lock()
	c.parked--
	d.parked--
	d.idlePolls = 0
	d.mu.Unlock()
	return err
}

// untilDue returns the time until Poll has work in any case, at most limit.
func (c *queue) untilDue(limit time.Duration) time.Duration {
	d := c.dev
	if c.first < len(c.ready) {
		return 0
	}
	for i := range c.lent {
		if l := &c.lent[i]; l.from.lent >= l.from.depth {
			return 0 // a packet may wait for a lent buffer
		}
	}
	if len(d.queues) > 1 {
		limit = min(limit, otherQueueDelay)
	}
	if at := d.wake(); at != never {
		limit = min(limit, at-time.Since(d.start))
	}
	return limit
}

// Wake ends a Wait.
func (c *queue) Wake() { c.below.Wake() }

// Notifies returns how a second goroutine can use the queue.
func (a armedQueue) Notifies() rdma.Notify { return rdma.NotifyAny }

// Disarm ends an arming.
func (a armedQueue) Disarm() { a.armed.Disarm() }

// File returns -1: there is none.
func (a armedQueue) File() int { return -1 }

// Beside does nothing.
func (a armedQueue) Beside(bool) {}

// Arm prepares WaitArmed.
func (a armedQueue) Arm(on rdma.Notify, limit time.Duration) time.Duration {
	d := a.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.closed || d.closed {
		return 0
	}
	if limit = a.untilDue(limit); limit <= 0 {
		d.idlePolls = 0
		return 0
	}
	return a.armed.Arm(on, limit)
}

// WaitArmed is Wait after Arm. Another goroutine may poll meanwhile.
func (a armedQueue) WaitArmed(timeout time.Duration) error {
	d := a.dev
	d.mu.Lock()
	timeout = a.untilDue(min(timeout, armedWaitMax))
	d.mu.Unlock()
	if timeout <= 0 {
		return nil
	}
	return a.armed.WaitArmed(timeout)
}
