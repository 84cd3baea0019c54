package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The reference's rdma.SolicitedCQ: armed is a flag under the lock, and a token of
// its own wakes who waits.

var _ rdma.SolicitedCQ = (*refCQ)(nil)

func (c *refCQ) ArmSolicited() bool {
	c.dev.fab.mu.Lock()
	defer c.dev.fab.mu.Unlock()
	closed, busy := c.stateHeld() // a message that came between the look and the arming would wake nobody
	c.armed = !closed && !busy
	return c.armed
}

func (c *refCQ) Disarm() {
	c.dev.fab.mu.Lock()
	c.armed = false
	c.dev.fab.mu.Unlock()
}

// Beside changes nothing: the reference leaves nobody anything.
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

// summon wakes who was armed for.
func (c *refCQ) summon() {
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
