package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The second goroutine of a completion queue: the event it is armed for is kept under the lock, and a
// separate token wakes the waiter.

func (d *refDevice) Caps() rdma.Caps {
	return rdma.Caps{Notify: rdma.NotifyAny | rdma.NotifySolicited | rdma.NotifyBeside}
}

func (c *refCQ) Arm(on rdma.Notify, limit time.Duration) time.Duration {
	c.dev.fab.mu.Lock()
	defer c.dev.fab.mu.Unlock()
	closed, busy := c.stateHeld() // under the lock, so that no message arrives unnoticed between the check and the arming
	if c.armed = 0; closed || busy {
		return 0
	}
	c.armed = on
	return limit
}

func (c *refCQ) Disarm() {
	c.dev.fab.mu.Lock()
	c.armed = 0
	c.dev.fab.mu.Unlock()
}

func (c *refCQ) File() int { return -1 }

func (c *refCQ) SetBeside(on bool) {
	c.dev.fab.mu.Lock()
	defer c.dev.fab.mu.Unlock()
	if c.side = 0; on {
		c.side = 1
	}
}

func (c *refCQ) WaitArmed(timeout time.Duration) error {
	if closed, _ := c.state(); closed {
		return rdma.ErrClosed
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.beside:
	case <-timer.C:
	}
	return nil
}

// wakeArmed wakes the waiter if the queue is armed for the event, or for any.
func (c *refCQ) wakeArmed(event rdma.Notify) {
	if c.armed == event || c.armed == rdma.NotifyAny {
		c.armed = 0
		c.callBeside()
	}
}

func (c *refCQ) callBeside() {
	select {
	case c.beside <- struct{}{}:
	default:
	}
}
