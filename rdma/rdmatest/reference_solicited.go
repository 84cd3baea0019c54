package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The reference's rdma.SolicitedCQ: armed is a flag under the lock, and a separate token
// wakes the waiter.

var _ rdma.SolicitedCQ = (*refCQ)(nil)

func (c *refCQ) ArmSolicited() bool {
	c.dev.fab.mu.Lock()
	defer c.dev.fab.mu.Unlock()
	closed, busy := c.stateHeld() // under the lock, so that no message arrives unnoticed between the check and the arming
	c.armed = !closed && !busy
	return c.armed
}

func (c *refCQ) Disarm() {
	c.dev.fab.mu.Lock()
	c.armed = false
	c.dev.fab.mu.Unlock()
}

// Beside has no effect: the reference leaves no transfers to peers.
func (c *refCQ) Beside(bool) {}

func (c *refCQ) WaitSolicited(timeout time.Duration) error {
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

// wakeSolicited wakes the waiter if the queue is armed.
func (c *refCQ) wakeSolicited() {
	if c.armed {
		c.armed = false
		c.callBeside()
	}
}

func (c *refCQ) callBeside() {
	select {
	case c.beside <- struct{}{}:
	default:
	}
}
