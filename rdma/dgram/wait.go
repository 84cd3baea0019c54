package dgram

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting. Two may wait at a time: the one who polls, in Wait, and one who stands by
// while that one computes, in WaitArmed. Both sleep until a datagram comes or the next
// timer of the device is due, for what is lost must be sent again even if nothing comes.

var _ rdma.ArmedCQ = (*queue)(nil)

type waiter int

const (
	whoPolls waiter = iota
	whoStandsBy
	waiters
)

const (
	// stuckDelay is how long to wait for a kernel that takes no more datagrams.
	stuckDelay = 100 * time.Microsecond
	// standByDelay is the longest sleep of who stands by: timers that begin meanwhile do
	// not wake it, or every send would.
	standByDelay = 50 * time.Millisecond
)

// Wait parks until a datagram comes or a timer of the device is due.
func (c *queue) Wait(timeout time.Duration) error {
	d := c.dev
	d.mu.Lock()
	if c.closed || d.closed {
		d.mu.Unlock()
		return rdma.ErrClosed
	}
	now := d.clock()
	timeout = min(timeout, c.due()-now)
	if timeout <= 0 {
		d.mu.Unlock()
		return nil
	}
	d.parked = true
	d.mu.Unlock()
	err := d.socket.wait(whoPolls, timeout)
	d.mu.Lock()
	d.parked = false
	d.mu.Unlock()
	return err
}

// due is when Poll has something to do if nothing comes: now, if completions are ready.
func (c *queue) due() time.Duration {
	switch {
	case c.first < len(c.ready):
		return 0
	case c.dev.outbox.n > 0:
		return min(c.dev.wake(), c.dev.clock()+stuckDelay)
	}
	return c.dev.wake()
}

// Arm gets ready to stand by.
func (c *queue) Arm() bool {
	d := c.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.closed || d.closed {
		return false
	}
	c.armedUntil = c.due()
	return c.armedUntil > d.clock() && d.socket.quiet()
}

// WaitArmed is Wait after Arm, beside whoever polls.
func (c *queue) WaitArmed(timeout time.Duration) error {
	return c.dev.socket.wait(whoStandsBy, min(timeout, standByDelay, c.armedUntil-c.dev.clock()))
}

// Wake ends a Wait.
func (c *queue) Wake() { c.dev.socket.wake() }
