package udrel

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting is left to the device below, for as long as none of our timers is due. Whoever
// starts a timer meanwhile ends the wait.

var _ rdma.ArmedCQ = armedQueue{}

const (
	// otherQueueDelay bounds a wait on one of several queues: packets that concern it come to
	// another one.
	otherQueueDelay = time.Millisecond
	// armedWaitMax is the longest sleep of who stands by: timers that begin meanwhile do
	// not wake it.
	armedWaitMax = 50 * time.Millisecond
)

// Wait parks until Poll may have something to do.
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

// untilDue is the time until Poll has something to do in any case, at most limit.
func (c *queue) untilDue(limit time.Duration) time.Duration {
	d := c.dev
	if c.first < len(c.ready) {
		return 0
	}
	for i := range c.lent {
		if l := &c.lent[i]; l.from.lent >= l.from.depth {
			return 0 // a packet may wait for what was lent
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

// Arm gets ready for WaitArmed.
func (a armedQueue) Arm() bool {
	d := a.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.closed || d.closed || a.untilDue(time.Hour) <= 0 {
		d.idlePolls = 0
		return false
	}
	return a.armed.Arm()
}

// WaitArmed is Wait after Arm. Poll may be called meanwhile.
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
